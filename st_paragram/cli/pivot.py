"""`st-paragram pivot`: extract sentences that share a translation from bitext."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from st_paragram.cli.options import language_code
from st_paragram.core.settings import add_setting_options, given

DESCRIPTION = (
    "Extract pairs of sentences with the same translation from bitext: paraphrases in one language,"
    " or translations of two languages. The output has two tab-separated columns, with rows in"
    " random order."
)
EPILOG = """\
  st-paragram pivot --text en-es:a.tsv --text en-de:b.tsv --output paraphrases.tsv
  st-paragram pivot --pair fr de --text en-fr:a.tsv --text en-de:b.tsv --output fr-de.tsv
"""


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
    languages = parser.add_mutually_exclusive_group()
    about = "language to find paraphrases in (default: %(default)s)"
    languages.add_argument("--lang", type=language_code, default="en", metavar="CODE", help=about)
    about = "two languages to find translations in instead"
    languages.add_argument("--pair", nargs=2, type=language_code, metavar="CODE", help=about)
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
    languages = list(dict.fromkeys(arguments.pair or [arguments.lang]))
    sources = [pivot_source(spec, languages) for spec in arguments.text]
    with output_files(arguments.output, arguments.json, overwrite=arguments.overwrite):
        report = pivot(
            sources,
            arguments.output,
            settings,
            languages=languages,
            drop_invalid=arguments.drop_invalid,
            overwrite=arguments.overwrite,
        )
        if arguments.json:
            write_json(arguments.json, vars(report))
    sys.stdout.write(f"{report.table()}\n")
    return 0
