#!/bin/sh
# test_subwords.sh COUPLET: training with subwords and bytes, and all that the model file is for afterwards, each in a
# process of its own.
set -eu
couplet=$1
data=$(cd "$(dirname "$0")/../../data/sample" && pwd)
"$couplet" --version | grep -q '^sentencepiece yes' || exit 77
folder=$(mktemp -d "${TMPDIR:-/tmp}/couplet-subwords.XXXXXX")
trap 'rm -rf "$folder"' EXIT
cd "$folder"
head -n 300 "$data/train.tsv" >train.tsv
cut -f 1 train.tsv | tail -n 20 >lines.txt

fail() {
    echo "FAILED ($kind): $*"
    exit 1
}

for kind in bpe unigram byte; do
    size="vocabulary_size: 150, "
    [ "$kind" != byte ] || size=
    cat >"$kind.yaml" <<END
model: {units: 16}
text:
  source: {tokens: $kind, ${size}max_length: 60}
  target: {tokens: $kind, ${size}max_length: 60}
data: {train: train.tsv, valid: 10%}
training: {batch_size: 32, epochs: 2, threads: 1, show_examples: 1, checkpoint_every: 3, log_every: 1}
END
    "$couplet" train "$kind.yaml" --progress none >report 2>messages || fail "training: $(cat messages)"
    # A run in two pieces is the run in one: the subwords are the same.
    "$couplet" train "$kind.yaml" -o two --set training.epochs=1 --progress none >/dev/null 2>&1
    "$couplet" train "$kind.yaml" -o two --resume --progress none >/dev/null 2>messages || fail "resume: $(cat messages)"
    for file in $kind two; do
        "$couplet" inspect "$file" | sed -n '/^checksums/,$p' >"$file.sums"
    done
    cmp "$kind.sums" two.sums || fail "the resumed run has other weights"
    "$couplet" generate "$kind" -i lines.txt -o out.txt 2>/dev/null
    [ "$(wc -l <out.txt)" -eq 20 ] || fail "$(wc -l <out.txt) outputs for 20 lines"
    grep -q '▁' out.txt && fail "an output shows the mark of a piece"
    "$couplet" generate "$kind" -i lines.txt --attention pictures >/dev/null 2>&1
    [ -s pictures/000020.svg ] || fail "no picture"
    [ "$kind" = byte ] || grep -q '▁' pictures/000020.svg || fail "no pieces in the picture"
    "$couplet" evaluate "$kind" train.tsv --metric bleu,loss >scores 2>/dev/null || fail evaluate
    "$couplet" score "$kind" train.tsv --json 2>/dev/null | head -n 1 >score
    [ "$kind" = byte ] || grep -q '▁' score || fail "no pieces in $(cat score)"
    # A part takes its subwords along, and the run that begins with it keeps them.
    "$couplet" extract "$kind" encoder -o part.safetensors 2>/dev/null
    "$couplet" train "$kind.yaml" -o begun --init part.safetensors:encoder --set training.epochs=1 --progress none \
        >/dev/null 2>messages || fail "init: $(cat messages)"
    "$couplet" train "$kind.yaml" -o other --init part.safetensors:encoder --set text.source.tokens=word \
        --progress none >/dev/null 2>messages && fail "another kind was accepted"
    grep -q "trained with text.source.tokens $kind" messages || fail "$(cat messages)"
    "$couplet" encode part.safetensors -i lines.txt >vectors 2>/dev/null
    [ "$(wc -l <vectors)" -eq 20 ] || fail "encode"
    rm -rf two begun pictures
done

# Target text is learned from as it is: the outputs of an overfitted model are the lines themselves.
kind=overfitted
head -n 8 train.tsv >few.tsv
cat >few.yaml <<END
model: {units: 48}
text: {source: {tokens: bpe, vocabulary_size: 60}, target: {tokens: unigram, vocabulary_size: 60}}
data: {train: few.tsv, valid: few.tsv}
training: {batch_size: 8, epochs: 150, threads: 1, optimizer: {learning_rate: 0.01}, early_stopping: false}
END
"$couplet" train few.yaml --progress none >/dev/null 2>messages || fail "$(cat messages)"
"$couplet" evaluate few few.tsv --metric exact --group source --json 2>/dev/null >exact
grep -q '"score": *1\b' exact || fail "exact: $(cat exact)"
echo "ok"
