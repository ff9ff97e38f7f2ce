"""What the benchmarks of mining find, as their records keep it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from harness.mining_indexes import IndexPoint
from harness.mining_peers import Comparison
from harness.mining_planted import Planted, Recipe
from harness.mining_process import WatchedMining
from harness.mining_scaling import Size
from st_paragram.tools.evaluation.results import BuccScores


@dataclass(frozen=True)
class MiningCost:
    """What a mining run took.

    Args:
        seconds: of wall time, from the start of Python to its end.
        peak_anonymous_mb: of all its processes together.
        stages: name -> seconds.
        searched: what the run's report says of each direction's index.
    """

    seconds: float
    peak_anonymous_mb: float
    stages: dict[str, float]
    searched: list[dict[str, Any]]

    @classmethod
    def of(cls, mined: WatchedMining) -> MiningCost:
        """The cost of a run that was watched."""
        return cls(mined.run.seconds, mined.run.peak_anonymous_mb, mined.stages, mined.report["searched"])


@dataclass(frozen=True)
class MinedScores:
    """Pairs found by `mine` and what that took; `evaluation` is what the benchmark of the same texts finds."""

    scores: dict[str, BuccScores]
    cost: MiningCost
    evaluation: dict[str, BuccScores] | None = None


@dataclass(frozen=True)
class PlantedRun:
    """Known pairs among distractors: model -> result."""

    benchmark: ClassVar[str] = "mining-planted"
    models: dict[str, MinedScores]
    recipe: Recipe
    planted: Planted


@dataclass(frozen=True)
class MinedBuccRun:
    """Files of BUCC: model -> result; k neighbours."""

    benchmark: ClassVar[str] = "mining-bucc"
    models: dict[str, MinedScores]
    texts: str
    k: int


@dataclass(frozen=True)
class ScalingRun:
    """Sizes: model -> one entry a size."""

    benchmark: ClassVar[str] = "mining-scaling"
    models: dict[str, list[Size]]
    memory: str
    workers: int


@dataclass(frozen=True)
class IndexesRun:
    """Indexes: model -> one entry for each index and effort."""

    benchmark: ClassVar[str] = "mining-indexes"
    models: dict[str, list[IndexPoint]]
    sentences: int
    queries: int
    k: int


@dataclass(frozen=True)
class PeersRun:
    """Comparisons with others' mining: model -> one entry each."""

    benchmark: ClassVar[str] = "mining-peers"
    models: dict[str, list[Comparison]]
    sentences: int
    paraphrase_sentences: int
    rounds: int
    k: int
    top_k: int
