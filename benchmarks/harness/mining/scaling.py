"""Time of mining by stage, and its memory, against the number of sentences."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from harness.mining.process import WatchedMining, watch_mining
from harness.output import print_growing, say
from harness.texts import write_distinct

from st_paragram.core.figures import COLOURS, MARKERS, SMALL, new_figure, save, tidy
from st_paragram.tools.bitext_mining.settings import MiningSettings
from st_paragram.tools.neighbors.settings import AUTO, parse_memory

STAGES = ("sentences", "embed", "search", "pairs")
HEAD = ("sentences a side", "start", *STAGES, "all, s", "embedded/s", "pairs", "peak, MB", "index", "effort", "recall")


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of this part."""
    sizes = [10_000, 30_000, 100_000, 300_000, 1_000_000]
    parser.add_argument("--sizes", type=int, nargs="+", default=sizes, help="sentences on each side")
    parser.add_argument("--index", default=AUTO, help="see `st-paragram mine --help`")
    parser.add_argument("--plot", type=Path, metavar="DIR", help="draw a picture there")


def run(arguments: argparse.Namespace, folder: Path) -> dict[str, Any]:
    """Mine texts of every size, print as they come, and return what was measured as JSON values."""
    settings = MiningSettings(neighbors=arguments.k, memory=parse_memory(arguments.memory), index=arguments.index)
    sizes: list[Size] = []

    def measured(count: int) -> list[str]:
        sizes.append(measure_size(arguments.bitext, arguments.model, count, folder, settings))
        return size_row(sizes[-1])

    say(f"## Mining of N x N sentences, memory {arguments.memory}; seconds by stage\n")
    print_growing(HEAD, map(measured, arguments.sizes))
    say("\nMost time: " + "; ".join(growth(sizes)))
    if arguments.plot:
        plot_scaling(sizes, arguments.plot / "mining-scaling.png")
    return {"sizes": [asdict(size) for size in sizes]}


@dataclass(frozen=True)
class Size:
    """A mining of two texts of that many sentences each.

    Attributes:
        sentences: On each side.
        seconds: Of wall time, from the start of Python to its end.
        stages: Seconds by stage.
        peak_mb: Of anonymous memory of all its processes.
        pairs: Found.
        index: For each direction its factory string.
        effort: For each direction; None for an exact search.
        recall: For each direction, against an exact search of a sample; 1 for an exact search.
    """

    sentences: int
    seconds: float
    stages: dict[str, float]
    peak_mb: float
    pairs: int
    index: tuple[str, ...]
    effort: tuple[int | None, ...]
    recall: tuple[float, ...]

    @property
    def start_seconds(self) -> float:
        """What is not in a stage: the start of Python and its libraries, and the look at the texts."""
        return self.seconds - sum(self.stages.values())

    @property
    def embedded_per_second(self) -> float:
        """Sentences, of both sides."""
        return 2 * self.sentences / self.stages["embed"] if self.stages.get("embed") else 0.0


def measure_size(bitext: Path, model: str, count: int, folder: Path, settings: MiningSettings | None = None) -> Size:
    """Make two texts of a size and mine them in a separate process.

    Args:
        bitext: That the texts are made of, see `write_distinct`.
        model: To embed with.
        count: Sentences on each side.
        folder: For texts and results: some 5 KB a sentence with 1024 components.
        settings: Of the mining.
    """
    texts = write_distinct(bitext, folder, count)
    output = folder / f"{count}.pairs"
    mined = watch_mining(texts, output, model, settings)
    for path in (*texts, output):
        path.unlink()
    return size_of(count, mined)


def size_of(count: int, mined: WatchedMining) -> Size:
    """What a report says of a size."""
    searched = mined.report["searched"]
    return Size(
        count,
        mined.run.seconds,
        mined.report["seconds"],
        mined.run.peak_anonymous_mb,
        mined.report["pairs"],
        tuple(each["index"] or "exact" for each in searched),
        tuple(each["effort"] and each["effort"]["effort"] for each in searched),
        tuple(each["effort"]["recall"] if each["effort"] else 1.0 for each in searched),
    )


def size_row(size: Size) -> list[str]:
    """A row of a table under `HEAD`."""
    return [
        f"{size.sentences:,}",
        f"{size.start_seconds:,.1f}",
        *(f"{size.stages.get(stage, 0.0):,.1f}" for stage in STAGES),
        f"{size.seconds:,.1f}",
        f"{size.embedded_per_second:,.0f}",
        f"{size.pairs:,}",
        f"{size.peak_mb:,.0f}",
        _joined(size.index),
        _joined("-" if effort is None else str(effort) for effort in size.effort),
        _joined(f"{recall:.4f}" for recall in size.recall),
    ]


def growth(sizes: Sequence[Size]) -> list[str]:
    """What takes the most time of each size, in words."""
    found = []
    for size in sizes:
        stage, seconds = max(size.stages.items(), key=lambda item: item[1])
        found.append(f"{size.sentences:,}: {stage}, {100 * seconds / size.seconds:.0f} % of the time")
    return found


def plot_scaling(sizes: Sequence[Size], path: Path) -> Path:
    """Seconds of each stage against the number of sentences a side, both logarithmic.

    Raises:
        MissingExtraError: matplotlib is not installed.
    """
    figure = new_figure(7, 5)
    axes = figure.subplots()
    counts = [size.sentences for size in sizes]
    for number, stage in enumerate((*STAGES, "all")):
        seconds = [size.seconds if stage == "all" else size.stages.get(stage, 0.0) for size in sizes]
        shown = [(count, value) for count, value in zip(counts, seconds, strict=True) if value > 0.01]
        if shown:
            style: dict[str, Any] = {
                "color": COLOURS[number % len(COLOURS)],
                "marker": MARKERS[number % len(MARKERS)],
            }
            axes.loglog(*zip(*shown, strict=True), label=stage, linewidth=2.5 if stage == "all" else 1.2, **style)
    axes.set_xlabel("sentences on each side")
    axes.set_ylabel("seconds")
    axes.set_title("Time of mining by stage", fontsize=11, loc="left")
    axes.grid(which="both", alpha=0.25)
    tidy(axes)
    axes.legend(frameon=False, fontsize=SMALL)
    save(figure, path)
    return path


def _joined(cells: Iterable[str]) -> str:
    """One cell for both directions, if they are alike."""
    return " / ".join(dict.fromkeys(cells))
