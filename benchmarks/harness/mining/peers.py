"""Mining next to a baseline, and next to sentence-transformers' paraphrase mining."""

from __future__ import annotations

import argparse
import math
import statistics
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from harness.mining.process import watch_mining
from harness.output import say
from harness.processes import Run, watch
from harness.texts import write_distinct

from st_paragram.core.tables import markdown_table
from st_paragram.errors import TextError
from st_paragram.tools.bitext_mining.candidates import Candidates
from st_paragram.tools.bitext_mining.margin import Margin
from st_paragram.tools.bitext_mining.settings import MiningSettings
from st_paragram.tools.neighbors.settings import parse_memory

HEAD = ("", "seconds", "slowest", "peak, MB", "times our time", "times our memory")
AGREEMENT_HEAD = ("score", "our pairs", "their pairs", "ours found by them", "theirs found by us", "largest difference")
OURS = "st_paragram mine"
_SIMPLE = [sys.executable, "-m", "harness.mining.simple"]

Pairs = dict[tuple[str, str], float]


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of this part."""
    add = parser.add_argument
    add("--rounds", type=int, default=3, help="number of runs of each")
    add("--sentences", type=int, default=50_000, help="on each side of the bitext; 0 leaves it out")
    add("--paraphrase-sentences", type=int, default=30_000, help="0 leaves paraphrases out")
    add("--top-k", type=int, default=20, help="neighbors, of paraphrases")
    add("--ratios", type=float, nargs="*", default=[1.05, 1.1], help="from which upwards pairs are compared too")
    add("--cosines", type=float, nargs="*", default=[0.7, 0.9], help="the same for paraphrases")


def run(arguments: argparse.Namespace, folder: Path) -> dict[str, Any]:
    """Mine in turn, print the comparisons, and return them as JSON values."""
    memory, model, rounds = parse_memory(arguments.memory), arguments.model, arguments.rounds
    found: list[Comparison] = []
    if count := arguments.sentences:
        texts = write_distinct(arguments.bitext, folder, count)
        found.append(compare_bitext(texts, model, folder, rounds, arguments.k, memory, arguments.ratios))
        _print(found[-1], f"{count:,} x {count:,} sentences", rounds)
    if count := arguments.paraphrase_sentences:
        text = write_distinct(arguments.bitext, folder, count)[0]
        found.append(compare_paraphrases(text, model, folder, rounds, arguments.top_k, memory, arguments.cosines))
        _print(found[-1], f"{count:,} sentences, top_k {arguments.top_k}", rounds)
    return {"comparisons": [asdict(each) for each in found]}


@dataclass(frozen=True)
class Agreement:
    """Two lists of pairs, those of a score of `least` or more.

    Attributes:
        least: Score.
        ours: Number of our pairs.
        theirs: Number of theirs.
        ours_found: Share of our pairs that they have too, whatever their score.
        theirs_found: Share of their pairs that we have too.
        difference: Largest difference of the scores of a pair in both.
    """

    least: float
    ours: int
    theirs: int
    ours_found: float
    theirs_found: float
    difference: float


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
        k: Neighbors.
        memory: Bytes that ours may take.
        least: Scores from which upwards pairs are compared.
    """
    ours, theirs = folder / "ours.tsv", folder / "baseline.tsv"
    settings = MiningSettings(neighbors=k, margin=Margin.RATIO, memory=memory)
    runs = _in_turn(
        {
            f"{OURS}, exact": lambda: watch_mining(texts, ours, model, settings).run,
            "baseline: one flat index, all in memory": lambda: watch(
                [*_SIMPLE, "bitext", *map(str, texts), model, str(theirs), str(k)]
            ),
        },
        rounds,
    )
    pairs = read_scored(ours), read_scored(theirs)
    return Comparison("bitext, exact", runs, [agreement(*pairs, each) for each in (-math.inf, *least)])


def compare_paraphrases(
    text: Path, model: str, folder: Path, rounds: int, k: int, memory: int, least: Sequence[float]
) -> Comparison:
    """Paraphrases of one text by cosine, every neighbor: ours and sentence-transformers'.

    Arguments as `compare_bitext`; k is `top_k`.
    """
    ours, theirs = folder / "ours.tsv", folder / "peer.tsv"
    settings = MiningSettings(
        neighbors=k, memory=memory, margin=Margin.ABSOLUTE, candidates=Candidates.ALL, paraphrase=True
    )
    runs = _in_turn(
        {
            f"{OURS} --paraphrase, exact": lambda: watch_mining([text], ours, model, settings).run,
            "sentence_transformers.util.paraphrase_mining": lambda: watch(
                [*_SIMPLE, "paraphrases", str(text), model, str(theirs), str(k)]
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


def read_scored(path: Path, ordered: bool = True) -> Pairs:
    """Pairs of a file `score TAB one TAB other` with their scores.

    Args:
        path: The file.
        ordered: The sides differ; else a pair is the same both ways round.

    Raises:
        TextError: A line is of another form.
    """
    pairs: Pairs = {}
    with path.open(encoding="utf-8", newline="\n") as file:
        for number, line in enumerate(file, start=1):
            cells = line.rstrip("\n").split("\t")
            if len(cells) != 3:
                raise TextError(f"{path}: line {number} has {len(cells)} columns, not `score TAB one TAB other`")
            one, other = cells[1:] if ordered else sorted(cells[1:])
            pairs[one, other] = float(cells[0])
    return pairs


def agreement(ours: Pairs, theirs: Pairs, least: float = -math.inf) -> Agreement:
    """Compare two lists of pairs."""
    mine, other = ({pair for pair, score in each.items() if score >= least} for each in (ours, theirs))
    both = (mine | other) & ours.keys() & theirs.keys()
    return Agreement(
        least,
        len(mine),
        len(other),
        _share(len(mine & theirs.keys()), len(mine)),
        _share(len(other & ours.keys()), len(other)),
        max((abs(ours[pair] - theirs[pair]) for pair in both), default=0.0),
    )


def _print(comparison: Comparison, what: str, rounds: int) -> None:
    say(f"\n## {comparison.title}: {what}; medians of {rounds} rounds\n")
    say(markdown_table(HEAD, comparison.rows()) + "\n")
    say(markdown_table(AGREEMENT_HEAD, agreement_rows(comparison.agreements)))


def _in_turn(what: Mapping[str, Callable[[], Run]], rounds: int) -> dict[str, list[Run]]:
    runs: dict[str, list[Run]] = {name: [] for name in what}
    for _ in range(rounds):
        for name, run in what.items():
            runs[name].append(replace(run(), output=""))  # what it said is of no further use
    return runs


def _medians(runs: Sequence[Run]) -> tuple[float, float]:
    return statistics.median(run.seconds for run in runs), statistics.median(run.peak_anonymous_mb for run in runs)


def _share(part: int, whole: int) -> float:
    return part / whole if whole else 1.0
