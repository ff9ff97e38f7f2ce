"""One report of many results: `python benchmarks/report.py RECORD.json... --output results.md`.

Takes what the other benchmarks write with `--json`, of any number of models, and `speed.json` of benchmarks/speed.py.
Of figures that several records have, the newest count. Pictures need matplotlib: `pip install "st_paragram[plots]"`.
What people wrote of the models by hand is in a separate file, which `--notes` names: reports/results_notes.md is
that of records/2026-11/results.md, the record behind docs/results.md. Its text above the first heading goes on top,
and that under `## Models` into that section.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from reports.introduction import read_notes
from reports.report import report_markdown
from reports.sources import read_sources

from st_paragram.cli.main import run_reporting_errors
from st_paragram.core.files import write_text


def main() -> int:
    """Read, draw and write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("records", nargs="+", metavar="RECORD.json")
    parser.add_argument(
        "--output",
        type=Path,
        default=Path("benchmarks/records/2026-11/results.md"),
        metavar="FILE",
        help="(%(default)s)",
    )
    parser.add_argument("--notes", type=Path, metavar="FILE.md", help="what the reader must know besides, by headings")
    pictures = parser.add_mutually_exclusive_group()
    pictures.add_argument("--plots", type=Path, metavar="FOLDER", help="of the pictures (images, beside the report)")
    pictures.add_argument("--no-plots", action="store_true")
    arguments = parser.parse_args()

    records, speeds = read_sources(arguments.records)
    notes = read_notes(arguments.notes) if arguments.notes else {}
    plots: list[str] = []
    report_markdown(records, speeds, notes=notes)  # refuses what cannot be reported before anything is written
    if not arguments.no_plots:
        from reports.plots import draw_plots

        folder = arguments.plots or arguments.output.parent / "images"
        plots = [plot.markdown(arguments.output) for plot in draw_plots(records, folder)]
    write_text(arguments.output, report_markdown(records, speeds, plots, notes))
    print(arguments.output)
    return 0


if __name__ == "__main__":
    sys.exit(run_reporting_errors("report", main))
