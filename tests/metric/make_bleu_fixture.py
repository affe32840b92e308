"""Writes bleu_fixture.json with the BLEU and chrF scores that sacreBLEU gives (see README.md in this folder).

    python3 -m venv v && v/bin/pip install sacrebleu==2.6.0 regex
    v/bin/python make_bleu_fixture.py TATOEBA_TEST.tsv
"""
import json
import pathlib
import random
import sys

import sacrebleu
from sacrebleu.metrics import CHRF
from sacrebleu.metrics.bleu import BLEU, _get_tokenizer

KINDS = ("13a", "none", "char", "intl")
WORD_ORDERS = {"chrf": 0, "chrf++": 2}
TRICKY = [
    ("The ferry leaves at 7.30, not 8.30.", "The ferry leaves at 7.30, not at 8.30."),
    ("It cost $1,299.99 (tax included)!", "It costs $1,299.99 (tax included)."),
    ("&quot;Stay,&quot; she said &amp; left.", "\"Stay\", she said & left."),
    ("a &lt;b&gt; tag and &amp;lt; twice", "a <b> tag and < twice"),
    ("a <skipped>word and an end- of line", "a word and an end-of-line"),
    ("state-of-the-art 3-speed, 1990-2000 and x-y", "state-of-the-art 3-speed 1990-2000 and x-y"),
    ("Wait... what?! No,, no.", "Wait ... what?! No, no."),
    (".5 and 5. and ,7, and 7,", ".5 and 5. and ,7 and 7,"),
    ("It's Anna's dog's 'bone'.", "It's Annas dogs 'bone'."),
    ("mail me@example.org or http://example.org/a_b?c=d#e", "mail to me@example.org or http://example.org/a_b?c=d"),
    ("100% of 50*2+3^2=~109 [sic] {x|y} `z` \\ /", "100% of 50*2 + 3^2=~109 [sic] {x|y} `z` \\ /"),
    ("La casa, ¿dónde está? ¡Allí!", "¿Dónde está la casa? ¡Allí!"),
    ("Zürich – «größer» als „Köln“… 3,5 °C", "Zürich ist «größer» als „Köln“, 3,5 °C"),
    ("Я живу в Москве, а ты?", "Я живу в Риге, а ты?"),
    ("我喜欢喝茶。你呢?", "我喜欢喝咖啡。你呢?"),
    ("今日は 良い\u3000天気です。", "今日は良い 天気です。"),
    ("no\u00a0break\u2009thin\u2028line\u0085next", "no break thin line next"),
    ("emoji 😀👍🏽 and e\u0301 combined", "emoji 😀 👍🏽 and é combined"),
    ("zero\u200bwidth \ufeffmark soft\u00adhyphen", "zero\u200bwidth mark soft\u00adhyphen"),
    ("٣٫٥ and ½ and ² 5.٣", "٣٫٥ and ½ and 2 5.٣"),
    ("  leading  and   trailing \t\u00a0", "leading and trailing"),
    ("unit\x1fseparator\x1cfile\x0bvertical\x0cform", "unit separator file vertical form"),
    ("", "something was here"), ("something extra", ""), ("", ""), ("   ", "a"),
    ("the the the the the the the", "the cat is on the mat"),
    ("-", "--"), ("5-", "5 -"), ("a.b,c", "a . b , c"), ("1.2.3,4", "1.2.3,4"), ("...", ". . ."),
    ("é.ü,日.本", "é . ü , 日 . 本"), ("x.日 5.日 ,日", "x . 日 5 . 日 , 日"),
    ("هل وصلت؟ نعم، وصلت.", "هل وصلت ؟ نعم ، وصلت ."), ("वह घर है। और ५.५ है॥", "वह घर है । और ५.५ है ॥"),
    ("„Die 5. Sinfonie“, 3½.", "„Die 5 . Sinfonie“, 3½"), ("€5,50 – 5€. №7; x²+y³≠z⁴", "€ 5,50 - 5 € . № 7 ; x² + y³ ≠ z⁴"),
    ("born in 1984.", "born in 1984 ."), ("born in 1984. 　", "born in 1984 ."), ("(hi) 'hi' -hi- (5) .5. 1,2", "( hi ) ' hi ' - hi - ( 5 )"),
    ("5-a a-5 Ⅳ. Ⅳ.5 ①,②", "5 -a a- 5 Ⅳ . 5 ①,②"), ("—«¡Hola!»—dijo…", "—«¡ Hola !» — dijo …"), ("☃.☃ ♥♥5♥", "☃ . ☃ ♥ ♥ 5 ♥"),
    ("ไทย๑.๒ ฿๕", "ไทย ๑.๒ ฿ ๕"), ("'' \"\" a' 'a (a) a.. .a", "' a ( a ) . a"), ("𝟘.𝟙 𐄀x", "𝟘 . 𝟙 𐄀 x"),
]


def change(words, rng):
    """A made-up translation: some words dropped, doubled, swapped or replaced."""
    out = []
    for word in words:
        p = rng.random()
        out += [] if p < 0.08 else [word, word] if p < 0.12 else ["cosa"] if p < 0.2 else [word]
    if len(out) > 3 and rng.random() < 0.4:
        i = rng.randrange(len(out) - 1)
        out[i], out[i + 1] = out[i + 1], out[i]
    return out


def corpora(tatoeba):
    rng = random.Random(7)
    pairs = [line.rstrip("\n").split("\t") for line in open(tatoeba, encoding="utf-8")]
    targets = [t for _, t in pairs[:80]]
    outputs = [" ".join(change(t.split(), rng)) for t in targets]
    by_source = {}
    for s, t in pairs:
        by_source.setdefault(s, []).append(t)
    several = [ts for ts in by_source.values() if len(ts) >= 3][:25]
    guesses = [" ".join(change(rng.choice(ts).split(), rng)) for ts in several]
    tricky = [a for a, _ in TRICKY], [[b for _, b in TRICKY]]
    yield "tricky", *tricky
    yield "tricky, sides exchanged", tricky[1][0], [tricky[0]]
    yield "tatoeba", outputs, [targets]
    yield "tatoeba, three references", guesses, [[ts[i] for ts in several] for i in range(3)]
    yield "tatoeba, one to three references", guesses, [
        [ts[i] if i == 0 or (k + i) % 3 else None for k, ts in enumerate(several)] for i in range(3)]
    yield "identical", targets[:10], [targets[:10]]
    yield "no match", ["alpha beta gamma delta"], [["one two three four"]]
    yield "two words", ["good morning"], [["good morning"]]
    yield "three words of four", ["a b c", "a b c"], [["a b c d", "a b c"]]
    yield "one match only", ["x y z q v w", "m n o p"], [["x a b c d e", "r s t u"]]
    yield "two matches apart", ["the red old house stood there"], [["the house that was red stood alone"]]
    yield "nearest length, a tie", ["a b c d e"], [["a b c d e f"], ["a b c d"]]
    yield "all outputs empty", ["", ""], [["a b", "c"]]


def main():
    cases = []
    for name, outputs, references in corpora(sys.argv[1]):
        case = {"name": name, "outputs": outputs,
                "references": [[r for r in refs if r is not None] for refs in zip(*references)], "expected": {}}
        for name, order in WORD_ORDERS.items():
            chrf = CHRF(word_order=order)
            case["expected"][name] = {"score": chrf.corpus_score(outputs, references).score,
                                      "signature": str(chrf.get_signature()).split("|version")[0]}
        for kind in KINDS:
            bleu = BLEU(tokenize=kind)
            score = bleu.corpus_score(outputs, references)
            case["expected"][kind] = {
                "score": score.score, "matches": score.counts, "totals": score.totals,
                "precisions": score.precisions, "brevity_penalty": score.bp, "output_length": score.sys_len,
                "reference_length": score.ref_len, "signature": str(bleu.get_signature()).split("|version")[0]}
        cases.append(case)
    lines = [line for pair in TRICKY for line in pair]
    split = {kind: [" ".join(_get_tokenizer(kind)()(line.rstrip()).split()) for line in lines]
             for kind in KINDS}
    root = {"made_with": "sacrebleu " + sacrebleu.__version__, "cases": cases, "lines": lines, "split": split}
    to = pathlib.Path(__file__).with_name("bleu_fixture.json")
    to.write_text(json.dumps(root, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")


main()
