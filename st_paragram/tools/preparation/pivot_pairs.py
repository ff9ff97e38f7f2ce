"""Paraphrases out of sentences that share a translation: which of them make pairs."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from hashlib import blake2b
from typing import Any

from st_paragram.core.settings import setting, settings
from st_paragram.tools.cleaning.normalized_key import normalized_key


@settings
class PivotSettings:
    """Which sentences that share a translation (the pivot) make pairs."""

    min_words: int = setting(3, "minimum words per sentence", ge=1)
    min_pivot_letters: int = setting(
        12,
        "minimum letters, digits and marks of a translation (a Han character counts as 3), because a text "
        "like `Ja.` translates too many sentences",
        ge=1,
    )
    most_sentences: int = setting(
        20,
        "maximum different sentences with the same translation; a translation with more is too general or "
        "a mistake and gives no pairs",
        ge=2,
    )
    most_pairs: int = setting(10, "maximum pairs per translation; extras are sampled at random", ge=1)
    seed: int = setting(0, "random seed for the sampling and for which sentence of a pair comes first", ge=0)


@dataclass
class PivotReport:
    """What became of the rows; `rows` is `short` plus `short_pivots` plus the rows of groups.

    Attributes:
        rows: Rows read.
        bad_rows: Rows left out because they hold a NUL byte, are not UTF-8 or have a wrong number of columns; not among
            `rows`.
        short: Rows whose sentence has too few words.
        short_pivots: Rows whose pivot has too few letters.
        groups: Distinct pivots.
        shared: Pivots with two sentences or more that differ in letters or digits.
        sentences: Sentences of the shared pivots.
        too_general: Shared pivots left out because they have too many sentences.
        pairs: Pairs written.
        not_drawn: Pairs left out because their pivot has too many.
        repeated: Pairs left out because another pivot makes them too.
    """

    rows: int = 0
    bad_rows: int = 0
    short: int = 0
    short_pivots: int = 0
    groups: int = 0
    shared: int = 0
    sentences: int = 0
    too_general: int = 0
    pairs: int = 0
    not_drawn: int = 0
    repeated: int = 0

    def as_json(self) -> dict[str, Any]:
        """The numbers as JSON values."""
        return asdict(self)

    def table(self) -> str:
        """The numbers as plain text, a line each."""
        lines = (
            (self.rows, "rows read"),
            (self.bad_rows, "rows not read: NUL byte, not UTF-8, wrong number of columns"),
            (self.short, "rows left out: sentence too short"),
            (self.short_pivots, "rows left out: translation too short"),
            (self.groups, "translations"),
            (self.shared, f"translations shared by {self.sentences:,} sentences"),
            (self.too_general, "of them left out: too many sentences"),
            (self.not_drawn, "pairs left out: too many of one translation"),
            (self.repeated, "pairs left out: repeated"),
            (self.pairs, "pairs written"),
        )
        return "\n".join(f"{count:>13,}  {text}" for count, text in lines)


def pivot_pairs(
    groups: Iterable[tuple[str, Sequence[str]]], settings: PivotSettings, report: PivotReport
) -> Iterator[tuple[str, str]]:
    """Make pairs of the sentences of each group.

    Sentences that differ in case, spaces and marks alone count as one. Which pairs are drawn depends on the pivot, the
    seed and the set of sentences, not on their order; as does which sentence of a pair comes first, but for the pivot.

    Args:
        groups: A pivot and its sentences, repeated ones included.
        settings: Limits and seed.
        report: The numbers are added to it.
    """
    for pivot, sentences in groups:
        report.groups += 1
        distinct = _distinct(sentences)
        if len(distinct) < 2:
            continue
        report.shared += 1
        report.sentences += len(distinct)
        if len(distinct) > settings.most_sentences:
            report.too_general += 1
            continue
        pairs = [(one, other) for place, one in enumerate(distinct) for other in distinct[place + 1 :]]
        report.not_drawn += max(0, len(pairs) - settings.most_pairs)
        if len(pairs) > settings.most_pairs:
            pairs = _random(settings.seed, pivot).sample(pairs, settings.most_pairs)
        report.pairs += len(pairs)
        for pair in pairs:
            yield pair if _random(settings.seed, *pair).random() < 0.5 else pair[::-1]


def _distinct(sentences: Sequence[str]) -> list[str]:
    """Sentences in their order as text; of those with the same letters and digits the first."""
    different = set(sentences)
    if len(different) == 1:
        return list(different)
    found: dict[str, str] = {}
    for sentence in sorted(different):
        found.setdefault(normalized_key(sentence), sentence)
    return list(found.values())


def _random(seed: int, *texts: str) -> random.Random:
    key = "\0".join((str(seed), *texts)).encode("utf-8", "surrogatepass")
    return random.Random(blake2b(key, digest_size=8).digest())
