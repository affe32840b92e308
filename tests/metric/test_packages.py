"""Compares `couplet evaluate --outputs` with sacreBLEU and rouge-score: scores and signatures, one or several references,
every tokenizer, intervals and the paired test. COUPLET_METRICS_SEED draws other texts.
"""
import json
import os
import pathlib
import random
import subprocess
import sys
import tempfile

from rouge_score import rouge_scorer
from sacrebleu.metrics import BLEU, CHRF
from sacrebleu.significance import PairedTest

COUPLET = sys.argv[1]
KINDS = ["rouge1", "rouge2", "rougeL", "rougeLsum"]
SCRIPTS = ["abcdefghijklmnop", "éüñçßøåœ", "абвгдежз", "αβγδεζηθ", "日本語今天喝茶", "हिन्दीवहघर", "مرحبانعم"]
MARKS = list(".,;:!?()[]'\"-–—…«»„“¿¡。、،؟।$€£+=<>^|~©№°%&/\\*#@_{}`") + ["3", "1,5", "2.7.", "½", "²", "٣", "५", "😀", "e\u0301"]


def word(rng):
    letters = rng.choice(SCRIPTS)
    text = "".join(rng.choice(letters) for _ in range(rng.randrange(1, 6)))
    for _ in range(2):
        if rng.random() < 0.3:
            mark = rng.choice(MARKS)
            text = text + mark if rng.random() < 0.7 else mark + text
    return text


def spoil(words, rng, vocabulary, share):
    out = []
    for w in words:
        p = rng.random()
        out += [] if p < share / 3 else [rng.choice(vocabulary)] if p < share else [w]
    return out


def make(rng, items, references):
    """Texts of systems a and b, and the references of each item."""
    vocabulary = [word(rng) for _ in range(120)]
    truth = [[rng.choice(vocabulary) for _ in range(rng.randrange(1, 14))] for _ in range(items)]
    a, b = ([" ".join(spoil(t, rng, vocabulary, share)) for t in truth] for share in (0.3, 0.34))
    many = [[" ".join(t)] + [" ".join(spoil(t, rng, vocabulary, 0.3)) or "x" for _ in range(rng.randrange(references))]
            for t in truth]
    return a, b, many


def evaluate(folder, *options):
    command = [COUPLET, "evaluate", "--outputs", folder / "a.txt", folder / "pairs.tsv", "--json", *options]
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def check(what, got, expected, by=1e-9):
    if not abs(got - expected) <= by:
        sys.exit(f"{what}: got {got!r}, expected {expected!r}")


def compare(folder, a, b, many, tokenize):
    streams = [[refs[i] if i < len(refs) else None for refs in many] for i in range(max(map(len, many)))]
    (folder / "pairs.tsv").write_text("".join(f"source {i}\t{r}\n" for i, refs in enumerate(many) for r in refs))
    (folder / "a.txt").write_text("\n".join(a) + "\n")
    (folder / "b.txt").write_text("\n".join(b) + "\n")
    found = evaluate(folder, "--group", "source", "--metric", "bleu,chrf,chrf++,exact", "--tokenize", tokenize)
    metrics = {"bleu": BLEU(tokenize=tokenize, force=True), "chrf": CHRF(), "chrf++": CHRF(word_order=2)}
    for name, metric in metrics.items():
        check(f"{name}, {tokenize}", found[name]["score"], metric.corpus_score(a, streams).score)
        signature = str(metric.get_signature()).split("|version")[0]
        if found[name]["signature"].split("|version")[0] != signature:
            sys.exit(f"{name}: signature {found[name]['signature']}, expected {signature}")
    check("exact", found["exact"]["score"], sum(x in refs for x, refs in zip(a, many)) / len(a))


def compare_rouge(folder, a, many):
    found = evaluate(folder, "--group", "source", "--metric", "rouge")
    scorer = rouge_scorer.RougeScorer(KINDS, use_stemmer=False)
    scores = [scorer.score_multi(refs, x) for x, refs in zip(a, many)]
    for kind in KINDS:
        check(kind, found[kind]["score"], 100 * sum(s[kind].fmeasure for s in scores) / len(scores))


def compare_systems(folder, a, b, many):
    """Other random numbers: what one run of either gives differs by its spread, about 3 % of the interval's width."""
    samples = 4000
    found = evaluate(folder, "--group", "source", "--metric", "bleu,chrf", "--baseline", folder / "b.txt",
                     "--bootstrap", str(samples))
    streams = [[refs[i] if i < len(refs) else None for refs in many] for i in range(max(map(len, many)))]
    metrics = {"bleu": BLEU(force=True), "chrf": CHRF()}
    _, results = PairedTest([("b", b), ("a", a)], metrics, streams, test_type="bs", n_samples=samples)()
    for (_, theirs), name in zip(list(results.items())[1:], metrics):
        ours, (base, system) = found[name], theirs
        low, high = ours["confidence"]
        check(name, ours["score"], system.score)
        check(f"{name} of the baseline", ours["baseline"]["score"], base.score)
        check(f"{name}, mean of the resamples", ours["mean"], system.mean, 0.2 * system.ci)
        check(f"{name}, half of the interval", (high - low) / 2, system.ci, 0.15 * system.ci)
        check(f"{name}, p", ours["p_value"], system.p_value, 0.01 + 0.25 * system.p_value)
        print(f"{name}: {low:.2f} to {high:.2f}, p {ours['p_value']:.4f}; sacreBLEU: {system.mean:.2f} ± "
              f"{system.ci:.2f}, p {system.p_value:.4f}")


def main():
    seed = int(os.environ.get("COUPLET_METRICS_SEED", "1"))
    rng = random.Random(seed)
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        for tokenize in ("13a", "intl", "char", "none"):
            for references in (1, 4):
                a, b, many = make(rng, 150, references)
                compare(folder, a, b, many, tokenize)
                compare_rouge(folder, a, many)
        a, b, many = make(rng, 400, 1)
        compare(folder, a, b, many, "13a")
        compare_systems(folder, a, b, many)


main()
