"""Token ids of trainfare-trainer against Hugging Face's `tokenizers`.

    tokenizer_test.py TRAINER

A small vocabulary of its own, so that nothing is downloaded; texts of many
scripts, and every assigned code point between two letters, which shows
whether it is dropped, splits a word, stands alone or belongs to the word.
"""

import json
import random
import subprocess
import sys
import tempfile
import unicodedata
from pathlib import Path

from tokenizers import BertWordPieceTokenizer

TEXTS = [
    "The quick brown fox jumps over the lazy dog.",
    "unaffable unaffordable runner running runs",
    "  spaces\tand\r\nlines  ",
    "Caf\u00e9 na\u00efve \u00c5ngstr\u00f6m \u0130stanbul \u1e9e \u03a3\u03c3\u03c2",
    "e\u0301 o\u0308 combining",
    "\u4f60\u597d world\u4e16\u754c \u3053\u3093\u306b\u3061\u306f \ud55c\uad6d\uc5b4",
    "dots... (brackets) [more] {yet} <tags> $5 50% a+b=c `code` ~ ^ |",
    "quotes \u201cso\u201d \u2018and\u2019 \u2014 dashes \u2013 \u2026 \u00bfque? \u00a1ya!",
    "zero\u200bwidth soft\u00adhyphen bom\ufeff nbsp\u00a0here replacement\ufffd",
    "emoji \U0001f600\U0001f44d\U0001f3fd flags \U0001f1e9\U0001f1ea",
    "special [MASK] and [SEP] stand [CLS]ed [UNK] [PAD] [mask]",
    "x" * 100, "x" * 101, "y" * 300,
    "", " ", ".", "\u0301",
]


def vocabulary():
    letters = [chr(c) for c in range(33, 127)] + list(
        "\u00e9\u00e8\u00fc\u00df\u00f1\u00ee\u03b1\u03b2\u03c3\u03c2\u0434\u0436"
        "\u4f60\u597d\u4e16\u3053\ud55c\u2014\u201c\u0307\u0130\u00c9")
    words = ["the", "quick", "fox", "un", "##aff", "##able", "run", "##ning",
             "##ner", "##s", "caf", "ist", "world", "The", "Caf", "ab", "##b"]
    tokens = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    tokens += letters + ["##" + c for c in letters] + words
    return list(dict.fromkeys(tokens))


def random_texts(count):
    random.seed(3)
    ranges = [(32, 126), (160, 0x24f), (0x370, 0x52f), (0x4e00, 0x4e80),
              (0x2000, 0x206f), (0x3040, 0x30ff), (0x600, 0x6ff)]
    texts = []
    for _ in range(count):
        span = [random.choice(ranges) for _ in range(random.randint(1, 40))]
        texts.append("".join(
            chr(random.randint(*r)) for r in span if random.random() < 0.95))
    return texts


# Of another category since Unicode 8, whose tables the reference carries.
MOVED = {0x166D, 0x1734, 0x1885, 0x1886, 0xA9BD, 0x111C9}


def code_points():
    for code in range(1, 0x110000):
        # A line end would end the text.
        if (unicodedata.category(chr(code)) not in ("Cn", "Cs")
                and code != 10 and code not in MOVED):
            yield f"a{chr(code)}b"


def main():
    trainer = sys.argv[1]
    texts = TEXTS + random_texts(3000) + list(code_points())
    texts = [t.replace("\n", " ") for t in texts]
    failures = 0
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        vocab = root / "vocab.txt"
        vocab.write_text("".join(t + "\n" for t in vocabulary()),
                         encoding="utf-8")
        for options in ({"lowercase": True}, {"lowercase": False},
                        {"lowercase": True, "strip_accents": False}):
            tokenizer = BertWordPieceTokenizer(str(vocab), **options)
            for form in ("vocab.txt", "tokenizer.json"):
                for old in root.glob("tokenizer*.json"):
                    old.unlink()
                if form == "tokenizer.json":
                    tokenizer.save(str(root / form))
                else:
                    config = {"do_lower_case": options["lowercase"]}
                    if "strip_accents" in options:
                        config["strip_accents"] = options["strip_accents"]
                    (root / "tokenizer_config.json").write_text(
                        json.dumps(config))
                answer = subprocess.run(
                    [trainer, "tokenize", "--model", folder],
                    input="".join(t + "\n" for t in texts),
                    encoding="utf-8", stdout=subprocess.PIPE, check=True)
                got = answer.stdout.split("\n")[:-1]
                assert len(got) == len(texts), (len(got), len(texts))
                wrong = []
                for text, ids in zip(texts, got):
                    want = tokenizer.encode(text, add_special_tokens=False).ids
                    if want != [int(i) for i in ids.split()]:
                        wrong.append((text, want, ids))
                print(f"{options} {form}: {len(texts)} texts, "
                      f"{len(wrong)} differ")
                for text, want, ids in wrong[:12]:
                    print("  ", ascii(text), "expected", want, "got", ids)
                failures += len(wrong)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
