"""Authored natural sentences in eight languages, held out from training, to try retrieval and similarity.

Two tables are next to this module. `tuples.tsv`: one sentence per row in every language; ids such as `12a`,
where rows of one number share a topic and `a` and `b` are paraphrases. `graded.tsv`: pairs of ids with a
grade of meaning from 0 (unrelated) to 5 (the same), on the scale of the SemEval STS tasks (Agirre et al.,
2012). A grade is about meaning, so it holds in every pair of languages. A smoke test, not a benchmark.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from types import MappingProxyType

from st_paragram.errors import SettingsError, TextError

HELD_OUT_LANGUAGES = ("en", "ar", "de", "es", "fr", "ru", "tr", "zh")


@dataclass(frozen=True)
class HeldOutSentence:
    """One sentence in every language of `HELD_OUT_LANGUAGES`; `texts` maps code to text, read-only."""

    id: str
    texts: Mapping[str, str]

    def __getitem__(self, language: str) -> str:
        """Return the text in `language`; raises SettingsError if that language is not there."""
        if language not in self.texts:
            known = ", ".join(self.texts)
            raise SettingsError(f"no held-out sentences in {language!r}; choose one of {known}")
        return self.texts[language]


def _rows(name: str, header: tuple[str, ...]) -> Iterator[list[str]]:
    """Yield the rows of a packaged table, checked against `header`; raises TextError naming file and line."""
    text = files("st_paragram.core.sample").joinpath(name).read_bytes().decode("utf-8")
    for number, line in enumerate(text.removesuffix("\n").split("\n"), start=1):
        row = line.split("\t")
        if (number == 1 and tuple(row) != header) or len(row) != len(header):
            expected = ", ".join(header)
            raise TextError(f"{name} line {number}: columns are not {expected}; reinstall st_paragram")
        if number > 1:
            yield row


@cache
def _table() -> Mapping[str, HeldOutSentence]:
    """Read `tuples.tsv` once: id -> sentence, in file order."""
    rows = _rows("tuples.tsv", ("id", *HELD_OUT_LANGUAGES))
    return {
        row[0]: HeldOutSentence(row[0], MappingProxyType(dict(zip(HELD_OUT_LANGUAGES, row[1:], strict=True))))
        for row in rows
    }


def held_out_tuples() -> list[HeldOutSentence]:
    """Return all held-out sentences in file order; `sentence["de"]` is the German text."""
    return list(_table().values())


def held_out_pairs(language_a: str, language_b: str) -> list[tuple[str, str]]:
    """Return (text in `language_a`, text in `language_b`) of the same meaning, for retrieval either way.

    Paraphrases are next to their base sentences, so retrieval is hard on purpose: only the same row counts.

    Raises:
        SettingsError: a language that is not in `HELD_OUT_LANGUAGES`.
    """
    return [(sentence[language_a], sentence[language_b]) for sentence in held_out_tuples()]


def graded_pairs(language_a: str = "en", language_b: str = "en") -> tuple[list[str], list[str], list[float]]:
    """Return sentences in `language_a`, sentences in `language_b` and grades in [0, 5], equally long lists.

    Raises:
        SettingsError: a language that is not in `HELD_OUT_LANGUAGES`.
    """
    table = _table()
    rows = list(_rows("graded.tsv", ("id1", "id2", "score")))
    first = [table[row[0]][language_a] for row in rows]
    second = [table[row[1]][language_b] for row in rows]
    return first, second, [float(row[2]) for row in rows]
