#!/bin/sh
# Every configuration of examples/ is read, planned and trained for three steps on its own data (those of ../shared/data
# only where they are), a model is used from C, and a model of one's own is trained by hand.
set -eu
couplet=$1
here=$(cd "$(dirname "$0")/../.." && pwd)
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
skipped=

for config in "$here"/examples/*.yaml; do
    name=$(basename "$config" .yaml)
    data=$(sed -n 's/^ *train: *\([^ ]*\).*/\1/p' "$config" | head -n 1)
    if [ ! -f "$here/examples/$data" ]; then
        skipped="$skipped $name"
        continue
    fi
    echo "$name"
    "$couplet" plan "$config" --json >"$folder/plan.json"
    grep -q '"peak_bytes"' "$folder/plan.json"
    "$couplet" train "$config" -o "$folder/$name" --progress none --set training.max_steps=3 \
        --set training.validation_steps=1 --set model.units=16
    printf 'a\n\nb\n' | "$couplet" generate "$folder/$name/model.safetensors" --max-length 3 >"$folder/lines"
    [ "$(wc -l <"$folder/lines")" -eq 3 ]
    [ -z "$(sed -n 2p "$folder/lines")" ]
done
[ -z "$skipped" ] || echo "skipped, their data are not here:$skipped"

examples=$(dirname "$couplet")/examples
"$examples/translate" "$folder/demo/model.safetensors" 'Tengo hambre.' >"$folder/line"
[ "$(wc -l <"$folder/line")" -eq 1 ]
"$examples/own_loop" >"$folder/loop"
tail -n 1 "$folder/loop"
awk '/^step 300/ {found = 1; if ($6 < 0.9) exit 1} END {exit !found}' "$folder/loop"
"$examples/asker" >"$folder/asker"
tail -n 1 "$folder/asker"
grep -q "^loop 'loop': [0-9]* calls run step by step, [0-9]* run once: encoder.embedding, encoder.rnn" "$folder/asker"
awk '/^step 400/ {found = 1; if ($6 < 0.9) exit 1} END {exit !found}' "$folder/asker"
"$examples/own_model" "$folder/own.safetensors" >"$folder/own"
tail -n 2 "$folder/own"
grep -q '^stopped early' "$folder/own"
awk '/rows said backwards/ {found = 1; if ($1 < 45) exit 1} END {exit !found}' "$folder/own"
