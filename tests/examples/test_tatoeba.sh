#!/bin/sh
# examples/tatoeba.yaml for a few steps; skipped where its data or subwords are not.
if ! "$1" --version | grep -q '^sentencepiece yes'; then
    echo "skipped: this build has no subwords"
    exit 77
fi
exec sh "$(dirname "$0")/data_set.sh" "$1" tatoeba
