#!/bin/sh
# test_vocabulary.sh COUPLET: couplet vocabulary: what it counts, that a configuration reads what it writes, and that
# SentencePiece's own package reads its models. COUPLET_SENTENCEPIECE_PYTHON: a Python that has it; default: python3.
set -eu
couplet=$1
here=$(cd "$(dirname "$0")/.." && pwd)
python=${COUPLET_SENTENCEPIECE_PYTHON:-python3}
folder=$(mktemp -d "${TMPDIR:-/tmp}/couplet-vocabulary.XXXXXX")
trap 'rm -rf "$folder"' EXIT
cd "$folder"

fail() {
    echo "FAILED: $*"
    exit 1
}
# same TEXT FILE: the file holds exactly this
same() {
    printf '%s' "$1" >expected
    cmp -s expected "$2" || fail "$2 is $(cat "$2"), expected $1"
}
# holds TEXT FILE
holds() {
    grep -qF "$1" "$2" || fail "'$1' is not in: $(cat "$2")"
}
# refused TEXT ARGUMENT...: exit 2 with this text
refused() {
    text=$1
    shift
    code=0
    "$couplet" vocabulary "$@" >out 2>err || code=$?
    [ "$code" -eq 2 ] || fail "exit $code for: $*"
    holds "$text" err
}

# Figures by hand: a 3, b 2, c 1 of the source; x 3, y 1, a 1 of the target.
printf 'a a b\tx x\na b c\ty x a\n' >pairs.tsv
"$couplet" vocabulary pairs.tsv -o source.txt >out
same '
[UNK]
[START]
[END]
a
b
c
' source.txt
holds 'source.txt: tokens word, standardize nfkc, 7 entries from 2 lines' out
holds 'coverage: 0.00 % of 6 tokens are unknown; it has 3 of 3 different ones (100.0 %)' out
"$couplet" vocabulary pairs.tsv --column target --size 5 -o target.txt --json >out
holds '"entries": 5' out
holds '"token_count": 5, "unknown": 2, "unknown_share": 0.4, "types": 3, "type_share": 0.333333' out
holds '"standardize": "none"' out
[ "$(sed -n 5p target.txt)" = x ] || fail "target: $(cat target.txt)"
"$couplet" vocabulary pairs.tsv --column both --min-count 3 -o both.txt >out
same '
[UNK]
[START]
[END]
a
x
' both.txt
holds '36.36 % of 11 tokens are unknown; it has 2 of 5' out
# One column, as text, compressed, from standard input.
cut -f 1 pairs.tsv >one.txt
for column in source target; do
    "$couplet" vocabulary one.txt --column $column --standardize none -o again.txt >/dev/null
    cmp source.txt again.txt || fail "one column as $column"
done
gzip -c one.txt >one.txt.gz
"$couplet" vocabulary one.txt.gz -o again.txt >/dev/null
cmp source.txt again.txt || fail "gzip"
printf 'Ab!\n' >chars.txt
"$couplet" vocabulary chars.txt --kind char --standardize nfkc_lower -o chars.vocab >out
holds '7 entries' out
grep -qx a chars.vocab || fail "$(cat chars.vocab)"
"$couplet" vocabulary chars.txt --kind byte -o bytes.vocab >out
holds '260 entries' out
holds '0.00 % of 3 tokens are unknown; it has 3 of 3' out
refused "needs -o FILE" pairs.tsv
refused "expected source, target or both" pairs.tsv --column middle -o x
refused "line 1 has 1" one.txt --column both -o x
refused "cannot open 'none.tsv'" none.tsv -o x
refused "vocabulary size is 4" pairs.tsv --size 4 -o x
[ ! -e x ] || fail "something was written"

# What it writes, a configuration reads.
head -n 300 "$here/../data/sample/train.tsv" >train.tsv
train() {
    cat >run.yaml <<END
model: {units: 8}
text: {$1}
data: {train: train.tsv, valid: 10%}
training: {batch_size: 64, max_steps: 2, threads: 1, show_examples: 0}
END
    "$couplet" train run.yaml --overwrite --progress none >/dev/null 2>messages || fail "$1: $(cat messages)"
    "$couplet" inspect run >inspected
}
"$couplet" vocabulary train.tsv --column target --size 120 -o words.txt >/dev/null
train 'target: {vocabulary: words.txt}'
holds 'target vocabulary 120 entries' inspected
if ! "$couplet" --version | grep -q '^sentencepiece yes'; then
    refused "this build has no subwords" train.tsv --kind bpe -o no.model
    exit 0
fi
"$couplet" vocabulary train.tsv --column both --kind bpe --size 200 -o both.model >out
holds '200 entries from 300 lines' out
holds '0.00 % of' out
train 'shared: true, source: {tokens: bpe, vocabulary: both.model}'
[ "$(grep -c 'vocabulary 200 entries' inspected)" -eq 2 ] || fail "$(cat inspected)"
"$couplet" vocabulary train.tsv --kind unigram --size 150 --min-count 4 -o one.model >out
holds 'tokens unigram' out
grep -q ' 0.00 %' out && fail "characters seen three times are known: $(cat out)"
refused "expected at least" train.tsv --kind bpe --size 10 -o x
refused "expected at least" train.tsv --kind bpe --size 0 -o x

"$python" -c 'import sentencepiece' 2>/dev/null || { echo "ok, without SentencePiece's package"; exit 0; }
"$python" - <<'END'
import sentencepiece as spm
model = spm.SentencePieceProcessor(model_file="both.model")
assert model.get_piece_size() == 200
assert [model.pad_id(), model.unk_id(), model.bos_id(), model.eos_id()] == [0, 1, 2, 3]
assert [model.id_to_piece(i) for i in range(4)] == ["[PAD]", "[UNK]", "[START]", "[END]"]
for line in open("train.tsv", encoding="utf-8"):
    for text in line.rstrip("\n").split("\t")[:2]:
        text = " ".join(text.split())
        assert model.decode(model.encode(text)) == text, text
        assert 1 not in model.encode(text), text
END
echo "ok, and SentencePiece's package reads it"
