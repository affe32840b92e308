#!/bin/sh
# examples/g2p-cmudict.yaml for a few steps; skipped where its data are not.
exec sh "$(dirname "$0")/data_set.sh" "$1" g2p-cmudict
