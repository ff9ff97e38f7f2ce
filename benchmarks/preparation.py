"""Speed and memory of preparing a pair store, beside the same row by row: `benchmarks/preparation.py --text F`.

F is a text of two tab-separated columns, plain or compressed. It is repeated, with a word changed in most repeats, to
the sizes asked for. Each size is prepared by `st-paragram prepare` with each number of workers, in a process of its
own; the first table has the pairs read per second by stage and the peak of the memory of all its processes. The second
sets it beside a plain rendering of the steps (`harness.straight_preparation`) with the same
vocabulary, after both were found to have stored the same pairs: medians of several rounds, taken in turn.
"""

from __future__ import annotations

import argparse
import re
import statistics
import sys
import tempfile
from pathlib import Path

from harness.noisy_repeats import write_repeats
from harness.process_memory import Run, watch
from harness.same_pairs import same_pairs

from st_paragram.cli.main import run_reporting_errors

STAGES = ("read", "clean", "deduplicate", "vocabulary", "encode", "store")
STEPS = ("read", "sort", "shuffle", "filter", "encode", "write")


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--text", type=Path, required=True, help="English TAB the other language")
    parser.add_argument("--lang", default="xx")
    parser.add_argument("--vocab", type=Path, help="a sentencepiece model, instead of training one")
    parser.add_argument("--pairs", type=int, nargs="+", default=[500_000, 5_000_000])
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--cleaning", default=None, help="for st-paragram prepare, in the first table")
    parser.add_argument("--straight-pairs", type=int, default=200_000, help="of the second table; 0 leaves it out")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--folder", type=Path, default=Path(), help="for temporary files, some GB")
    arguments = parser.parse_args()

    with tempfile.TemporaryDirectory(dir=arguments.folder) as temporary:
        folder = Path(temporary)
        print(f"| pairs | workers | {' | '.join(STAGES)} | all, pairs/s | seconds | peak, MB |")
        print(f"|{' --- |' * (len(STAGES) + 5)}")
        more = ["--cleaning", arguments.cleaning] if arguments.cleaning else []
        for pairs in arguments.pairs:
            text = write_repeats(arguments.text, folder / "text.tsv", pairs)
            for workers in arguments.workers:
                print_row(pairs, workers, prepared(text, folder, arguments, workers, more))
        if arguments.straight_pairs:
            compare(folder, arguments)
    return 0


def prepared(
    text: Path, folder: Path, arguments: argparse.Namespace, workers: int, more: list[str] | None = None
) -> Run:
    """Prepare a text with our command."""
    command = [sys.executable, "-m", "st_paragram.cli.main", "prepare", "--lang", arguments.lang, "--text", str(text)]
    command += ["--output", str(folder / "ours.h5"), "--overwrite", "--workers", str(workers), *(more or [])]
    return watch(command + (["--vocab", str(arguments.vocab)] if arguments.vocab else []))


def print_row(pairs: int, workers: int, run: Run) -> None:
    """A row of the first table."""
    seconds = {name: float(value) for name, value in re.findall(r"(\w+) ([\d.]+)(?=[,\n])", run.output)}
    rates = [f"{pairs / seconds[stage]:,.0f}" if seconds.get(stage) else "-" for stage in STAGES]
    ends = [f"{pairs / run.seconds:,.0f}", f"{run.seconds:.1f}", f"{run.peak_anonymous_mb:,.0f}"]
    print(f"| {pairs:,} | {workers} | {' | '.join([*rates, *ends])} |", flush=True)


def compare(folder: Path, arguments: argparse.Namespace) -> None:
    """The second table."""
    text = write_repeats(arguments.text, folder / "text.tsv", arguments.straight_pairs)
    if arguments.vocab is None:
        raise SystemExit("the comparison needs --vocab, so that both use one vocabulary; or give --straight-pairs 0")
    straight, ours = list[Run](), {workers: list[Run]() for workers in arguments.workers}
    for _ in range(arguments.rounds):
        module = "harness.straight_preparation"
        straight.append(
            watch([sys.executable, "-m", module, str(text), str(arguments.vocab), str(folder / "straight.h5")])
        )
        for workers, runs in ours.items():
            runs.append(prepared(text, folder, arguments, workers))
    count = same_pairs(folder / "ours.h5", folder / "straight.h5")
    median = statistics.median(run.seconds for run in straight)
    steps = [dict(re.findall(r"(\w+)=([\d.]+)", run.output)) for run in straight]
    medians = {step: statistics.median(float(each[step]) for each in steps) for step in STEPS}
    print(f"\n{arguments.straight_pairs:,} pairs, {count:,} stored, the same by all. Medians of {arguments.rounds}.")
    print(
        f"| | seconds | pairs/s | ratio |\n| --- | --- | --- | --- |\n{line('row by row', median, median, arguments)}"
    )
    for workers, runs in ours.items():
        print(line(f"ours, workers: {workers}", statistics.median(run.seconds for run in runs), median, arguments))
    print("row by row, seconds by step: " + ", ".join(f"{name} {value:.1f}" for name, value in medians.items()))


def line(name: str, seconds: float, straight: float, arguments: argparse.Namespace) -> str:
    """A row of the second table."""
    return f"| {name} | {seconds:.1f} | {arguments.straight_pairs / seconds:,.0f} | {straight / seconds:.1f} |"


if __name__ == "__main__":
    sys.exit(run_reporting_errors("preparation", main))
