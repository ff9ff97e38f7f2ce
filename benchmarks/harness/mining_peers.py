"""Our mining beside others': each in a process of its own, in turn, several rounds."""

from __future__ import annotations

import math
import statistics
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from harness.mining_agreement import Agreement, agreement, read_scored
from harness.mining_process import watch_mining
from harness.process_memory import Run, watch
from st_paragram.tools.bitext_mining.candidates import Candidates
from st_paragram.tools.bitext_mining.margin import Margin
from st_paragram.tools.bitext_mining.settings import MiningSettings
from st_paragram.tools.search.settings import FLAT

HEAD = ("", "seconds", "slowest", "peak, MB", "times our time", "times our memory")
OURS = "st_paragram mine"


@dataclass(frozen=True)
class Comparison:
    """Runs of ours and of another, and whether their pairs agree.

    Attributes:
        title: What was done.
        runs: Of each, by name; ours first.
        agreements: Of the pairs, from some scores upwards.
    """

    title: str
    runs: dict[str, list[Run]]
    agreements: list[Agreement]

    def rows(self) -> list[list[str]]:
        """Rows of a table under `HEAD`: medians, and the ratios of the medians."""
        ours = _medians(next(iter(self.runs.values())))
        return [
            [
                name,
                f"{_medians(runs)[0]:.1f}",
                f"{max(run.seconds for run in runs):.1f}",
                f"{_medians(runs)[1]:,.0f}",
                *(f"{one / other:.2f}" for one, other in zip(_medians(runs), ours, strict=True)),
            ]
            for name, runs in self.runs.items()
        ]


def compare_bitext(
    texts: tuple[Path, Path], model: str, folder: Path, rounds: int, k: int, memory: int, least: Sequence[float]
) -> Comparison:
    """Exact mining of two texts, ours and the baseline, by ratio margin, each sentence once.

    Args:
        texts: A sentence a line, none twice.
        model: Directory of a model.
        folder: For the results.
        rounds: Of each.
        k: Neighbours.
        memory: Bytes that ours may take.
        least: Scores from which upwards pairs are compared.
    """
    ours, theirs = folder / "ours.tsv", folder / "baseline.tsv"
    settings = MiningSettings(k=k, margin=Margin.RATIO, index=FLAT, memory=memory)
    module = "harness.baseline_mining"
    runs = _in_turn(
        {
            f"{OURS} --index Flat": lambda: watch_mining(texts, ours, model, settings).run,
            "baseline: one flat index, all in memory": lambda: watch(
                [sys.executable, "-m", module, *map(str, texts), model, str(theirs), str(k)]
            ),
        },
        rounds,
    )
    pairs = read_scored(ours), read_scored(theirs)
    return Comparison("bitext, exact", runs, [agreement(*pairs, each) for each in (-math.inf, *least)])


def compare_paraphrases(
    text: Path, model: str, folder: Path, rounds: int, k: int, memory: int, least: Sequence[float]
) -> Comparison:
    """Paraphrases of one text by cosine, every neighbour: ours and sentence-transformers'.

    Arguments as `compare_bitext`; k is `top_k`.
    """
    ours, theirs = folder / "ours.tsv", folder / "peer.tsv"
    settings = MiningSettings(
        k=k, index=FLAT, memory=memory, margin=Margin.ABSOLUTE, candidates=Candidates.ALL, paraphrase=True
    )
    module = "harness.paraphrase_peer"
    runs = _in_turn(
        {
            f"{OURS} --paraphrase --index Flat": lambda: watch_mining([text], ours, model, settings).run,
            "sentence_transformers.util.paraphrase_mining": lambda: watch(
                [sys.executable, "-m", module, str(text), model, str(theirs), str(k)]
            ),
        },
        rounds,
    )
    pairs = read_scored(ours, ordered=False), read_scored(theirs, ordered=False)
    return Comparison("paraphrases", runs, [agreement(*pairs, each) for each in (-math.inf, *least)])


def agreement_rows(agreements: Sequence[Agreement]) -> list[list[str]]:
    """Rows of a table under `AGREEMENT_HEAD`."""
    return [
        [
            "all" if math.isinf(each.least) else f"{each.least:g} or more",
            f"{each.ours:,}",
            f"{each.theirs:,}",
            f"{100 * each.ours_found:.3f} %",
            f"{100 * each.theirs_found:.3f} %",
            f"{each.difference:.5f}",
        ]
        for each in agreements
    ]


AGREEMENT_HEAD = ("score", "our pairs", "their pairs", "ours found by them", "theirs found by us", "largest difference")


def _in_turn(what: Mapping[str, Callable[[], Run]], rounds: int) -> dict[str, list[Run]]:
    runs: dict[str, list[Run]] = {name: [] for name in what}
    for _ in range(rounds):
        for name, run in what.items():
            runs[name].append(replace(run(), output=""))  # what it said is of no further use
    return runs


def _medians(runs: Sequence[Run]) -> tuple[float, float]:
    return statistics.median(run.seconds for run in runs), statistics.median(run.peak_anonymous_mb for run in runs)
