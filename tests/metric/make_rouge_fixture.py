"""Writes rouge_fixture.json with the scores that rouge-score gives (see README.md in this folder).

    python3 -m venv v && v/bin/pip install rouge-score==0.1.2 sacrebleu==2.6.0
    v/bin/python make_rouge_fixture.py
"""
import importlib.metadata
import json
import pathlib
import random

from rouge_score import rouge_scorer
from sacrebleu.tokenizers.tokenizer_13a import Tokenizer13a

KINDS = ["rouge1", "rouge2", "rougeL", "rougeLsum"]

# output, references
TRICKY = [
    ("the cat sat on the mat", ["the cat lay on the mat"]),
    ("The QUICK brown Fox!", ["the quick, brown fox"]),
    ("", ["something was here"]), ("something extra", [""]), ("", [""]), ("   ", ["a"]), ("...", ["?!"]),
    ("a", ["a"]), ("a", ["b"]), ("a b", ["b a"]),
    ("the the the the the the the", ["the cat is on the mat"]),
    ("the cat is on the mat", ["the the the the"]),
    ("b a b a b a", ["a b a b"]),
    ("It cost $1,299.99 in 2021 (tax included)", ["It costs $1299.99 in 2021, tax included."]),
    ("state-of-the-art 3-speed x2y", ["state of the art 3 speed x2 y"]),
    ("mail me@example.org or http://example.org/a_b?c=d#e", ["mail me@example.org, or http://example.org/a_b"]),
    ("La casa, ¿dónde está?", ["¿Donde esta la casa?"]), ("café au lait", ["cafe au lait", "caf au lait"]),
    ("Я живу в Москве", ["Я живу в Риге"]), ("我喜欢 tea 喝茶", ["我 tea"]),
    ("273 \u212a and \u212aelvin", ["273 k and kelvin"]), ("\u0130stanbul \u0130\u0130", ["i stanbul", "istanbul i i"]),
    ("\u212bngstr\u00f6m \u0131 \u017fs \uff41\uff11 \u0660", ["ngstr m ss a1 0"]),
    ("emoji 😀👍🏽 and e\u0301 combined", ["emoji and e combined"]), ("nul\x00byte \x0b\x0c\r tab\tend", ["nul byte tab end"]),
    ("no\u00a0break\u2028line\u0085next", ["no break line next"]),
    ("first sentence here\nsecond one there", ["second one there\nfirst sentence here"]),
    ("first sentence here second one there", ["second one there\nfirst sentence here"]),
    ("a b c\n\n\n d e\n", ["\na b\nc d e"]), ("\n\n", ["a\nb"]), ("?\na b", ["a\n!\nb"]), ("a b\r\nc d", ["c d\r\na b"]),
    ("w1 w2 w3 w4 w5", ["w1 w2 w6 w7 w8\nw1 w3 w8 w9 w5"]),
    ("w1 w2 w6 w7 w8\nw1 w3 w8 w9 w5", ["w1 w2 w3 w4 w5"]),
    ("a a b\na c", ["a b a\nc a a"]), ("x a y b z\nb z a y x", ["a b x y z\nz y x b a", "x y z"]),
    ("police killed the gunman", ["police kill the gunman", "the gunman police killed", "the gunman was shot dead"]),
    ("one two three four", ["one two", "four three two one zero", "one two three four"]),
    ("same f", ["f same", "same f g h", ""]),
]


def sentence(rng, vocabulary, length):
    return " ".join(rng.choice(vocabulary) for _ in range(length))


def text(rng, size, longest):
    """Sentences of few different words, so that common subsequences are long and there are many of them."""
    vocabulary = [f"{rng.choice('abcdefgh')}{i}" for i in range(size)]
    vocabulary += [rng.choice(["Über", "It's", "U.S.", "3,000", "naïve", "x-y"])]
    make = lambda: "\n".join(sentence(rng, vocabulary, rng.randrange(longest)) for _ in range(rng.randrange(1, 6)))
    return make(), [make() for _ in range(rng.choice([1, 1, 2, 4]))]


def score(scorer, output, references):
    found = scorer.score_multi(references, output)
    return {kind: 100 * float(found[kind].fmeasure) for kind in KINDS}


class Pieces:
    """BLEU's pieces of the lower-cased text: rouge-score takes any object that splits."""

    def __init__(self, split):
        self.split = split

    def tokenize(self, text):
        return self.split(text.lower()).split()


SPLITS = {"13a": Tokenizer13a(), "none": lambda text: text}


def main():
    rng = random.Random(11)
    scorer = rouge_scorer.RougeScorer(KINDS, use_stemmer=False)
    items = list(TRICKY)
    items += [text(rng, size, longest) for size in (2, 5, 20) for longest in (4, 12, 40) for _ in range(8)]
    words = [f"word{i}" for i in range(300)]
    items += [(sentence(rng, words, 700), [sentence(rng, words, 600)]),
              ("\n".join(sentence(rng, words[:80], 25) for _ in range(12)),
               ["\n".join(sentence(rng, words[:80], 30) for _ in range(9)) for _ in range(2)])]
    pieces = {name: rouge_scorer.RougeScorer(KINDS, tokenizer=Pieces(split)) for name, split in SPLITS.items()}
    items = [{"output": o, "references": r, "expected": score(scorer, o, r),
              **{name: score(s, o, r) for name, s in pieces.items()}} for o, r in items]
    root = {"made_with": "rouge-score " + importlib.metadata.version("rouge-score"), "items": items,
            "mean": {kind: sum(item["expected"][kind] for item in items) / len(items) for kind in KINDS}}
    to = pathlib.Path(__file__).with_name("rouge_fixture.json")
    to.write_text(json.dumps(root, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")


main()
