#!/bin/sh
# isa.sh [BUILD] [CTEST ARGUMENT]...: the short suite with each table of kernels that this processor can run, confined to
# one processor (so with one thread, where a test does not ask for more) and on all of them. Tests that measure are left
# out: the readable kernels are a hundred times slower than the others.
set -eu
cd "$(dirname "$0")/.."
build=${1:-build}
[ $# -eq 0 ] || shift
allowed=$(taskset -cp $$ | sed 's/.*: //')
failed=
for isa in ref generic avx2 avx512 avx512bf16; do
    if COUPLET_ISA=$isa "$build/couplet" --version | grep -q '^kernels *none'; then
        echo "isa: $isa is not for this processor"
        continue
    fi
    for processors in "${allowed%%[,-]*}" "$allowed"; do
        echo "isa: $isa on processors $processors"
        COUPLET_ISA=$isa taskset -c "$processors" ctest --test-dir "$build" --output-on-failure -j "${JOBS:-$(nproc)}" \
            -LE 'slow|long' -E '^(structure_|train_memory|case_J02_)' "$@" >"$build/isa.log" 2>&1 ||
            failed="$failed $isa($processors)"
        grep -E '\*\*\*|tests passed' "$build/isa.log" || cat "$build/isa.log"
    done
done
[ -z "$failed" ] || { echo "isa: failed:$failed" >&2; exit 1; }
