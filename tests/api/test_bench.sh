#!/bin/sh
# test_bench.sh COUPLET: couplet bench on small models: its figures are there and possible, and what it cannot do it
# refuses. No figure of speed is checked: other work shares the machine.
set -eu
couplet=$1
python=${COUPLET_SENTENCEPIECE_PYTHON:-python3}
folder=$(mktemp -d "${TMPDIR:-/tmp}/couplet-bench.XXXXXX")
trap 'rm -rf "$folder"' EXIT
cd "$folder"

fail() {
    echo "FAILED: $*"
    exit 1
}
# refused TEXT ARGUMENT...: exit 2 with this text
refused() {
    text=$1
    shift
    code=0
    "$couplet" bench "$@" >out 2>err || code=$?
    [ "$code" -eq 2 ] || fail "exit $code for: $*"
    grep -qF -- "$text" err || fail "'$text' is not in: $(cat err)"
}

refused "unknown work 'translater'" translater
refused "did you mean 'translator'?" translater
refused "unknown work 'sing', expected translator" sing
refused "got 'training.epochs=3'" translator --set training.epochs=3
refused "'model.tie' is all" translator --set model.tie=all --set training.optimizer.sparse_embeddings=true
refused "got 'model.type=summarizer'" translator --set model.type=summarizer
refused "unknown key 'model.unit'" translator --set model.unit=3
refused "expected a whole number from 5" --vocabulary 3
refused "a model file is for the work 'decode'" translator --model m.safetensors
refused "is either read or written" decode --model a --keep-model b
refused "has its own configuration" decode --model a --set model.units=8
refused "--precision" --precision float16
printf '3 4\n5 x\n' >odd
refused "line 2 is not two lengths" translator --lengths odd
printf '3 0\n' >odd
refused "line 1 is not two lengths from 1 to 100000" translator --lengths odd
: >empty
refused "the file is empty" translator --lengths empty
refused "is named 'nothing'" translator --freeze nothing --steps 1 --set model.units=8 --vocabulary 20

# All works on models of a few weights.
printf '2 3\n4 4\n3 2\n2 3\n' >lengths
small="--set model.units=8 --vocabulary 20 --seconds 0.01 --threads 1 --json"
# shellcheck disable=SC2086
"$couplet" bench $small --batch 2 --lengths lengths >all.json 2>told
grep -q 'training steps of the translator' told || fail "nothing was told: $(cat told)"
# shellcheck disable=SC2086
"$couplet" bench growth $small --steps 1 >growth.json 2>told
# shellcheck disable=SC2086
"$couplet" bench decode $small --steps 2 --tokens 5 --keep-model kept.safetensors >kept.json 2>told
"$couplet" bench --model kept.safetensors --steps 2 --tokens 5 --threads 1 --json >again.json 2>told
"$couplet" bench translator --steps 1 --set model.units=8 --vocabulary 20 --freeze encoder --precision bfloat16 \
    --threads 1 --json >frozen.json 2>told
for sparse in true false; do
    "$couplet" bench translator --steps 3 --batch 1 --set model.units=8 --vocabulary 200 --threads 1 --json \
        --set training.optimizer.sparse_embeddings=$sparse >sparse-$sparse.json 2>told
done
"$couplet" bench translator decode kernels --steps 1 --set model.units=8 --vocabulary 20 --threads 2 >table 2>told
for text in '2 threads' 'multiply-add, float32' 'read memory' 'training step' 'greedy decode' 'logits of one row'; do
    grep -qF "$text" table || fail "'$text' is not in the table: $(cat table)"
done
# A model that was kept is a model like any other.
echo 'w4 w5' | "$couplet" generate kept.safetensors --max-length 3 --tokens >out 2>err
[ "$(wc -l <out)" -eq 1 ] || fail "the kept model does not generate: $(cat err)"

command -v "$python" >/dev/null || { echo "no Python: the figures are not checked"; exit 77; }
"$python" - <<'END'
import json

def load(name):
    return json.load(open(name))

def check(ok, *what):
    if not ok:
        raise SystemExit(f"FAILED: {what}")

a = load("all.json")
check(a["threads"] == 1 and a["kernels"] and a["version"], a)
check(a["peak"]["float32_gflops_1"] > 0 and a["peak"]["float32_gflops"] > 0, a["peak"])
check(a["peak"]["read"][0]["level"] == "L2" and all(x["gbytes_per_s"] > 0 for x in a["peak"]["read"]), a["peak"])
rows = a["results"]
works = [r["work"] for r in rows]
check(works[:4] == ["translator", "autoencoder", "summarizer", "decode"], works)
check(works[4:] == ["kernel"] * 11, works)
for r in rows:
    check(0 < r["share"] < 1.2, r)
    check(0 < r["ms_least"] <= r["ms"] <= r["ms_most"] and r["steps"] >= 3, r)
    check(abs(r["gflops"] - r["gflop"] / r["ms"] * 1e3) <= 1e-4 * r["gflops"], r)
    check(("read_share" in r) == (r.get("m") == 1 or (r["work"] == "decode" and r["batch"] == 1)), r)
translator = rows[0]
# embedding 2 · 20·8; encoder 2 · (2 · 8·24 + 2 · 24); decoder 2 · 8·24 + 2 · 24; attention 4 · (8·8 + 8), norm 2 · 8; 9 · 20
check(translator["parameters"] == 320 + 864 + 432 + 288 + 16 + 180, translator)
check(translator["planned_bytes"] > 0 and translator["state_bytes"] >= 16 * translator["parameters"], translator)
check(translator["peak_bytes"] > translator["base_bytes"] > 0 and translator["setup_s"] > 0, translator)
check(translator["first_step_s"] >= translator["setup_s"] - 0.02, translator)
check("first_step_s" not in rows[1], rows[1])
check(abs(translator["first_loss"] - 2.9957) < 0.2, "ln 20 before any step", translator)
check(rows[2]["parameters"] == 320 + 2 * (2 * 8 * 32 + 32) + 2 * 64 + 8 + 8 + 17 * 20, rows[2])
check(rows[3]["batch"] == 2 and rows[3]["tokens"] == 16, rows[3])

lazy, dense = load("sparse-true.json")["results"][0], load("sparse-false.json")["results"][0]
check(lazy["first_loss"] == dense["first_loss"] and lazy["last_loss"] != dense["last_loss"], lazy, dense)

g = load("growth.json")["results"]
check([r["size"] for r in g] == [16, 32, 64, 128, 256] + 2 * [8, 16, 32, 64, 128], g)
check([r["name"] for r in g] == ["batch"] * 5 + ["source"] * 5 + ["target"] * 5, g)
# Work and memory are those of the lengths, whatever the machine does.
check(g[4]["planned_bytes"] > 8 * g[0]["planned_bytes"], g)
check(g[14]["gflop"] > 5 * g[10]["gflop"] and g[9]["gflop"] > 5 * g[5]["gflop"], g)

kept, again = load("kept.json")["results"], load("again.json")["results"]
check([r["batch"] for r in kept] == [1, 64] and [r["batch"] for r in again] == [1, 64], kept, again)
for x, y in zip(kept, again):
    check(x["parameters"] == y["parameters"] and x["gflop"] == y["gflop"] and y["precision"] == "float32", x, y)
check(abs(kept[1]["tokens_per_s"] * kept[1]["ms"] / 1e3 / (64 * 5) - 1) < 0.9, kept[1])

f = load("frozen.json")["results"][0]
check(f["precision"] == "bfloat16" and f["parameters"] == translator["parameters"] - 160 - 864, f)
END
