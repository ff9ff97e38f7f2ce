"""`st-paragram prepare`: parallel text in, a pair store out, and a table of what was kept and dropped."""

from __future__ import annotations

import argparse
import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING

from st_paragram.cli.preparation_options import (
    add_store_options,
    add_work_options,
    settings_from,
    vocabulary_from,
    work_from,
    write_report,
)
from st_paragram.errors import SettingsError

if TYPE_CHECKING:
    from st_paragram.cleaning.config import Cleaning
    from st_paragram.data.text import TextSource

_EPILOG = """\
A text is a tab-separated file of two columns, plain or compressed (gzip, xz, bzip2), `-` for standard input,
or a zip archive with one such member or with one member per language (OPUS, Moses format). English stands
first unless a prefix says otherwise. Several languages in one store: --lang fr-es-de, and a prefix for each text.

  st-paragram prepare --lang es --text es-en:pairs.tsv --text Europarl.en-es.zip --output data/en-es.h5
  st-paragram prepare --lang de --moses news.en news.de --cleaning default --rejects dropped --output data/en-de.h5
  st-paragram prepare --lang en --text paraphrases.tsv.xz --output data/en-en.h5
  st-paragram prepare --lang fr-es --text en-fr:a.tsv --text en-es:b.tsv --temperature 2 --output data/en-fr-es.h5

Without --cleaning, rows are dropped by length and when they are repeated. `--cleaning default` is our list of filters,
`--cleaning paper` the paper's, `--cleaning FILE.yaml` yours.
"""
_LENGTHS = ("min_length", "max_length", "max_characters", "length_on")


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the parser of this command."""
    parser = subparsers.add_parser(
        "prepare",
        help="make a pair store of parallel text",
        description="Filter, deduplicate and shuffle parallel text, train a vocabulary, store encoded pairs.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--lang", required=True, help="the other language, e.g. es; en for English paraphrases")
    parser.add_argument("--output", type=Path, required=True, metavar="FILE.h5", help="the pair store to make")
    add_text_options(parser)
    add_cleaning_options(parser)
    add_store_options(parser)
    add_work_options(parser)


def add_text_options(parser: argparse.ArgumentParser) -> None:
    """Add options that name texts."""
    add = parser.add_argument_group("text").add_argument
    add(
        "--text",
        action="append",
        default=[],
        metavar="[LANG-LANG:]FILE",
        help="a text of two columns; repeatable",
    )
    add("--moses", action="append", default=[], nargs=2, metavar=("EN", "XX"), help="a file per language; repeatable")
    add("--cap", type=int, metavar="N", help="take at most N pairs of each of these texts, at random")


def add_cleaning_options(parser: argparse.ArgumentParser) -> None:
    """Add options that choose filters."""
    add = parser.add_argument_group("filters").add_argument
    add("--cleaning", metavar="FILE.yaml", help="a list of filters, `default` or `paper`; without it, length alone")
    add("--min-length", type=int, help="words a side needs (3); characters without spaces")
    add("--max-length", type=int, help="words a side may have (100)")
    add("--max-characters", type=int, help="the same for a script without spaces (200)")
    add("--length-on", choices=("both", "english"), help="sides whose length counts (both)")


def run(arguments: argparse.Namespace) -> int:
    """Make the store and print the table; returns the exit status.

    Raises:
        ParagramError: If the text, the settings or the output are refused.
    """
    from st_paragram.preparation.prepare import prepare

    settings = settings_from(arguments, ("en", arguments.lang), cleaning_from(arguments))
    sources = sources_from(arguments, settings.languages)
    if not sources:
        raise SettingsError("no text given; name at least one with --text or --moses")
    vocabulary = vocabulary_from(arguments, settings)
    prepared = prepare(sources, arguments.output, settings, vocabulary, arguments.overwrite, work_from(arguments))
    write_report(prepared, arguments.output)
    return 0


def cleaning_from(arguments: argparse.Namespace, otherwise: str | None = None) -> Cleaning:
    """The filters that the options choose; `otherwise` if they say nothing.

    Raises:
        SettingsError: Lengths were given beside a list of filters, or the list is refused.
    """
    from st_paragram.cleaning.config import default_cleaning, only_length, paper_cleaning, read_cleaning

    lengths = {name: value for name in _LENGTHS if (value := getattr(arguments, name)) is not None}
    chosen = arguments.cleaning or (None if lengths else otherwise)
    if chosen is None:
        return only_length(**lengths)
    if lengths:
        flags = ", ".join("--" + name.replace("_", "-") for name in lengths)
        raise SettingsError(f"{flags} beside --cleaning {chosen}: write lengths into the list of filters")
    if chosen == "default":
        return default_cleaning()
    return paper_cleaning() if chosen == "paper" else read_cleaning(chosen)


def sources_from(arguments: argparse.Namespace, languages: tuple[str, str]) -> list[TextSource]:
    """The texts named."""
    from st_paragram.data.text import moses_source, parse_source

    sources = [parse_source(spec, languages) for spec in arguments.text]
    sources += [moses_source(first, second, languages) for first, second in arguments.moses]
    return [dataclasses.replace(source, cap=arguments.cap) for source in sources]
