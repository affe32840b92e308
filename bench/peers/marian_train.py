#!/usr/bin/env python3
"""Marian's wheel (pymarian) training its own recurrent translator on the lengths of the others: words/s.

One layer of GRU in both directions, its conditional GRU with attention, 256 units and 5,000 words: Marian's own model
of these sizes, not the same function as the others'. Couplet's figure beside it is target words a second.
--order file: batches are the lines in order, as everywhere here; sorted: Marian's default, sorted by length.
"""
import argparse
import json
import os
import re
import resource
import subprocess
import sys
import tempfile
import time

p = argparse.ArgumentParser()
p.add_argument("--peers", required=True, help="folder with lengths.py and lengths_translator.txt")
p.add_argument("--threads", type=int, default=1)
p.add_argument("--batch", type=int, default=64)
p.add_argument("--units", type=int, default=256)
p.add_argument("--vocab", type=int, default=5000)
p.add_argument("--steps", type=int, default=40, help="updates after the first ones")
p.add_argument("--warm", type=int, default=5)
p.add_argument("--order", choices=["file", "sorted"], default="file")
p.add_argument("--run", help=argparse.SUPPRESS)  # in the process of its own: Marian's options
a = p.parse_args()
if a.run:
    import pymarian
    sys.exit(pymarian.Trainer(a.run).train() and 0)
sys.path.insert(0, a.peers)
import lengths  # noqa: E402


def write_corpus(folder):
    """END is Marian's own: a line has one word less than its length."""
    pairs = lengths.load("translator")
    for side, (name, seed) in enumerate((("source", 10), ("target", 11))):
        words = lengths.words(len(pairs) * 32, a.vocab, seed).reshape(len(pairs), 32)
        with open(f"{folder}/{name}", "w") as f:
            for row, n in zip(words, pairs[:, side]):
                f.write(" ".join(f"w{w}" for w in row[:max(1, n - 1)]) + "\n")
    with open(f"{folder}/words.yml", "w") as f:
        f.write("</s>: 0\n<unk>: 1\n" + "".join(f"w{i}: {i}\n" for i in range(2, a.vocab)))


def options(folder):
    order = "--shuffle none --maxi-batch 1 --maxi-batch-sort none" if a.order == "file" else "--shuffle data"
    return (f"--type s2s --train-sets {folder}/source {folder}/target --vocabs {folder}/words.yml {folder}/words.yml "
            f"--dim-vocabs {a.vocab} {a.vocab} --model {folder}/model.npz --tempdir {folder} "
            f"--dim-emb {a.units} --dim-rnn {a.units} --enc-depth 1 --dec-depth 1 --mini-batch {a.batch} "
            f"--mini-batch-round-up=false --learn-rate 0.001 --cost-type ce-mean-words --seed 7 "
            f"--after-batches {a.warm + a.steps + 1} --disp-freq 1u --save-freq 1000000u --workspace 512 "
            f"--cpu-threads {a.threads} {order}")


with tempfile.TemporaryDirectory() as folder:
    write_corpus(folder)
    start = time.perf_counter()
    run = subprocess.run([sys.executable, __file__, "--peers", a.peers, "--run", options(folder)], capture_output=True,
                         text=True, env=dict(os.environ, OMP_NUM_THREADS="1"))
wall = time.perf_counter() - start
out = run.stdout + run.stderr
# "Ep. 1 : Up. 12 : Sen. 768 : Cost 8.43 : Time 0.31s : 3276.80 words/s : gNorm 0.25"; words: labels, END too
shown = [(float(seconds) * float(rate.replace(",", "")), float(seconds)) for seconds, rate in
         re.findall(r"Up\. [\d,]+ .*?: Time ([\d.]+)s : ([\d.,]+) words/s", out)]
shown = shown[a.warm:]
if not shown:
    sys.exit(f"Marian trained nothing (exit {run.returncode}); its last lines:\n" + "\n".join(out.splitlines()[-8:]))
seconds = sorted(s for _, s in shown)
print(json.dumps(dict(
    peer="marian", workload="translator", variant=a.order, threads=a.threads, B=a.batch, units=a.units, vocab=a.vocab,
    n_steps=len(shown), step_ms=round(1e3 * seconds[len(seconds) // 2], 2),
    tok_s=round(sum(n for n, _ in shown) / sum(s for _, s in shown)), wall_s=round(wall, 1),
    peak_rss_mib=round(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024))))
