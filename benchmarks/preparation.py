"""Speed and memory of preparing a pair store: `python benchmarks/preparation.py --text en-es.tsv
--lang es`.

The text is repeated to the requested sizes, with a word changed in most repeats. `st-paragram
prepare` makes a store of each size with each number of workers. The table has the pairs read per
second and the peak memory of all processes.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from harness.output import print_growing
from harness.processes import command
from harness.texts import write_repeats

from st_paragram.cli.main import run_reporting_errors
from st_paragram.core.pair_store import PairStore

HEAD = ["pairs", "workers", "stored", "seconds", "pairs/s", "peak RssAnon, MB", "peak RSS, MB"]


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--text", required=True, metavar="FILE", help="rows `English TAB other language`"
    )
    parser.add_argument(
        "--lang", default="xx", metavar="CODE", help="the other language (%(default)s)"
    )
    parser.add_argument(
        "--vocab", metavar="FILE", help="sentencepiece model to use instead of training one"
    )
    parser.add_argument(
        "--pairs", type=int, nargs="+", default=[500_000, 5_000_000], help="(%(default)s)"
    )
    parser.add_argument(
        "--workers", type=int, nargs="+", default=[1, 2], help="numbers of processes (%(default)s)"
    )
    parser.add_argument("--cleaning", help="filters, see `st-paragram prepare --help`")
    parser.add_argument(
        "--folder", type=Path, default=Path(), help="folder for temporary files, some GB"
    )
    arguments = parser.parse_args()
    options = ["--lang", arguments.lang, "--no-checks"]
    for name in ("vocab", "cleaning"):
        options += [f"--{name}", value] if (value := getattr(arguments, name)) else []

    def rows(folder: Path) -> Iterator[list[str]]:
        for pairs in arguments.pairs:
            text, store = (
                write_repeats(arguments.text, folder / f"{pairs}.tsv", pairs),
                folder / "store.h5",
            )
            for workers in arguments.workers:
                words = [
                    "--text",
                    text,
                    "--output",
                    store,
                    "--overwrite",
                    "--workers",
                    str(workers),
                ]
                run = command("prepare", *options, *words).run()
                counts = [f"{pairs:,}", str(workers), f"{len(PairStore(store)):,}"]
                figures = [
                    run.seconds,
                    pairs / run.seconds,
                    run.peak_anonymous_mb,
                    run.peak_resident_mb,
                ]
                yield [*counts, *(f"{figure:,.0f}" for figure in figures)]
            text.unlink()

    with tempfile.TemporaryDirectory(dir=arguments.folder) as folder:
        print_growing(HEAD, rows(Path(folder)))
    return 0


if __name__ == "__main__":
    sys.exit(run_reporting_errors("preparation", main))
