"""`st-paragram paranmt`: paraphrases with scores in, a pair store out, filtered as the papers filter ParaNMT."""

from __future__ import annotations

import argparse
import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING, Any

from st_paragram.cli.preparation_options import (
    add_store_options,
    add_work_options,
    settings_from,
    vocabulary_from,
    work_from,
    write_report,
)

if TYPE_CHECKING:
    from st_paragram.cleaning.config import Cleaning

_EPILOG = """\
A text has the columns `sentence TAB paraphrase TAB score`, as ParaNMT-50M has; plain or compressed. Where there is no
score, --model computes one, the cosine of any of our models. The defaults are those of EMNLP 2022, section 3.

  st-paragram paranmt --text para-nmt-50m.txt --output data/en-en.h5
  st-paragram paranmt --text paraphrases.tsv.xz --model p-sp-es --sim-low 0.5 --rejects dropped
  st-paragram paranmt --text scored.tsv --label-column 4 --label en     # a fourth column with language labels
"""


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the parser of this command."""
    parser = subparsers.add_parser(
        "paranmt",
        help="make a pair store of scored paraphrases",
        description="Filter paraphrases by score, overlap and length, shuffle them, store encoded pairs.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add_options(parser)


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options, for the command and for the script that does the same."""
    add = parser.add_argument
    add("--text", action="append", required=True, metavar="FILE", help="sentence TAB paraphrase TAB score; repeatable")
    add("--output", type=Path, default=Path("data/en-en.h5"), metavar="FILE.h5", help="the store (%(default)s)")
    add("--lang", default="en", help="the language of both sides (%(default)s)")
    add("--cap", type=int, metavar="N", help="take at most N pairs of each text, at random")
    add = parser.add_argument_group("filters").add_argument
    add("--sim-low", type=float, default=0.4, help="least score (%(default)s)")
    add("--sim-high", type=float, default=1.0, help="largest score (%(default)s)")
    add("--overlap", type=float, default=0.7, help="largest share of word trigrams in common (%(default)s)")
    add("--min-length", type=int, default=5, help="words a side needs (%(default)s)")
    add("--max-length", type=int, default=40, help="words a side may have (%(default)s)")
    add("--columns", type=int, help="columns of the texts (3, or 2 with --model)")
    add("--score-column", type=int, default=3, help="of the score, counted from 1 (%(default)s)")
    add("--model", help="compute scores with this model instead")
    add("--label-column", type=int, help="keep rows whose column, counted from 1, is --label")
    add("--label", default="en", help="(%(default)s)")
    add("--lid", action="store_true", help="also identify the language of both sides (extra lid)")
    add_store_options(parser)
    add_work_options(parser)


def run(arguments: argparse.Namespace) -> int:
    """Make the store and print the table; returns the exit status.

    Raises:
        ParagramError: If the text, the settings or the output are refused.
    """
    from st_paragram.data.text import TextSource
    from st_paragram.preparation.prepare import prepare

    languages = (arguments.lang, arguments.lang)
    settings = settings_from(arguments, languages, _cleaning(arguments))
    columns = arguments.columns or max(arguments.label_column or 0, 2 if arguments.model else arguments.score_column)
    sources = [TextSource((path,), languages, further_columns=columns - 2) for path in arguments.text]
    sources = [dataclasses.replace(source, cap=arguments.cap) for source in sources]
    vocabulary = vocabulary_from(arguments, settings)
    prepared = prepare(sources, arguments.output, settings, vocabulary, arguments.overwrite, work_from(arguments))
    write_report(prepared, arguments.output)
    return 0


def _cleaning(arguments: argparse.Namespace) -> Cleaning:
    """The filters in the order of their cost."""
    from st_paragram.cleaning.config import parse_cleaning

    filters: list[dict[str, Any]] = [
        {"length": {"min_length": arguments.min_length, "max_length": arguments.max_length}}
    ]
    if arguments.label_column:
        filters.append({"label": {"column": arguments.label_column - 3, "value": arguments.label}})
    score: dict[str, Any] = {"low": arguments.sim_low, "high": arguments.sim_high}
    score |= {"model": arguments.model} if arguments.model else {"column": arguments.score_column - 3}
    given: list[dict[str, Any]] = [{"paraphrase_score": score}]
    overlap: list[dict[str, Any]] = [{"overlap": {"max_overlap": arguments.overlap}}]
    language: list[dict[str, Any]] = [{"language": {}}] if arguments.lid else []
    filters += [*overlap, *language, *given] if arguments.model else [*given, *overlap, *language]
    return parse_cleaning([*filters, {"duplicates": {"on": ["pair"]}}], "the options")
