"""Weights from Keras through couplet and back: python test_round_trip.py COUPLET
Random models of the reference classes are saved by Keras, imported, exported, and loaded into fresh classes: their
logits must be those of the first, to the bit where nothing was computed. Exits with 77 where Keras is not installed."""
import os
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
try:
    import numpy as np
    import classes
except ImportError:
    print("Keras is not installed")
    sys.exit(77)

SOURCE, TARGET, UNITS = 23, 29, 8
MODELS = {
    "translator": (lambda: classes.Translator(SOURCE, TARGET, UNITS), ""),
    "summarizer": (lambda: classes.Summarizer(SOURCE, TARGET, UNITS), ""),
    "autoencoder": (lambda: classes.Autoencoder(SOURCE, UNITS), ""),
}


def words(path, prefix, size):
    with open(path, "w", encoding="utf-8") as f:
        f.write("\n".join(["", "[UNK]", "[START]", "[END]"] + [f"{prefix}{i}" for i in range(4, size)]) + "\n")


def batch(kind, random):
    source = random.integers(4, SOURCE, (4, 7))
    target = random.integers(4, TARGET, (4, 5))
    for row, (s, t) in enumerate([(7, 5), (5, 2), (3, 5), (2, 1)]):
        source[row, s:], target[row, t:] = 0, 0
    return source if kind == "autoencoder" else (source, target)


def run(*command):
    subprocess.run(command, check=True)


def check(couplet, folder, kind):
    make, more = MODELS[kind]
    random = np.random.default_rng(1)
    data = batch(kind, random)
    first, second = make(), make()
    first(data)
    first.set_weights([random.normal(0, 0.5, w.shape).astype("float32") for w in first.get_weights()])
    want = np.asarray(first(data))
    at = lambda name: os.path.join(folder, name)
    first.save_weights(at("first.weights.h5"))
    with open(at("c.yaml"), "w", encoding="utf-8") as f:
        f.write(f"model: {{type: {kind}, units: {UNITS}{more}}}\n")
    words(at("s.txt"), "s", SOURCE)
    words(at("t.txt"), "t", TARGET)
    files = ["--source-vocabulary", at("s.txt")]
    files += [] if kind == "autoencoder" else ["--target-vocabulary", at("t.txt")]
    run(couplet, "import", "keras", at("first.weights.h5"), "--config", at("c.yaml"), *files, "-o", at("m.safetensors"))
    run(couplet, "export", "keras", at("m.safetensors"), "-o", at("second.weights.h5"))
    second(data)
    second.load_weights(at("second.weights.h5"))
    difference = float(np.abs(np.asarray(second(data)) - want).max())
    same = all((a == b).all() for a, b in zip(first.get_weights(), second.get_weights()))
    print(f"{kind}: largest difference of the logits {difference:g}, weights {'equal' if same else 'DIFFER'}")
    return same and difference <= 1e-6


def main():
    couplet = os.path.abspath(sys.argv[1])
    with tempfile.TemporaryDirectory() as folder:
        if not all([check(couplet, folder, kind) for kind in MODELS]):
            sys.exit(1)


main()
