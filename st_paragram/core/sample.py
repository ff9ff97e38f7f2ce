"""Built-in text in eight languages, to try things without a network; not a benchmark.

`sample_data/pairs.tsv.xz` holds 10,000 simple sentences in each language, one per row, and English
paraphrases of them in the column `en2`. A phrase grammar generated them: templates such as
"{subject} {predicate} {place} {time}" were filled with about 340 phrases, inflected in each
language. The rows are a random sample of the meaningful combinations.

`tuples.tsv` holds 225 natural sentences, written for this purpose and never trained on. In ids such
as `12a`, rows of one number share a topic, and `a` and `b` are paraphrases. `graded.tsv` grades
pairs of them from 0 (unrelated) to 5 (the same), as the SemEval STS tasks do (Agirre et al., 2012);
a grade is about meaning, so it holds in all languages.
"""

from __future__ import annotations

import lzma
from collections.abc import Iterator
from functools import cache
from importlib.resources import files

from st_paragram.core.languages import MODEL_LANGUAGES, both_sides
from st_paragram.errors import SettingsError

LANGUAGES = MODEL_LANGUAGES
_PAIRS = "pairs.tsv.xz"
_TUPLES = "tuples.tsv"


def sample_pairs(
    language: str | tuple[str, str], count: int | None = None
) -> Iterator[tuple[str, str]]:
    """Yield simple sentences and their translations.

    There are 10,000 pairs, the same rows in each of `LANGUAGES`, and 9,617 English paraphrases.

    Args:
        language: The language of the translations of English sentences ("en": paraphrases), or
            the languages of both sides, such as ("fr", "de").
        count: Number of pairs; None: all.

    Examples:
        >>> from st_paragram import sample_pairs
        >>> english, spanish = next(sample_pairs("es", 1))
        >>> next(sample_pairs(("fr", "es")))[1] == spanish
        True
    """
    first, second = both_sides(language)
    sentences = _sentences(_PAIRS, first)
    translations = _sentences(_PAIRS, second)
    if first == second == "en":
        translations = _table(_PAIRS)["en2"]
    pairs = [pair for pair in zip(sentences, translations, strict=True) if pair[0] != pair[1]]
    if count is not None and not 0 <= count <= len(pairs):
        raise SettingsError(
            f"count is {count}; for {first} and {second}, give at most {len(pairs):,} built-in"
            " pairs"
        )
    return iter(pairs[:count])


def held_out_pairs(language_a: str, language_b: str) -> list[tuple[str, str]]:
    """Return natural sentences in two of `LANGUAGES`.

    Some are paraphrases, but only the same row counts as right.
    """
    first = _sentences(_TUPLES, language_a)
    second = _sentences(_TUPLES, language_b)
    return list(zip(first, second, strict=True))


def graded_pairs(
    language_a: str = "en", language_b: str = "en"
) -> tuple[list[str], list[str], list[float]]:
    """Return natural sentences in two languages, and grades of similarity from 0 to 5."""
    graded = _table("graded.tsv")
    rows = {number: row for row, number in enumerate(_table(_TUPLES)["id"])}
    sentences_a = _sentences(_TUPLES, language_a)
    sentences_b = _sentences(_TUPLES, language_b)
    first = [sentences_a[rows[number]] for number in graded["id1"]]
    second = [sentences_b[rows[number]] for number in graded["id2"]]
    return first, second, [float(grade) for grade in graded["score"]]


def _sentences(table: str, language: str) -> list[str]:
    if language not in LANGUAGES:
        raise SettingsError(
            f"no built-in sentences in {language!r}; choose one of {', '.join(LANGUAGES)}"
        )
    return _table(table)[language]


@cache
def _table(name: str) -> dict[str, list[str]]:
    """Read the columns of a table, by name."""
    content = (files(__package__) / "sample_data" / name).read_bytes()
    if name.endswith(".xz"):
        content = lzma.decompress(content)
    rows = [line.split("\t") for line in content.decode("utf-8").removesuffix("\n").split("\n")]
    columns = {}
    for number, head in enumerate(rows[0]):
        columns[head] = [row[number] for row in rows[1:]]
    return columns
