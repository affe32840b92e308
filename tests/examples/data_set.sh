#!/bin/sh
# data_set.sh COUPLET NAME: reads, plans and trains examples/NAME.yaml for three steps on its own data, then generates.
# Exits with 77 (skipped) where the data are not.
set -eu
couplet=$1
name=$2
here=$(cd "$(dirname "$0")/../.." && pwd)
config=$here/examples/$name.yaml
data=$here/examples/$(sed -n 's/^ *train: *\([^ ]*\).*/\1/p' "$config" | head -n 1)
if [ ! -f "$data" ]; then
    echo "skipped: $data is not here"
    exit 77
fi
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"$couplet" plan "$config" --json >"$folder/plan.json"
grep -q '"peak_bytes"' "$folder/plan.json"
"$couplet" train "$config" -o "$folder/run" --progress none --set training.max_steps=3 \
    --set training.validation_steps=1 --set model.units=16
printf 'a\n\nb\n' | "$couplet" generate "$folder/run" --max-length 3 >"$folder/lines"
[ "$(wc -l <"$folder/lines")" -eq 3 ]
[ -z "$(sed -n 2p "$folder/lines")" ]
