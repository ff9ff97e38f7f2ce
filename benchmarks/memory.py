"""Memory of training by number of pairs: `python benchmarks/memory.py --text en-es.tsv --lang es`.

The text is repeated to the requested sizes and prepared. Each store is trained for the same number
of steps in a new process, whose peak anonymous memory (RssAnon, without the page cache of the
mapped store) and resident memory are printed. Linux only.
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

HEAD = ["pairs", "store, MB", "peak RssAnon, MB", "peak RSS, MB", "seconds"]
BATCH = 128


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
        "--pairs", type=int, nargs="+", default=[50_000, 300_000, 3_000_000], help="(%(default)s)"
    )
    parser.add_argument(
        "--steps", type=int, default=380, help="steps per training run (%(default)s)"
    )
    parser.add_argument(
        "--dim", type=int, default=300, help="dimensions of an embedding (%(default)s)"
    )
    parser.add_argument("--megabatch-size", type=int, default=60, help="maximum M (%(default)s)")
    parser.add_argument(
        "--folder", type=Path, default=Path(), help="folder for temporary files, some GB"
    )
    arguments = parser.parse_args()

    def rows(folder: Path) -> Iterator[list[str]]:
        store = folder / "store.h5"
        for pairs in arguments.pairs:
            text = write_repeats(arguments.text, folder / "text.tsv", pairs)
            prepare = [
                "--lang",
                arguments.lang,
                "--text",
                text,
                "--output",
                store,
                "--overwrite",
                "--no-checks",
            ]
            command("prepare", *prepare).run()
            stored = len(PairStore(store))
            settings = {
                "dim": arguments.dim,
                "megabatch-size": arguments.megabatch_size,
                "anneal-interval": 10,
            }
            settings |= {"batch-size": BATCH, "epochs": arguments.steps * BATCH / stored}
            options = [
                word for name, value in settings.items() for word in (f"--{name}", str(value))
            ]
            output = ["--output", folder / "model", "--overwrite", "--config", "small"]
            run = command(
                "train", "bitext", "--lang", arguments.lang, "--data", store, *output, *options
            ).run()
            figures = [
                store.stat().st_size / 2**20,
                run.peak_anonymous_mb,
                run.peak_resident_mb,
                run.seconds,
            ]
            yield [f"{stored:,}", *(f"{figure:,.0f}" for figure in figures)]

    with tempfile.TemporaryDirectory(dir=arguments.folder) as folder:
        print_growing(HEAD, rows(Path(folder)))
    return 0


if __name__ == "__main__":
    sys.exit(run_reporting_errors("memory", main))
