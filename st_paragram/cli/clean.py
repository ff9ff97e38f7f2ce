"""`st-paragram clean`: drop bad pairs of a file, and repair others."""

from __future__ import annotations

import argparse
from contextlib import ExitStack
from pathlib import Path
from typing import IO

from st_paragram.cli.options import (
    add_language_options,
    add_model_option,
    add_pairs_options,
    check_input,
    checked_languages,
    is_standard_output,
    model_folder,
    output_name,
    say,
    standard_output,
)
from st_paragram.cli.store_options import sources_from
from st_paragram.core.files import atomic
from st_paragram.core.formatting import counted
from st_paragram.core.outputs import check_different, output_files
from st_paragram.core.settings import add_setting_options, given
from st_paragram.errors import SettingsError

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
    from st_paragram.tools.preparation.settings import Scoring

    add = parser.add_argument
    text = "pairs; the prefix is needed unless the columns are English and --lang"
    parser.set_defaults(cap=None)
    add("text", nargs="*", metavar="[LANG-LANG:]FILE", help=text)
    moses = "pairs in two files, one per language"
    add("--moses", action="append", default=[], nargs=2, metavar=("EN", "XX"), help=moses)
    add_language_options(parser, "languages other than English, e.g. es or fr-es")
    add_pairs_options(parser)
    rejects = "output file for dropped rows, `row TAB reason TAB first TAB second`"
    add("--rejects", type=Path, metavar="FILE.tsv", help=rejects)
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
    add_setting_options(scores, Scoring)
    lowest = "output file for the kept pairs with the lowest cosines, `score TAB row TAB first TAB"
    scores.add_argument("--lowest", type=Path, metavar="FILE.tsv", help=f"{lowest} second`")


def run(arguments: argparse.Namespace) -> int:
    """Clean the file and print the counts."""
    from st_paragram.core.encoding.models import load_encoder
    from st_paragram.core.text.translation_files import tmx_languages
    from st_paragram.tools.cleaning.config import named_cleaning
    from st_paragram.tools.preparation.clean_file import clean_file
    from st_paragram.tools.preparation.settings import Scoring

    limits = given(arguments, Scoring)
    scoring = Scoring(**limits)
    if not arguments.score and (limits or arguments.lowest or arguments.model):
        raise SettingsError("--model, --min-score, --lowest and --count need --score; add it")
    cleaning = named_cleaning(arguments.cleaning)
    sources = sources_from(arguments, checked_languages(arguments), cleaning.further_columns)
    if len(sources) != 1:
        raise SettingsError("give one text: FILE, or --moses EN XX")
    source = sources[0]
    output = None if is_standard_output(arguments.output) else arguments.output
    as_tmx = output is not None and tmx_languages(output, source.pair) is not None
    outputs = [path for path in (output, arguments.rejects, arguments.lowest) if path]
    for path in source.paths:
        check_input(path)
    check_different(outputs, source.paths)
    with ExitStack() as stack:
        stack.enter_context(output_files(*outputs, overwrite=arguments.overwrite))

        def opened(path: Path | None) -> IO[bytes] | None:
            return stack.enter_context(atomic(path)) if path else None

        report = clean_file(
            source,
            opened(output) or stack.enter_context(standard_output()),
            cleaning,
            as_tmx=as_tmx,
            rejects=opened(arguments.rejects),
            model=load_encoder(model_folder(arguments)) if arguments.score else None,
            scoring=scoring,
            lowest=opened(arguments.lowest),
            drop_invalid=arguments.drop_invalid,
        )
    pairs = counted(report.total.kept, "pair")
    say(f"{report.table('kept')}\n{output_name(output)}: {pairs}")
    return 0
