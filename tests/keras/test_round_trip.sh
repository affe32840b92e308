#!/bin/sh
# Weights from Keras, imported, exported and loaded again. COUPLET_KERAS_PYTHON: a Python that has Keras; default: python3.
set -eu
cd "$(dirname "$0")"
python=${COUPLET_KERAS_PYTHON:-python3}
"$python" -c 'import keras' 2>/dev/null || { echo "Keras is not installed"; exit 77; }
exec "$python" test_round_trip.py "$1"
