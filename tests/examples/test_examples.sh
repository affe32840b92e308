#!/bin/sh
# The demo's configuration is read, planned and trained for three steps; its model is used from C; models of one's own
# are trained by hand. (The other configurations have tests of their own: their data may not be here.)
set -eu
couplet=$1
here=$(cd "$(dirname "$0")/../.." && pwd)
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
sh "$here/tests/examples/data_set.sh" "$couplet" demo
"$couplet" train "$here/examples/demo.yaml" -o "$folder/demo" --progress none --set training.max_steps=3 \
    --set training.validation_steps=1 --set model.units=16

examples=$(dirname "$couplet")/examples
"$examples/translate" "$folder/demo/model.safetensors" 'Tengo hambre.' >"$folder/line"
[ "$(wc -l <"$folder/line")" -eq 1 ]
"$couplet" extract "$folder/demo/model.safetensors" encoder -o "$folder/encoder.safetensors"
printf 'tengo hambre\nella canta\nvete a casa\n' >"$folder/sentences"
printf 'vete a casa\n\n' | "$examples/nearest" "$folder/encoder.safetensors" "$folder/sentences" 2 >"$folder/near"
[ "$(wc -l <"$folder/near")" -eq 6 ]
[ "$(sed -n 2p "$folder/near")" = '  1.000  vete a casa' ]
printf 'a b c\tx\nc b a\tx\nd e\ty\nf g\ty\na b\tz\n' >"$folder/pairs"
"$examples/paraphrases" "$folder/encoder.safetensors" "$folder/pairs" >"$folder/found"
# of each of four sentences one paraphrase: the words find two, and with "d e" and "f g" all four others are equally far
grep -q '^words  *62.50 % of 4$' "$folder/found"
[ "$(grep -c ' of 4$' "$folder/found")" -eq 8 ]
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
