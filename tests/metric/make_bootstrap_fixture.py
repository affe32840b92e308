"""Writes bootstrap_fixture.json: two made-up systems, and how sure sacreBLEU is of their scores (see README.md).

    python3 -m venv v && v/bin/pip install sacrebleu==2.6.0
    v/bin/python make_bootstrap_fixture.py

Intervals are the 1/40 and 39/40 quantiles of sacreBLEU's own resamples, p that of its --paired-bs; both are means over
several seeds, so that what is left is the spread of one run.
"""
import json
import os
import pathlib
import random

import numpy as np
import sacrebleu
from sacrebleu.metrics import BLEU, CHRF
from sacrebleu.significance import Result, _bootstrap_resample, _paired_bs_test

ITEMS, SAMPLES, SEEDS = 500, 2000, 8


def spoil(words, share, rng, vocabulary):
    out = []
    for word in words:
        p = rng.random()
        out += [] if p < share / 3 else [rng.choice(vocabulary)] if p < share else [word]
    return out


def texts():
    rng = random.Random(3)
    vocabulary = ["".join(rng.choice("aeiouklmnprst") for _ in range(rng.randrange(1, 6))) for _ in range(150)]
    references = [[rng.choice(vocabulary) for _ in range(rng.randrange(3, 15))] for _ in range(ITEMS)]
    share = [rng.random() for _ in range(ITEMS)]
    better = [spoil(r, 0.7 * s, rng, vocabulary) for r, s in zip(references, share)]
    worse = [spoil(r, 0.755 * s, rng, vocabulary) for r, s in zip(references, share)]
    return [[" ".join(words) for words in side] for side in (better, worse, references)]


def main():
    better, worse, references = texts()
    figures = {}
    for name, make in {"bleu": BLEU, "chrf": CHRF}.items():
        lows, highs, ps = [], [], []
        metric = make()
        stats = metric._extract_corpus_statistics(better, [references])
        baseline = metric._extract_corpus_statistics(worse, [references])
        base_score = metric._aggregate_and_compute(baseline)
        for seed in range(SEEDS):
            os.environ["SACREBLEU_SEED"] = str(seed)
            scores = np.sort([s.score for s in _bootstrap_resample(stats, metric, SAMPLES)[1]])
            lows.append(scores[SAMPLES // 40])
            highs.append(scores[SAMPLES - SAMPLES // 40 - 1])
            _, results = _paired_bs_test({name: (baseline, Result(base_score.score))}, "better", better, [references],
                                         {name: metric}, SAMPLES, seed=seed)
            ps.append(results[name].p_value)
        figures[name] = {"score": metric._aggregate_and_compute(stats).score, "baseline": base_score.score,
                         "low": float(np.mean(lows)), "high": float(np.mean(highs)), "p": float(np.mean(ps))}
        print(name, figures[name], "spread of p", np.std(ps), "of bounds", np.std(lows), np.std(highs))
    root = {"made_with": "sacrebleu " + sacrebleu.__version__, "samples": SAMPLES, "figures": figures,
            "outputs": better, "baseline": worse, "references": references}
    to = pathlib.Path(__file__).with_name("bootstrap_fixture.json")
    to.write_text(json.dumps(root, ensure_ascii=False, indent=0) + "\n", encoding="utf-8")


main()
