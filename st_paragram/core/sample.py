"""Built-in text in eight languages, to try things without a network: a demonstration, not a
benchmark.

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

from st_paragram.errors import SettingsError

LANGUAGES = ("en", "ar", "de", "es", "fr", "ru", "tr", "zh")


def sample_pairs(language: str, count: int | None = None) -> Iterator[tuple[str, str]]:
    """Yield simple English sentences and their translations into one of `LANGUAGES`; for English,
    their paraphrases.

    There are 10,000 pairs for each language, with the same English rows, and 9,617 paraphrases.
    `count` limits them.

    Example:
        >>> from st_paragram import sample_pairs
        >>> english, spanish = next(sample_pairs("es", 1))
    """
    name = "pairs.tsv.xz"
    other = _table(name)["en2"] if language == "en" else _sentences(name, language)
    pairs = [pair for pair in zip(_sentences(name, "en"), other, strict=True) if pair[0] != pair[1]]
    if count is not None and not 0 <= count <= len(pairs):
        raise SettingsError(
            f"count is {count}; for en and {language}, give at most {len(pairs)} built-in pairs"
        )
    return iter(pairs[:count])


def held_out_pairs(language_a: str, language_b: str) -> list[tuple[str, str]]:
    """Return natural sentences in two of `LANGUAGES`; some are paraphrases, but only the same row
    counts as right.
    """
    return list(
        zip(_sentences("tuples.tsv", language_a), _sentences("tuples.tsv", language_b), strict=True)
    )


def graded_pairs(
    language_a: str = "en", language_b: str = "en"
) -> tuple[list[str], list[str], list[float]]:
    """Return natural sentences in `language_a`, sentences in `language_b`, and grades of similarity
    from 0 to 5.
    """
    graded, ids = _table("graded.tsv"), _table("tuples.tsv")["id"]
    first, second = (
        dict(zip(ids, _sentences("tuples.tsv", each), strict=True))
        for each in (language_a, language_b)
    )
    return (
        [first[i] for i in graded["id1"]],
        [second[i] for i in graded["id2"]],
        [*map(float, graded["score"])],
    )


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
    text = (lzma.decompress(content) if name.endswith(".xz") else content).decode("utf-8")
    rows = [line.split("\t") for line in text.removesuffix("\n").split("\n")]
    return {head: column for head, *column in zip(*rows, strict=True)}
