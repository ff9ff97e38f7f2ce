"""What benchmarks find: the types that several of them, records and reports share.

All figures are shares: correlations are in -1 .. 1, errors, precision and the like in 0 .. 1. None means a figure that
does not exist, such as the correlation of scores that are all alike. A run holds what one benchmark found for one
or several models, in the order in which they were named.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Protocol

Means = dict[str, float | None]


class BenchmarkRun(Protocol):
    """What every run has: the benchmark's name, and model -> result."""

    benchmark: ClassVar[str]

    @property
    def models(self) -> Mapping[str, Any]:
        """Model -> result."""
        ...


@dataclass(frozen=True)
class Interval:
    """Ends of a 95 % interval; NaN where there is no correlation."""

    low: float
    high: float


@dataclass(frozen=True)
class Comparison:
    """What the second system has more than the first, its 95 % interval, and the two-sided p-value of no difference.

    All NaN where one of the two has no correlation.
    """

    difference: float
    low: float
    high: float
    p_value: float


@dataclass(frozen=True)
class GradedResult:
    """How a model's cosines follow the grades of a set of pairs.

    Args:
        pairs: that were scored.
        pearson: Pearson's correlation.
        spearman: Spearman's correlation.
        low: lower end of the 95 % interval of Pearson's correlation.
        high: upper end.
        undefined: why there is no correlation ("constant" scores, "NaN" among them); empty if there is one.
    """

    pairs: int
    pearson: float | None
    spearman: float | None
    low: float | None = None
    high: float | None = None
    undefined: str = ""


@dataclass(frozen=True)
class Against:
    """A model compared with another one on the same pairs.

    Args:
        model: the other one.
        differences: set's key, or label of a mean -> what this model has more; None where there is no correlation.
    """

    model: str
    differences: dict[str, Comparison | None]


@dataclass(frozen=True)
class StsResult:
    """A model on STS 2012-2017 and the STS Benchmark.

    Args:
        sets: key ("2012/MSRpar") -> its figures.
        years: label ("2013", "2012 without MSRvid") -> figures on all pairs of the year, SMT left out.
        papers: label ("2012", "average without SMT") -> Pearson by the papers' protocol.
        sentence_bert: label -> Spearman by Sentence-BERT's protocol.
        mteb: mteb's name ("STS12", "STS17/es-en") -> Spearman.
        sentences_per_second: when all sentences of all sets are encoded once more, in one call.
        against: the comparison with the first model, if one was asked for.
    """

    sets: dict[str, GradedResult] = field(default_factory=dict)
    years: dict[str, GradedResult] = field(default_factory=dict)
    papers: Means = field(default_factory=dict)
    sentence_bert: Means = field(default_factory=dict)
    mteb: Means = field(default_factory=dict)
    sentences_per_second: float | None = None
    against: Against | None = None


@dataclass(frozen=True)
class StsRun:
    """Models on the STS benchmarks.

    Args:
        models: name -> result, all on the same data.
        notes: one line for everything missing or odd in the data.
        skipped: key -> rows of a set that were left out because they have no grade.
        resamples: of the bootstrap; 0 if there was none.
        seed: of the bootstrap.
        altered: keys of sets, and years of the hub, that are not what was published.
    """

    benchmark: ClassVar[str] = "sts"
    models: dict[str, StsResult]
    notes: tuple[str, ...] = ()
    skipped: dict[str, int] = field(default_factory=dict)
    resamples: int = 0
    seed: int = 0
    altered: tuple[str, ...] = ()


@dataclass(frozen=True)
class HardStsResult:
    """A model on the splits of Hard STS: name of a split -> its figures."""

    splits: dict[str, GradedResult]


@dataclass(frozen=True)
class HardStsRun:
    """Models on Hard STS; notes and altered sets as in `StsRun`."""

    benchmark: ClassVar[str] = "hard-sts"
    models: dict[str, HardStsResult]
    notes: tuple[str, ...] = ()
    altered: tuple[str, ...] = ()


@dataclass(frozen=True)
class MtebScores:
    """What mteb says of one subset of a task: the task's main score, and everything by mteb's names."""

    main_score: float | None
    metrics: dict[str, float | None] = field(default_factory=dict)


@dataclass(frozen=True)
class MtebResult:
    """A model on mteb's tasks: task -> subset -> scores.

    A split other than the task's own test set is named in the subset: `default (validation)`.
    """

    tasks: dict[str, dict[str, MtebScores]]


@dataclass(frozen=True)
class MtebRun:
    """Models on mteb's tasks, the revision of each task's data, and notes as in `StsRun`."""

    benchmark: ClassVar[str] = "mteb"
    models: dict[str, MtebResult]
    revisions: dict[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
