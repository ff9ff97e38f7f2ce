"""Make word pairs of parallel text and a model: `python data_prep/make_lexicon.py --texts DIR
--model MODEL`.

A word of the text is paired with the English word of the text whose vector by the model, such as
the published multilingual USE, is nearest. The folder has a file for each source and language,
texts/LANG/SOURCE.tsv, with rows `english TAB other`; texts/LANG/lexicon.tsv is written, with the
most similar pairs first. Languages without spaces between words are not supported.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections import Counter
from pathlib import Path

from st_paragram.cli.main import run_reporting_errors
from st_paragram.core.encoding.models import load_encoder
from st_paragram.core.files import write_text
from st_paragram.core.outputs import check_new
from st_paragram.core.text.parallel import TextSource, read_pairs
from st_paragram.errors import TextError
from st_paragram.tools.neighbors.exact import nearest_neighbors

# Letters of languages whose text also has English words.
_SCRIPTS = {"ar": r"[\u0621-\u0652]", "ko": r"[\uac00-\ud7a3]", "ru": r"[\u0400-\u04ff]"}
_LETTER = r"[^\W\d_]"


def main() -> int:
    """Count words, embed them, and pair them."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--texts", type=Path, required=True, metavar="DIR", help="folder of texts, LANG/SOURCE.tsv"
    )
    parser.add_argument("--model", required=True, help="multilingual model")
    parser.add_argument(
        "--languages",
        nargs="+",
        default=["ar", "de", "es", "fr", "it", "ko", "nl", "pl", "pt", "ru", "tr"],
        metavar="LANG",
        help="(default: those of multilingual USE that have spaces between words)",
    )
    parser.add_argument(
        "--minimum", type=float, default=0.75, metavar="COS", help="(default: %(default)s)"
    )
    parser.add_argument(
        "--most", type=int, default=30_000, metavar="N", help="pairs of a language (default: 30000)"
    )
    arguments = parser.parse_args()
    outputs = {
        language: arguments.texts / language / "lexicon.tsv" for language in arguments.languages
    }
    for path in outputs.values():
        check_new(path)
    counts = {language: count_words(arguments.texts, language) for language in arguments.languages}
    english = frequent(sum((first for first, _ in counts.values()), Counter[str]()), 3)
    model = load_encoder(arguments.model)
    vectors = model.encode(english, normalize_embeddings=True)
    for language, (_, other) in counts.items():
        words = frequent(other, 2)
        found = nearest_neighbors(model.encode(words, normalize_embeddings=True), vectors, 1)
        cosines = found.similarities[:, 0].tolist()
        nearest = [english[row] for row in found.indices[:, 0]]
        pairs = [pair for pair in zip(cosines, nearest, words, strict=True) if pair[1] != pair[2]]
        pairs = sorted(
            (pair for pair in pairs if pair[0] >= arguments.minimum), key=lambda pair: -pair[0]
        )
        path = outputs[language]
        write_text(path, "".join(f"{one}\t{word}\n" for _, one, word in pairs[: arguments.most]))
        print(f"{path}: {min(len(pairs), arguments.most):,} pairs of {len(words):,} words")
    return 0


def count_words(texts: Path, language: str) -> tuple[Counter[str], Counter[str]]:
    """Count the lower-cased words of all texts of a language, English first."""
    paths = sorted((texts / language).glob("*.tsv*"))
    if not paths:
        raise TextError(f"{texts / language}: no text; put SOURCE.tsv files there")
    counts, patterns = (Counter[str](), Counter[str]()), (_LETTER, _SCRIPTS.get(language, _LETTER))
    for path in paths:
        for row in read_pairs(TextSource((str(path),), ("en", language))):
            for sentence, count, letter in zip(row, counts, patterns, strict=True):
                count.update(re.findall(f"{letter}{{2,}}", sentence.lower()))
    return counts


def frequent(counts: Counter[str], least: int) -> list[str]:
    """Return the words that occur at least so many times, the 70,000 most frequent at most."""
    ordered = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    return [word for word, count in ordered[:70_000] if count >= least]


if __name__ == "__main__":
    sys.exit(run_reporting_errors("make_lexicon", main))
