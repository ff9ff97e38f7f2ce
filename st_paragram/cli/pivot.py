"""`st-paragram pivot`: extract paraphrases from bitext, sentences that share a translation."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from st_paragram.core.settings import add_setting_options, given

DESCRIPTION = (
    "Extract paraphrases from bitext: sentences of one language with the same translation become"
    " pairs. The output has two tab-separated columns, with rows in random order."
)
EPILOG = ""


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    from st_paragram.tools.preparation.pivot import PivotSettings

    add = parser.add_argument
    add(
        "--text",
        action="append",
        required=True,
        metavar="LANG-LANG:FILE",
        help="two-column bitext; repeatable",
    )
    add("--lang", default="en", help="language to find paraphrases in (default: %(default)s)")
    add("--output", type=Path, required=True, metavar="FILE.tsv", help="output file")
    add("--overwrite", action="store_true", help="replace existing outputs")
    add_setting_options(parser, PivotSettings)
    invalid = (
        "drop rows that are not UTF-8 or have the wrong number of columns, instead of refusing the"
        " text"
    )
    add("--drop-invalid", action="store_true", help=invalid)
    add("--json", type=Path, metavar="FILE", help="also write the counts to this file")


def run(arguments: argparse.Namespace) -> int:
    """Extract the pairs and print the counts."""
    from st_paragram.core.files import write_json
    from st_paragram.core.outputs import output_files
    from st_paragram.tools.preparation.pivot import PivotSettings, pivot, pivot_source

    settings = PivotSettings(**given(arguments, PivotSettings))
    sources = [pivot_source(spec, arguments.lang) for spec in arguments.text]
    with output_files(arguments.output, arguments.json, overwrite=arguments.overwrite):
        report = pivot(
            sources,
            arguments.output,
            settings,
            drop_invalid=arguments.drop_invalid,
            overwrite=arguments.overwrite,
        )
        if arguments.json:
            write_json(arguments.json, vars(report))
    sys.stdout.write(f"{report.table()}\n")
    return 0
