# A wrong configuration: the cause with its line and the hint, whatever context surrounds them; exit 2.
try() {
    expected=$1
    hint=$2
    shift 2
    couplet "$@" >printed 2>&1
    echo "exit $?"
    grep -o -F "$expected" printed || cat printed
    [ -z "$hint" ] || grep -F "hint: $hint" printed || cat printed
}
printf 'model:\n  unit: 64\ndata: {train: pairs.tsv}\n' >key.yaml
printf 'model:\n  units: many\ndata: {train: pairs.tsv}\n' >value.yaml
printf 'model:\n  encoder: {cell: lstn}\n' >choice.yaml
printf 'model: {units: 4}\nmodel: {units: 8}\n' >twice.yaml
printf 'model: {units: 64}\n' >data.yaml
printf 'data: {train: pairs.tsv}\ntraining:\n  optimizer: {momentum: 0.9}\n' >momentum.yaml
printf 'ein Haus\ta house\n' >pairs.tsv
for command in plan train; do
    try "key.yaml:2: unknown key 'model.unit'" "did you mean 'model.units'?" $command key.yaml
    try "value.yaml:2: 'model.units' got 'many', expected a whole number from 1 to 65536" "" $command value.yaml
    try "choice.yaml:2: 'model.encoder.cell' got 'lstn', expected gru, gru_reset_before or lstm" \
        "did you mean 'lstm'?" $command choice.yaml
    try "twice.yaml:2: key 'model' appears twice" "" $command twice.yaml
    try "'data.train' is missing" "" $command data.yaml
    try "momentum.yaml:3: 'training.optimizer.momentum' is 0.9, but only sgd has a momentum" "" $command momentum.yaml
    try "missing.yaml" "" $command missing.yaml
    try "unknown key 'training.epoch'" "did you mean 'training.epochs'?" $command data.yaml --set training.epoch=3
    try "expected KEY=VALUE" "" $command data.yaml --set training.epochs
    try "'training.epochs' got '0', expected a whole number of at least 1" "" $command data.yaml --set training.epochs=0
done
ls
