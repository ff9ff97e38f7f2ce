"""Probing tasks: what a sentence embedding is asked for, as sentences with labels in three splits.

The tasks follow SentEval (Conneau et al. 2018, What you can cram into a single vector) and BGT (Wieting et al., EMNLP
2020). No sentence stands in two splits, and no group of sentences either: those that differ in case alone, or those
about the same target word.
"""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import Enum

from st_paragram.core.settings import setting, settings
from st_paragram.errors import EvaluationError

#: Fewer sentences of a label than this are too few: the label is left out, or the task refused.
LEAST = 10


class Source(str, Enum):
    """Where the sentences of a task come from; the value is what tables say."""

    SENTEVAL = "SentEval"
    BITEXT = "bitext"
    UD = "UD"


class Balance(str, Enum):
    """How many sentences of each label there are: equally many, as many as in the text up to a cap, or just as many."""

    EQUAL = "equal"
    CAPPED = "capped"
    NATURAL = "natural"


@settings
class ProbingSettings:
    """How large tasks are, and what is drawn at random."""

    train: int = setting(10_000, "sentences a task trains on, at most", ge=1)
    valid: int = setting(1_000, "sentences that choose the regularisation, at most", ge=1)
    test: int = setting(2_000, "sentences that are scored, at most", ge=1)
    most_per_label: int = setting(20_000, "sentences of a label of the punctuation count, at most", ge=1)
    most_rows: int = setting(300_000, "rows of the bitext to draw tasks from, chosen at random", ge=1)
    words: int = setting(100, "labels of word content", ge=2)
    first_rank: int = setting(2_001, "rank by frequency of the first word of word content", ge=1)
    seed: int = setting(0, "of all that is drawn", ge=0)

    @property
    def sizes(self) -> tuple[int, int, int]:
        """Sentences of the three splits, at most."""
        return self.train, self.valid, self.test


@dataclass(frozen=True)
class Example:
    """A sentence with its label.

    Attributes:
        text: of the sentence.
        label: what a probe is to find.
        group: what must not be in two splits, such as the target word; empty: the sentence in whatever case.
    """

    text: str
    label: str
    group: str = ""

    @property
    def key(self) -> str:
        """Equal for examples that must be in the same split."""
        return self.group or self.text.casefold()


@dataclass(frozen=True)
class Split:
    """Sentences and as many labels."""

    texts: tuple[str, ...]
    labels: tuple[str, ...]

    @classmethod
    def of(cls, examples: Sequence[Example]) -> Split:
        """The split of these examples, in their order."""
        return cls(tuple(one.text for one in examples), tuple(one.label for one in examples))


@dataclass(frozen=True)
class ProbingTask:
    """A task of which a probe learns `train`, is chosen on `valid` and scored on `test`."""

    name: str
    source: Source
    train: Split
    valid: Split
    test: Split

    @property
    def title(self) -> str:
        """Name and source, which tell it from the other tasks of a run."""
        return f"{self.name} ({self.source.value})"

    @property
    def splits(self) -> tuple[Split, Split, Split]:
        """Those for training, validation and testing."""
        return self.train, self.valid, self.test


def make_task(
    name: str, source: Source, examples: Iterable[Example], settings: ProbingSettings, balance: Balance
) -> ProbingTask:
    """Divide examples into splits by the seed, of the sizes in the settings or smaller in proportion.

    Of equal sentences the first one stays. Where labels are not to be balanced, rare ones are left out.

    Raises:
        EvaluationError: there are too few sentences; the message names the task.
    """
    rng = random.Random(f"{settings.seed} {name}")
    found = _distinct(examples)
    rng.shuffle(found)
    if balance is Balance.CAPPED:
        found = _capped(found, settings.most_per_label)
    if balance is not Balance.EQUAL:
        found = _frequent(found)
    _check_labels(name, found)
    parts = _divide(found, settings.sizes, rng)
    choose = _equal if balance is Balance.EQUAL else _first
    parts = [choose(part, size) for part, size in zip(parts, settings.sizes, strict=True)]
    if any(len({one.label for one in part}) < 2 for part in parts):
        raise EvaluationError(f"{name}: too few sentences for three splits with two labels each; give more text")
    return ProbingTask(name, source, *map(Split.of, parts))


def _distinct(examples: Iterable[Example]) -> list[Example]:
    found: dict[str, Example] = {}
    for one in examples:
        found.setdefault(one.text, one)
    return list(found.values())


def _check_labels(name: str, examples: Sequence[Example]) -> None:
    counts = Counter(one.label for one in examples)
    if len(counts) < 2:
        seen = f"{len(examples)} sentences with {len(counts)} labels"
        raise EvaluationError(f"{name}: {seen}, where two labels with {LEAST} each are needed; give more text")
    label, fewest = min(counts.items(), key=lambda item: item[1])
    if fewest < LEAST:
        raise EvaluationError(f"{name}: too few sentences, {fewest} of label {label}; {LEAST} are needed")


def _capped(examples: Sequence[Example], most: int) -> list[Example]:
    """The first `most` of each label."""
    counts: Counter[str] = Counter()
    kept = []
    for one in examples:
        counts[one.label] += 1
        if counts[one.label] <= most:
            kept.append(one)
    return kept


def _frequent(examples: Sequence[Example]) -> list[Example]:
    """Those of labels that are not rare."""
    counts = Counter(one.label for one in examples)
    return [one for one in examples if counts[one.label] >= LEAST]


def _divide(examples: Sequence[Example], sizes: Sequence[int], rng: random.Random) -> list[list[Example]]:
    """Give each group to the split that has least of its label, measured by the sizes; splits come out shuffled."""
    groups: defaultdict[str, list[Example]] = defaultdict(list)
    for one in examples:
        groups[one.key].append(one)
    parts: list[list[Example]] = [[] for _ in sizes]
    filled: Counter[tuple[int, str]] = Counter()
    for group in groups.values():
        label = group[0].label
        place = min(range(len(sizes)), key=lambda n: filled[n, label] / sizes[n])
        parts[place] += group
        filled.update((place, one.label) for one in group)
    for part in parts:
        rng.shuffle(part)
    return parts


def _equal(examples: Sequence[Example], size: int) -> list[Example]:
    """Equally many of each label, `size` in all at most."""
    counts = Counter(one.label for one in examples)
    each = min([*counts.values(), max(1, size // max(1, len(counts)))])
    return _capped(examples, each)


def _first(examples: Sequence[Example], size: int) -> list[Example]:
    return list(examples[:size])
