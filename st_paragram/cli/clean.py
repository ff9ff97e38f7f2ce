"""`st-paragram clean`: drop bad pairs of a file, and repair others."""

from __future__ import annotations

import argparse
import dataclasses
from contextlib import ExitStack
from pathlib import Path
from typing import IO, TYPE_CHECKING

from st_paragram.cli.options import (
    add_language_options,
    add_model_option,
    check_input,
    is_standard_output,
    languages_from,
    model_folder,
    output_name,
    say,
    standard_output,
)
from st_paragram.core.files import atomic
from st_paragram.core.outputs import check_different, output_files
from st_paragram.errors import SettingsError

if TYPE_CHECKING:
    from st_paragram.core.text.parallel import TextSource
    from st_paragram.tools.preparation.clean_file import Scoring

DESCRIPTION = (
    "Drop the bad pairs of a translation memory or another file of pairs, and repair others. The"
    " remaining rows stay in their order and keep their case."
)
EPILOG = """\
The file is TMX, XLIFF, tab-separated text (`-`: standard input), a zip archive of OPUS, or a table
whose columns --columns names. English is the first column unless a prefix like `es-en:` says
otherwise. An output .tmx is TMX, any other is tab-separated. From TMX to TMX, units are copied
whole with their ids, notes, inline tags and other languages; only a repaired text is replaced.

  st-paragram clean memory.tmx --lang es --output clean.tmx --rejects rejects.tsv
  st-paragram clean memory.tmx --pair fr de --output clean.tmx --score --lowest lowest.tsv
  st-paragram clean pairs.csv --columns english spanish --lang es | head
  st-paragram clean --moses news.en news.es --lang es --output clean.tsv --cleaning filters.yaml

The list `memory` drops pairs with an empty side, equal sides, other numbers, exchanged sides, tags
on one side, a very different length, or a side that is cut off, and repeated pairs. --score also
finds wrong translations: it drops pairs whose cosine is below --min-score.
"""


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    add = parser.add_argument
    text = "pairs; the prefix is needed unless the columns are English and --lang"
    add("file", nargs="?", metavar="[LANG-LANG:]FILE", help=text)
    add("--moses", nargs=2, metavar=("EN", "XX"), help="pairs in two files, one per language")
    columns = (
        "for a table (CSV, JSON lines, Parquet, or TSV with a header): columns of the two"
        " languages, by name; numbers from 1 for a CSV or TSV without a header"
    )
    add("--columns", nargs=2, metavar="NAME", help=columns)
    add_language_options(parser, "languages other than English, e.g. es or fr-es")
    output = "output file, tab-separated or .tmx (default, or `-`: standard output)"
    add("--output", type=Path, metavar="FILE", help=output)
    rejects = "output file for dropped rows, `row TAB reason TAB first TAB second`"
    add("--rejects", type=Path, metavar="FILE.tsv", help=rejects)
    add("--overwrite", action="store_true", help="replace existing outputs")
    cleaning = (
        "list of filters: `memory`, `default`, `paper`, `paranmt`, or your own file"
        " (default: %(default)s)"
    )
    add("--cleaning", default="memory", metavar="NAME|FILE.yaml", help=cleaning)
    invalid = "drop rows that are not UTF-8 or have a wrong number of columns"
    add("--drop-invalid", action="store_true", help=invalid)
    scores = parser.add_argument_group("scores")
    scores.add_argument("--score", action="store_true", help="score the pairs with a model")
    add_model_option(scores)
    scores.add_argument(
        "--min-score",
        type=float,
        default=0.2,
        help="minimum cosine of a pair (default: %(default)s)",
    )
    lowest = "output file for the kept pairs with the lowest cosines, `score TAB row TAB first TAB"
    scores.add_argument("--lowest", type=Path, metavar="FILE.tsv", help=f"{lowest} second`")
    scores.add_argument(
        "--count", type=int, default=100, help="pairs in --lowest (default: %(default)s)"
    )


def run(arguments: argparse.Namespace) -> int:
    """Clean the file and print the counts."""
    from st_paragram.core.text.translation_files import tmx_languages
    from st_paragram.tools.cleaning.config import named_cleaning
    from st_paragram.tools.preparation.clean_file import clean_file

    cleaning = named_cleaning(arguments.cleaning)
    source = dataclasses.replace(_source(arguments), further_columns=cleaning.further_columns)
    output = None if is_standard_output(arguments.output) else arguments.output
    as_tmx = output is not None and tmx_languages(output, source.pair) is not None
    outputs = [path for path in (output, arguments.rejects, arguments.lowest) if path]
    for path in source.paths:
        check_input(path)
    check_different(outputs, source.paths)
    with ExitStack() as stack:
        stack.enter_context(output_files(*outputs, overwrite=arguments.overwrite))
        scoring = _scoring(arguments)

        def opened(path: Path | None) -> IO[bytes] | None:
            return stack.enter_context(atomic(path)) if path else None

        report = clean_file(
            source,
            opened(output) or stack.enter_context(standard_output()),
            cleaning,
            as_tmx=as_tmx,
            rejects=opened(arguments.rejects),
            scoring=scoring,
            drop_invalid=arguments.drop_invalid,
        )
        lowest = opened(arguments.lowest)
        if lowest and scoring:
            for score, number, row in scoring.lowest:
                line = f"{score:.6f}\t{number}\t{row[0]}\t{row[1]}\n"
                lowest.write(line.encode("utf-8", "replace"))
    say(f"{report.table('kept')}\n{output_name(output)}: {report.total.kept:,} pairs")
    return 0


def _source(arguments: argparse.Namespace) -> TextSource:
    from st_paragram.core.text.parallel import TextSource, parse_source, with_columns

    languages = languages_from(arguments)
    if bool(arguments.file) == bool(arguments.moses):
        raise SettingsError("give one text: FILE, or --moses EN XX")
    if arguments.moses:
        source = TextSource(tuple(arguments.moses), languages)
    else:
        source = parse_source(arguments.file, languages)
    columns = [arguments.columns] if arguments.columns else []
    return with_columns([source], columns)[0]


def _scoring(arguments: argparse.Namespace) -> Scoring | None:
    from st_paragram.core.encoding.models import load_encoder
    from st_paragram.tools.preparation.clean_file import Scoring

    if not arguments.score:
        if arguments.lowest or arguments.model:
            raise SettingsError("--lowest and --model need --score; add it")
        return None
    model = load_encoder(model_folder(arguments))
    count = arguments.count if arguments.lowest else 0
    return Scoring(model, arguments.min_score, count=count)
