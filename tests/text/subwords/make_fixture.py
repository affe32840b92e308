"""Writes the SentencePiece models and subwords.json beside it: how the Python package cuts and joins text with them.

    python3 -m venv v && v/bin/pip install sentencepiece==0.2.3
    v/bin/python make_fixture.py ../../../data/sample/train.tsv

The models have the package's own special ids (unknown 0, start 1, end 2, no padding), so that what Couplet makes of them
is seen too. `ids` are Couplet's: 1 for unknown, 4 for the first ordinary piece.
"""
import json
import pathlib
import sys

import sentencepiece as spm

TEXTS = [
    "I have not been there.",
    "¿Dónde está la casa? ¡Allí!",
    "Tom doesn't know that.",
    "  two  spaces\t and\u3000more \u00a0",
    "",
    " ",
    "☃",
    "snow ☃☃ man☃",
    "我喜欢喝茶。",
    "e\u0301 and é",
    "\U0001f469\u200d\U0001f467 family",
    "[UNK] [START] [END] <unk> <s> </s>",
    "under\u2581score \u2581",
    "x\u2585y",
    "zzzzqqqqwwww",
    "1,000 3.14 1990-95",
    "<0x41> <0x0A>",
]
SPACES = dict.fromkeys(map(ord, "\t\u00a0\u3000\u2581"), " ")


def squeezed(text):
    """White space as Couplet sees it: one space for a run, trimmed."""
    return " ".join(word for word in text.translate(SPACES).split(" ") if word)


def main():
    folder = pathlib.Path(__file__).parent
    lines = pathlib.Path(sys.argv[1]).read_text(encoding="utf-8").splitlines()[:600]
    texts = [field for line in lines for field in line.split("\t")[:2]]
    fixture = {}
    for name, kind, options in [("bpe", "bpe", {}), ("unigram", "unigram", {}),
                                ("bytes", "unigram", {"byte_fallback": True, "hard_vocab_limit": False})]:
        spm.SentencePieceTrainer.train(sentence_iterator=iter(texts), model_prefix=str(folder / name), vocab_size=400,
                                       model_type=kind, normalization_rule_name="identity", character_coverage=0.999,
                                       minloglevel=2, **options)
        (folder / (name + ".vocab")).unlink()
        model = spm.SentencePieceProcessor(model_file=str(folder / (name + ".model")))
        size = model.get_piece_size()
        cases = []
        for text in TEXTS:
            ids = model.encode(squeezed(text))
            cases.append({"text": text, "pieces": model.encode(squeezed(text), out_type=str),
                          "ids": [i + 1 for i in ids], "joined": model.decode(model.encode(squeezed(text), out_type=str)),
                          "known": 0 not in ids})
        outputs = [{"ids": [i + 1 for i in ids], "text": model.decode(ids)} for ids in
                   ([5, 6, 7], [size - 1, size - 2, 40, 41], list(range(100, 130)), list(range(3, size, 7)))]
        fixture[name] = {"size": size + 1, "cases": cases, "outputs": outputs,
                         "entries": [model.id_to_piece(i) for i in range(3, size)]}
    (folder / "subwords.json").write_text(json.dumps(fixture, ensure_ascii=True, separators=(",", ":")) + "\n")


main()
