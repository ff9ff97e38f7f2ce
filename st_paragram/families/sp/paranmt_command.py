"""`st-paragram paranmt`: paraphrases with scores in, a pair store out, filtered as the papers filter ParaNMT."""

from __future__ import annotations

import argparse
from pathlib import Path

from st_paragram.core.settings import add_setting_options, given
from st_paragram.tools.options.preparation import (
    add_store_options,
    add_work_options,
    check_texts,
    settings_from,
    vocabulary_from,
    work_from,
    write_report,
)

DESCRIPTION = (
    "Turn paraphrases with scores into a pair store, the file that `st-paragram train paraphrase` reads. The pairs are "
    "filtered by their score, their overlap and their length, shuffled, and stored as ids."
)
EPILOG = """\
A text has the columns `sentence TAB paraphrase TAB score`, like ParaNMT-50M, and is plain or compressed. If your text
has no scores, --model computes them, as the cosine by any model of this package. The defaults of the filters are those
of the paper (EMNLP 2022, section 3).

  st-paragram paranmt --text para-nmt-50m.txt --output data/en-en.h5
  st-paragram paranmt --text paraphrases.tsv.xz --model p-sp-es --sim-low 0.5 --rejects dropped
  st-paragram paranmt --text scored.tsv --label-column 4 --label en     # a fourth column with language labels
"""


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options, for the command and for the script that does the same."""
    from st_paragram.families.sp.paranmt import ParanmtSettings

    add = parser.add_argument
    add("--text", action="append", required=True, metavar="FILE", help="text of scored paraphrases; repeatable")
    add(
        "--output",
        type=Path,
        default=Path("data/en-en.h5"),
        metavar="FILE.h5",
        help="output pair store (default: %(default)s)",
    )
    add("--lang", default="en", help="language of both sides (default: %(default)s)")
    add("--cap", type=int, metavar="N", help="maximum pairs per text, drawn at random (default: all)")
    add_setting_options(parser.add_argument_group("filters"), ParanmtSettings)
    add_store_options(parser)
    add_work_options(parser)


def run(arguments: argparse.Namespace) -> int:
    """Make the store and print the table; returns the exit status.

    Raises:
        ParagramError: The text, the settings or the output are refused.
    """
    from st_paragram.core.text.parallel import TextSource
    from st_paragram.families.sp.paranmt import ParanmtSettings
    from st_paragram.tools.preparation.prepare import prepare

    languages = (arguments.lang, arguments.lang)
    filters = ParanmtSettings(**given(arguments, ParanmtSettings))
    settings = settings_from(arguments, languages, filters.cleaning())
    sources = [
        TextSource((path,), languages, further_columns=filters.further_columns, cap=arguments.cap)
        for path in arguments.text
    ]
    vocabulary, work = vocabulary_from(arguments, settings), work_from(arguments)
    check_texts(arguments, sources)
    prepared = prepare(sources, arguments.output, settings, vocabulary, arguments.overwrite, work)
    write_report(prepared, arguments.output)
    return 0
