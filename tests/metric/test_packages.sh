#!/bin/sh
# Scores of the command against sacreBLEU and rouge-score on texts drawn at random. COUPLET_METRICS_PYTHON: a Python that
# has both; default: python3.
set -eu
cd "$(dirname "$0")"
python=${COUPLET_METRICS_PYTHON:-python3}
"$python" -c 'import sacrebleu, rouge_score' 2>/dev/null || {
    echo "sacreBLEU and rouge-score are not installed (COUPLET_METRICS_PYTHON names a Python that has them)"
    exit 77
}
exec "$python" test_packages.py "$1"
