#!/bin/sh
# test_peers.sh COUPLET: bench/peers/run without peers but one that is made up, and bench/growth.py on figures whose lines
# are known: what the table says of ratios, targets, and of what does not run.
set -eu
couplet=$1
bench=$(cd "$(dirname "$0")/../../bench" && pwd)
python=${COUPLET_SENTENCEPIECE_PYTHON:-python3}
command -v "$python" >/dev/null || exit 77
folder=$(mktemp -d "${TMPDIR:-/tmp}/couplet-peers.XXXXXX")
trap 'rm -rf "$folder"' EXIT
cd "$folder"
PYTHONDONTWRITEBYTECODE=1
export PYTHONDONTWRITEBYTECODE

fail() {
    echo "FAILED: $*"
    exit 1
}
holds() {
    grep -qF -- "$1" "$2" || fail "'$1' is not in: $(cat "$2")"
}

# A peer that takes a million milliseconds with one variant and half with the other, and one that is not there.
mkdir peers
printf '4 4\n5 3\n' >peers/lengths_translator.txt
cat >peers/keras_translator.py <<'END'
import json, sys
ms = 5e5 if "eager" in sys.argv else 1e6
print("not JSON")
print(json.dumps(dict(step_ms=ms, tok_s=1, first_step_s=1e4, peak_rss_mib=1)))
END
"$python" "$bench/peers/run" --quick --threads 1 --couplet "$couplet" --peers peers --cache none --keras "$python" \
    --rows decode-1,decode-1-eager --json table.json >table 2>told || fail "$(cat told)"
holds 'PyTorch: not installed' table
holds 'ONNX Runtime: not installed' table
holds '| 200 × Keras: yes |' table
holds '6 × the best: yes' table
holds 'decode-1: Keras loopfn: 1000000.00 ms' told
"$python" - <<'END'
import json
t = json.load(open("table.json"))
one, eager = t["rows"]
assert one["id"] == "decode-1" and one["couplet"] > 0, one
assert abs(one["peers"]["keras"]["ratio"] * one["couplet"] / 1e6 - 1) < 1e-6, one
assert abs(eager["peers"]["keras"]["ratio"] * eager["couplet"] / 5e5 - 1) < 1e-6, eager
assert eager["targets"] == [dict(against="keras", target=200, ratio=eager["peers"]["keras"]["ratio"], met=True)], eager
assert len(t["runs"]) == 5, t["runs"]
END

code=0
"$python" "$bench/peers/run" --peers peers --couplet "$couplet" --rows sing >out 2>err || code=$?
[ "$code" -ne 0 ] || fail "an unknown row is taken"
holds 'unknown rows sing' err
code=0
"$python" "$bench/peers/run" --peers nowhere >out 2>err || code=$?
[ "$code" -ne 0 ] || fail "a folder that is not there is taken"
holds '--peers says where' err

# Time a token 2, 2.5 and 2 µs; a step of 3 + 2 n ms by source; by target a quarter above the line through the others.
"$python" - <<'END'
import json
rows = [dict(work="growth", name="batch", size=n, ms=1, tokens_per_s=1e6 / us, planned_bytes=n * 2**20)
        for n, us in ((16, 2), (32, 2.5), (64, 2))]
rows += [dict(work="growth", name="source", size=n, ms=3 + 2 * n, tokens_per_s=1, planned_bytes=1) for n in (8, 16, 32)]
rows += [dict(work="growth", name="target", size=n, ms=ms, tokens_per_s=1, planned_bytes=1)
         for n, ms in ((10, 10), (20, 25), (30, 30))]
json.dump(dict(results=rows), open("growth.json", "w"))
END
"$python" "$bench/growth.py" --from growth.json --svg growth.svg >out
# The line through (10, 10), (20, 25), (30, 30) is 5/3 + n: 11.67, 21.67, 31.67; the first lies 1/7 off, the second 2/13.
holds 'within 25 %; off a straight line: source length 0 %, target length 15 %, memory by batch 0.0 %' out
"$python" - <<'END'
import xml.etree.ElementTree as tree
root = tree.parse("growth.svg").getroot()
assert sum(e.tag.endswith("circle") for e in root) == 12, "a dot for each point of four panels"
END
