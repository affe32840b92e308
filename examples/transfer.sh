#!/bin/sh
# transfer.sh [FOLDER]: learn an encoder once, freeze it, use it elsewhere. Writes its models into FOLDER (default: transfer).
#
#   1. an autoencoder learns from 29,000 German sentences, without any translation
#   2. a translator takes its encoder, leaves it as it is, and learns the rest from 2,000 pairs
#   3. everything is thawed and learns on
#   and for comparison: the same translator from scratch, and one that begins with the encoder and never freezes it.
#
# COUPLET names the command; further options of train, such as --threads 1, stand in TRAIN.
set -eu
examples=$(cd "$(dirname "$0")" && pwd)
couplet=${COUPLET:-$examples/../build/couplet}
data=$examples/../../shared/data/multi30k-en-de
folder=${1:-transfer}
mkdir -p "$folder"
pairs=$(cd "$folder" && pwd)/pairs.tsv
awk 'NR % 14 == 1' "$data/tok.train.tsv" | head -n 2000 >"$pairs"

# translator NAME OPTIONS...: trains $folder/NAME
translator() {
    name=$1
    shift
    # shellcheck disable=SC2086  # TRAIN is a list of words
    "$couplet" train "$examples/transfer-translator.yaml" -o "$folder/$name" --overwrite --set "data.train=$pairs" "$@" ${TRAIN-}
}

# shellcheck disable=SC2086
"$couplet" train "$examples/transfer-autoencoder.yaml" -o "$folder/autoencoder" --overwrite ${TRAIN-}
"$couplet" extract "$folder/autoencoder/model.safetensors" encoder -o "$folder/encoder.safetensors"

translator scratch
translator frozen --init "$folder/encoder.safetensors:encoder" --freeze encoder
translator thawed --init "$folder/frozen/model.safetensors"
translator begun --init "$folder/encoder.safetensors:encoder"

for name in scratch frozen thawed begun; do
    echo "== $name"
    "$couplet" evaluate "$folder/$name/model.safetensors" "$data/tok.test.tsv" --tokenize none
done
