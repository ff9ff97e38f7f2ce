"""Precision and recall of `st-paragram dedupe` on planted pairs: `python benchmarks/duplicates.py
[LANG:FILE ...]`.

Each sentence gets a changed copy, a duplicate or another sentence. Files have one sentence per
line; without files, the sentences are 225 natural sentences in each of the eight languages that
come with the package.
"""

from __future__ import annotations

import argparse
import random
import re
import sys
import tempfile
import unicodedata
from itertools import cycle
from pathlib import Path

import numpy as np

from st_paragram.cli.main import run_reporting_errors
from st_paragram.core.formatting import markdown_table
from st_paragram.core.sample import LANGUAGES, held_out_pairs
from st_paragram.tools.deduplication.dedupe import deduplicate

# A filler word and a negation of each language.
WORDS = {
    "en": ("really", "not"),
    "ar": ("حقا", "لا"),
    "de": ("wirklich", "nicht"),
    "es": ("realmente", "no"),
    "fr": ("vraiment", "pas"),
    "ru": ("действительно", "не"),
    "tr": ("gerçekten", "değil"),
    "zh": ("真的", "不"),
    "hi": ("सचमुच", "नहीं"),
    "th": ("จริงๆ", "ไม่"),
    "bn": ("সত্যি", "না"),
    "ta": ("உண்மையில்", "இல்லை"),
}
VOWEL_SIGNS = ("ािीुूेैो", "ািীুে", "ிீுூெே", "ัิีึืุู่้")
DUPLICATES = ("case", "punctuation", "spaces", "tokens", "Unicode form", "filler word")
ENDINGS = {
    "number": ("2020", "2019"),
    "sign": ("-5", "5"),
    "decimal mark": ("1.5", "15"),
    "unit": ("5 €", "5 %"),
}
KINDS = (*DUPLICATES, *ENDINGS, "exchanged words", "name", "letter or vowel sign", "negation")
MARK = re.compile(r"(?<!\d)([.,;:!?¿¡،؟。，？！'’«»()])(?!\d)")


def changed(text: str, language: str, kind: str, rng: random.Random) -> tuple[str, str]:
    """Return a sentence and its changed copy."""
    glue = "" if language in ("zh", "th") else " "
    words = text.split() if glue else list(text)
    if kind == "case":
        return text, text[:1].swapcase() + text[1:] if language == "tr" else text.upper()
    if kind in ("punctuation", "tokens"):
        return text, MARK.sub("" if kind == "punctuation" else r" \1 ", text) + " !"
    if kind == "spaces":
        return text, "  " + text.replace(" ", "  ") + "\u00a0"
    if kind == "Unicode form":
        return text, unicodedata.normalize("NFKD", text)
    if kind in ENDINGS:
        return f"{text} {ENDINGS[kind][0]}", f"{text} {ENDINGS[kind][1]}"
    place = rng.randrange(1, max(len(words), 2))

    def inserted(word: str) -> str:
        return glue.join([*words[:place], word, *words[place:]])

    if kind == "exchanged words":
        other = next(
            (i for i, word in enumerate(words) if word.lower() != words[place - 1].lower()), 0
        )
        swapped = {place - 1: words[other], other: words[place - 1]}
        return text, glue.join(swapped.get(i, word) for i, word in enumerate(words))
    if kind == "letter or vowel sign":
        return text, respelled(text, rng)
    if kind == "name":
        return inserted("Anna"), inserted("Igor")
    return text, inserted(WORDS[language][kind == "negation"])


def respelled(text: str, rng: random.Random) -> str:
    """Change a vowel sign or tone mark, or drop a letter if there is none."""
    places = [
        (place, signs) for place, sign in enumerate(text) for signs in VOWEL_SIGNS if sign in signs
    ]
    place, signs = rng.choice(
        places or [(match.start(), "") for match in re.finditer(r"\w\B", text)]
    )
    return (
        text[:place]
        + (rng.choice(signs.replace(text[place], "")) if signs else "")
        + text[place + 1 :]
    )


def main() -> int:
    """Plant the pairs, remove duplicates, and print how many copies were removed."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("files", nargs="*", metavar="LANG:FILE")
    files = dict(name.split(":", 1) for name in parser.parse_args().files)
    texts = {
        language: Path(path).read_text("utf-8").splitlines() for language, path in files.items()
    }
    texts = texts or {
        language: [row[1] for row in held_out_pairs("en", language)] for language in LANGUAGES
    }
    rows = [
        (text, language)
        for language, lines in texts.items()
        for text in dict.fromkeys(lines)
        if len(text) > 8
    ]
    rng = random.Random(0)
    planted = np.array([kind for kind, _ in zip(cycle(KINDS), rows, strict=False)])
    pairs = [changed(*row, kind, rng) for row, kind in zip(rows, planted.tolist(), strict=True)]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "lines.txt")
        path.write_text("".join(f"{text}\n{copy}\n" for text, copy in pairs), "utf-8")
        removed = ~deduplicate([str(path)], 1).kept[1 : 2 * len(pairs) : 2]
    same = np.isin(planted, DUPLICATES)
    counts = [(kind, kind in DUPLICATES, planted == kind) for kind in KINDS]
    cells = [
        [kind, "yes" if yes else "no", str(of.sum()), str((of & removed).sum())]
        for kind, yes, of in counts
    ]
    print(markdown_table(("change", "duplicate", "copies", "removed"), cells))
    print(f"precision {removed[same].sum() / removed.sum():.1%}, recall {removed[same].mean():.1%}")
    return 0


if __name__ == "__main__":
    sys.exit(run_reporting_errors("duplicates", main))
