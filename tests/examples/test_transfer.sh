#!/bin/sh
# examples/transfer.sh with a few steps for each model; skipped where its data are not.
set -eu
here=$(cd "$(dirname "$0")/../.." && pwd)
if [ ! -f "$here/../shared/data/multi30k-en-de/tok.train.tsv" ]; then
    echo "skipped: ../shared/data/multi30k-en-de is not here"
    exit 77
fi
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
few='--progress none --set training.max_steps=3 --set training.validation_steps=1 --set model.units=8'
COUPLET=$1 TRAIN=$few sh "$here/examples/transfer.sh" "$folder/t" >"$folder/out"
[ "$(wc -l <"$folder/t/pairs.tsv")" -eq 2000 ]
[ "$(grep -c '^bleu' "$folder/out")" -eq 4 ]

# A frozen part stays as it was extracted, to the bit; thawed, it moves.
checksums() { "$1" inspect "$2" | grep ' F32 encoder\.' >"$3"; }
checksums "$1" "$folder/t/encoder.safetensors" "$folder/extracted"
checksums "$1" "$folder/t/frozen/model.safetensors" "$folder/frozen"
checksums "$1" "$folder/t/thawed/model.safetensors" "$folder/thawed"
[ "$(wc -l <"$folder/extracted")" -eq 7 ]
cmp "$folder/extracted" "$folder/frozen"
! cmp -s "$folder/frozen" "$folder/thawed"
