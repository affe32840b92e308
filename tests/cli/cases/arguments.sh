# Missing, superfluous and wrong arguments.
try() { echo "\$ couplet $*"; couplet "$@"; echo "exit $?"; }
try train
try train a.yaml b.yaml
try train a.yaml --resume --overwrite
try train a.yaml --set
try train a.yaml -o --resume
try train a.yaml --resume=yes
try train a.yaml --threads 0.5
try train a.yaml --threads=-1
try train a.yaml --threads 9999
try plan
try generate
try generate one two
try generate m --temperature nan
try generate m --temperature -1
try generate m --temperature 0x1
try generate m --max-length 0
try generate m --max-length 99999999999999999999
try generate m --batch-size ""
try generate m --seed -1
try evaluate
try evaluate m
try evaluate a b c
try evaluate --outputs
try evaluate --outputs o a b c
try evaluate m p.tsv --tokenize 13b
try evaluate m p.tsv --baseline b
try evaluate --outputs o p.tsv --bootstrap many
try score
try score m
try score m p.tsv more
try score m p.tsv --batch-size 0
try inspect
try inspect -- --help more
