#!/bin/sh
# make demo: from a fresh checkout to a trained translator, its score and two translations.
set -eu
cd "$(dirname "$0")/.."
couplet=build/couplet
model=build/demo/model.safetensors

step() { printf '\n== %s\n' "$1"; }

step "system packages and build"
scripts/setup.sh
mkdir -p build
echo "building the command (its output goes to build/build.log)"
make --no-print-directory build TARGET=couplet_cli >build/build.log 2>&1 || { cat build/build.log; exit 1; }
$couplet --version

step "$couplet train examples/demo.yaml -o build/demo --overwrite"
$couplet train examples/demo.yaml -o build/demo --overwrite

step "$couplet evaluate $model data/sample/test.tsv"
$couplet evaluate "$model" data/sample/test.tsv

pictures=build/demo/attention
step "printf 'Tengo hambre.\\n¿Dónde está mi perro?\\n' | $couplet generate $model --attention $pictures"
printf 'Tengo hambre.\n¿Dónde está mi perro?\n' | $couplet generate "$model" --attention "$pictures"
echo "what each word of the first translation looked at: $pictures/000001.svg"

step "what to try next"
cat <<END
  echo 'No sé qué hacer.' | $couplet generate $model --temperature 0.5 --json
  $couplet evaluate $model data/sample/test.tsv --metric bleu,exact --json
  $couplet new YOURS.tsv > yours.yaml && $couplet train yours.yaml
The last one learns from your own file: one pair a line, source<TAB>target.
END
