#!/bin/sh
# test_memory_limit.sh COUPLET: training under a limit on the address space (ulimit -v), from far too little to enough:
# it trains to the end, or says why not before anything is written. It never dies half-way and is never killed.
set -eu
couplet=$1
data=$(cd "$(dirname "$0")/../../data/sample" && pwd)
[ -z "${COUPLET_SANITIZED-}" ] || exit 77 # sanitizers reserve more address space than any limit leaves
folder=$(mktemp -d "${TMPDIR:-/tmp}/couplet-limit.XXXXXX")
trap 'rm -rf "$folder"' EXIT
cd "$folder"
(ulimit -v 4000000) 2>/dev/null || exit 77

head -n 600 "$data/train.tsv" >train.tsv
head -n 60 "$data/valid.tsv" >valid.tsv
cat >m.yaml <<END
model: {units: 96, dropout: 0.1}
data: {train: train.tsv, valid: valid.tsv}
training: {batch_size: 128, max_steps: 4, threads: 2, show_examples: 1, checkpoint_every: 2, log_every: 1}
END

# Whole numbers of a key of the start event.
value() {
    sed -n 's/.*"event": *"start".*"'"$1"'": *\([0-9]*\).*/\1/p' m/log.jsonl
}

fail() {
    echo "FAILED with ulimit -v $limit: $*"
    cat errors
    exit 1
}

refused=0 cut=0 whole=0
limit=8000
while [ "$limit" -le 160000 ]; do
    rm -rf m
    status=0
    (
        ulimit -v "$limit"
        exec "$couplet" train m.yaml --progress none
    ) >output 2>errors || status=$?
    case $status in
    0)
        [ -f m/model.safetensors ] || fail "no model"
        if [ "$(value micro_batch)" -lt 128 ]; then cut=$((cut + 1)); else whole=$((whole + 1)); fi
        ;;
    1 | 2 | 127) # 127: not even the program's libraries could be loaded
        [ -s errors ] || fail "exit $status without a message"
        [ ! -e m ] || fail "exit $status after the run had begun"
        [ "$cut$whole" = 00 ] || fail "refused, but a smaller limit was enough"
        if [ "$status" = 2 ]; then
            refused=$((refused + 1))
            grep -q "ulimit -v" errors || fail "the limit is not named"
        fi
        ;;
    *) fail "exit $status" ;;
    esac
    if [ "$limit" -lt 40000 ]; then limit=$((limit + 1000)); else limit=$((limit + 8000)); fi
done
echo "$refused refused, $cut trained in pieces, $whole in whole batches"
[ "$refused" -gt 0 ] && [ "$cut" -gt 0 ] && [ "$whole" -gt 0 ]

# A run that has begun goes on under the tightest limit that it can begin with.
limit=160000
rm -rf m
"$couplet" train m.yaml --progress none --set training.max_steps=2 >output 2>errors || fail "no limit, exit $?"
(
    ulimit -v "$limit"
    exec "$couplet" train m.yaml --progress none --resume
) >output 2>errors || fail "resumed, exit $?"

# --memory on the command line: what does not fit touches nothing, not even with --overwrite.
limit=none
cp m/log.jsonl before
status=0
"$couplet" train m.yaml --overwrite --memory 2MiB >output 2>errors || status=$?
[ "$status" = 2 ] || fail "--memory 2MiB, exit $status"
cmp before m/log.jsonl || fail "--memory 2MiB touched the run"
grep -q "does not depend on the batch size" errors || fail "--memory 2MiB does not say what is too large"
"$couplet" plan m.yaml --memory 20MiB | grep -q "^micro-batch 128 of 128, recomputation none" || fail "plan does not say recomputation"
