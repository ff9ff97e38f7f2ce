"""`st-paragram pivot`: paraphrases out of bitext: sentences that share a translation."""

from __future__ import annotations

import argparse
import dataclasses
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from st_paragram.core.files import check_output
from st_paragram.core.plan import Needs, Plan
from st_paragram.core.settings import add_setting_options, given
from st_paragram.core.words import in_words
from st_paragram.tools.options.common import add_plan_option, print_plan

if TYPE_CHECKING:
    from collections.abc import Sequence

    from st_paragram.core.text.parallel import TextSource
    from st_paragram.tools.preparation.pivot_pairs import PivotSettings

DESCRIPTION = (
    "Extract paraphrases from bitext: sentences of one language with the same translation become pairs. "
    "The output has two columns with a tab between them, and its rows are in random order."
)
EPILOG = ""


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options, for the command and for the script that does the same."""
    from st_paragram.tools.preparation.pivot_pairs import PivotSettings

    add = parser.add_argument
    add("--text", action="append", required=True, metavar="LANG-LANG:FILE", help="two-column bitext; repeatable")
    add("--lang", default="en", help="language to find paraphrases in (default: %(default)s)")
    add("--output", type=Path, required=True, metavar="FILE.tsv", help="output file; an existing file is replaced")
    add_setting_options(parser, PivotSettings)
    add(
        "--drop-invalid",
        action="store_true",
        help="drop rows that are not UTF-8 or have the wrong number of columns, instead of refusing the text",
    )
    add("--json", type=Path, metavar="FILE", help="also write the numbers to this file (default: nowhere)")
    add_plan_option(parser)


def run(arguments: argparse.Namespace) -> int:
    """Make the pairs and print the numbers; returns the exit status.

    Raises:
        ParagramError: A text, a setting or the output is refused.
    """
    from st_paragram.core.files import output_files, write_json
    from st_paragram.tools.preparation.pivot import pivot, pivot_source
    from st_paragram.tools.preparation.pivot_pairs import PivotSettings

    settings = PivotSettings(**given(arguments, PivotSettings))
    sources = [pivot_source(spec, arguments.lang) for spec in arguments.text]
    if arguments.plan:
        return print_plan(_plan(arguments, sources, settings))
    with output_files(arguments.output, arguments.json, overwrite=True):
        report = pivot(sources, arguments.output, settings, arguments.drop_invalid)
        if arguments.json:
            write_json(arguments.json, report.as_json())
    sys.stdout.write(f"{report.table()}\n")
    return 0


def _plan(arguments: argparse.Namespace, sources: Sequence[TextSource], settings: PivotSettings) -> Plan:
    """What would be done; temporary files take as much room as the text at most (`preparation.pivot`)."""
    from st_paragram.tools.options.plans import planned_pairs, total

    outputs = [path for path in (arguments.output, arguments.json) if path]
    for path in outputs:
        check_output(path, overwrite=True)
    texts = [planned_pairs(source, arguments.drop_invalid) for source in sources]
    makes = [f"{path}{', which exists and is replaced' if path.exists() else ''}" for path in outputs]
    return Plan(
        f"make paraphrases ({arguments.lang}) out of bitext",
        [text.line for text in texts],
        makes,
        [in_words(dataclasses.asdict(settings))],
        Needs(disk=total(text.bytes for text in texts)),
    )
