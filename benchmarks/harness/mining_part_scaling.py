"""Time of mining by stage, and its memory, against the number of sentences."""

from __future__ import annotations

import argparse
from pathlib import Path

from harness.growing_table import print_growing, say
from harness.mining_results import ScalingRun
from harness.mining_scaling import HEAD, Size, growth, measure_size, size_row
from st_paragram.tools.bitext_mining.settings import MiningSettings
from st_paragram.tools.search.settings import parse_memory


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of this part."""
    sizes = [10_000, 30_000, 100_000, 300_000, 1_000_000]
    parser.add_argument("--sizes", type=int, nargs="+", default=sizes, help="sentences on each side")
    parser.add_argument("--workers", type=int, default=1, help="processes")


def run(arguments: argparse.Namespace, folder: Path) -> ScalingRun:
    """Mine texts of every size, print as they come, and return what was measured."""
    settings = MiningSettings(k=arguments.k, memory=parse_memory(arguments.memory), index=arguments.index)
    sizes: list[Size] = []

    def measured(count: int) -> list[str]:
        sizes.append(measure_size(arguments.bitext, arguments.model, count, folder, settings, arguments.workers))
        return size_row(sizes[-1])

    say(f"## Mining of N x N sentences, memory {arguments.memory}, workers: {arguments.workers}; seconds by stage\n")
    print_growing(HEAD, map(measured, arguments.sizes))
    say("\nMost time: " + "; ".join(growth(sizes)))
    if arguments.plot:
        from harness.mining_plots import plot_scaling

        plot_scaling(sizes, arguments.plot / "mining-scaling.png")
    return ScalingRun({arguments.model: sizes}, arguments.memory, arguments.workers)
