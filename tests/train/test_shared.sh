#!/bin/sh
# test_shared.sh COUPLET: one vocabulary for both sides, in the model file and in what begins with it; and SentencePiece
# models as files.
set -eu
couplet=$1
here=$(cd "$(dirname "$0")/.." && pwd)
folder=$(mktemp -d "${TMPDIR:-/tmp}/couplet-shared.XXXXXX")
trap 'rm -rf "$folder"' EXIT
cd "$folder"
head -n 300 "$here/../data/sample/train.tsv" >train.tsv
cut -f 1 train.tsv | tail -n 20 >lines.txt

fail() {
    echo "FAILED ($kind): $*"
    exit 1
}

kinds="word byte"
subwords=no
if "$couplet" --version | grep -q '^sentencepiece yes'; then
    kinds="word byte bpe" subwords=yes
fi
for kind in $kinds; do
    cat >"$kind.yaml" <<END
model: {units: 16}
text: {shared: true, source: {tokens: $kind}}
data: {train: train.tsv, valid: 10%}
training: {batch_size: 32, epochs: 1, threads: 1, show_examples: 1}
END
    "$couplet" train "$kind.yaml" --progress none >/dev/null 2>messages || fail "training: $(cat messages)"
    grep -aq '"target_vocabulary": "\\"source\\""' "$kind/model.safetensors" || fail "two vocabularies in the file"
    "$couplet" inspect "$kind" >inspected
    [ "$(grep -c ' vocabulary [0-9]* entries' inspected)" -eq 2 ] || fail "inspect"
    [ "$(sed -n 's/.* vocabulary //p' inspected | sort -u | wc -l)" -eq 1 ] || fail "the sides have other sizes"
    "$couplet" generate "$kind" -i lines.txt -o out 2>/dev/null
    [ "$(wc -l <out)" -eq 20 ] || fail generate
    "$couplet" train "$kind.yaml" --resume --set training.epochs=2 --progress none >/dev/null 2>messages ||
        fail "resume: $(cat messages)"
    # Rules and vocabulary of a part are those of both sides.
    for part in encoder decoder; do
        sed 's/, source: {tokens: [a-z]*}//' "$kind.yaml" >begun.yaml
        "$couplet" train begun.yaml -o "begun-$part" --init "$kind:$part" --progress none >/dev/null 2>messages ||
            fail "init: $(cat messages)"
        "$couplet" inspect "begun-$part" | grep ' vocabulary ' >begun
        grep ' vocabulary ' inspected | cmp - begun || fail "another vocabulary with $part"
        rm -rf "begun-$part"
    done
done
[ "$subwords" = yes ] || exit 0

# A model made by SentencePiece's own tools, with special ids of its own.
kind=given
cp "$here/text/subwords/bpe.model" "$here/text/subwords/bytes.model" .
cat >given.yaml <<END
model: {units: 16}
text: {source: {tokens: bpe, vocabulary: bpe.model}, target: {tokens: unigram, vocabulary: bytes.model}}
data: {train: train.tsv, valid: 10%}
training: {batch_size: 32, epochs: 1, threads: 1, show_examples: 0}
END
"$couplet" train given.yaml --progress none >report 2>messages || fail "$(cat messages)"
rm bpe.model bytes.model # the model file has all that is needed
"$couplet" inspect given | grep -q 'source vocabulary 401 entries' || fail "$("$couplet" inspect given | head)"
"$couplet" generate given -i lines.txt -o out 2>/dev/null
[ "$(wc -l <out)" -eq 20 ] || fail generate

# refused TEXT KEY=VALUE...: training is refused with this text
refused() {
    text=$1
    shift
    for set in "$@"; do
        set -- "$@" --set "$set"
        shift
    done
    cp "$here/text/subwords/bpe.model" .
    printf '\n[UNK]\n[START]\n[END]\na\n' >list.txt
    "$couplet" train given.yaml -o no "$@" --progress none >/dev/null 2>messages && fail "not refused: $text"
    grep -q "$text" messages || fail "'$text' is not in: $(cat messages)"
}
refused "of the kind bpe, but tokens are unigram" text.target.vocabulary=bpe.model
refused "not a SentencePiece model, which tokens: bpe needs" text.source.vocabulary=list.txt
refused "of the kind bpe, but tokens are word" text.source.tokens=word
refused "is set, but 'text.source.vocabulary'" text.source.vocabulary_size=300
echo ok
