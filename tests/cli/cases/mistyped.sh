# Mistyped names get the nearest one and exit 2.
try() { echo "\$ couplet $*"; couplet "$@"; echo "exit $?"; }
try trian de-en.yaml
try evalaute m p.tsv
try xyzzy
try --verison
try -x
try help evalute
try help confg
try help xyzzy
try help train plan
try train de-en.yaml --overwrit
try train de-en.yaml --ouput=dir
try train de-en.yaml --epochs 3
try train de-en.yaml -threads 2
try train de-en.yaml -overwrite
try generate m --max_lenght 4
try generate m --temprature=1
try train de-en.yaml --progress bra
