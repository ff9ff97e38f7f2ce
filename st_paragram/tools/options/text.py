"""Options for the texts of a pair store and their filters."""

from __future__ import annotations

import argparse
import dataclasses
from typing import TYPE_CHECKING

from st_paragram.core.settings import add_setting_options, given
from st_paragram.errors import SettingsError

if TYPE_CHECKING:
    from st_paragram.core.text.parallel import TextSource
    from st_paragram.tools.cleaning.config import Cleaning


def add_text_options(parser: argparse.ArgumentParser) -> None:
    """Add options that name texts."""
    add = parser.add_argument_group("text").add_argument
    text = (
        "two-column text; the prefix is needed unless the columns are English and --lang;"
        " repeatable"
    )
    add("--text", action="append", default=[], metavar="[LANG-LANG:]FILE", help=text)
    columns = (
        "for tables (CSV, JSON lines, Parquet, or TSV with a header): columns of the two languages,"
        " by name; numbers from 1 for a CSV or TSV without a header; once for all texts, or once"
        " per --text and then per --moses, where each file has one of the columns"
    )
    add("--columns", action="append", default=[], nargs=2, metavar="NAME", help=columns)
    moses = "text in two files, one per language; repeatable"
    add("--moses", action="append", default=[], nargs=2, metavar=("EN", "XX"), help=moses)
    add(
        "--cap",
        type=int,
        metavar="N",
        help="maximum pairs per text, sampled at random (default: all)",
    )


def add_cleaning_options(parser: argparse.ArgumentParser, default: str) -> None:
    """Add options that choose filters; `default` describes the filters that apply otherwise."""
    from st_paragram.tools.cleaning.shape import Length

    group = parser.add_argument_group("filters")
    about = f"list of filters: `default`, `paper`, `paranmt`, or your own file (default: {default})"
    group.add_argument("--cleaning", metavar="NAME|FILE.yaml", help=about)
    add_setting_options(group, Length)


def sources_from(
    arguments: argparse.Namespace, languages: tuple[str, str], further: int = 0
) -> list[TextSource]:
    """Return the named texts; `further` is the number of columns that filters read after the two
    texts.
    """
    from st_paragram.core.text.parallel import TextSource, parse_source, with_columns

    sources = [parse_source(spec, languages) for spec in arguments.text]
    sources += [TextSource((first, second), languages) for first, second in arguments.moses]
    sources = with_columns(sources, arguments.columns)
    return [
        dataclasses.replace(source, cap=arguments.cap, further_columns=further)
        for source in sources
    ]


def cleaning_from(arguments: argparse.Namespace, otherwise: str | None = None) -> Cleaning:
    """Return the filters that the options choose, by default the list `otherwise`; None: filter
    only by length.
    """
    from st_paragram.tools.cleaning.config import named_cleaning, only_length
    from st_paragram.tools.cleaning.shape import Length

    lengths = given(arguments, Length)
    chosen = arguments.cleaning or (None if lengths else otherwise)
    if chosen is None:
        return only_length(**lengths)
    if lengths:
        flags = ", ".join("--" + name.replace("_", "-") for name in lengths)
        seen = f"{flags} cannot be combined with --cleaning {chosen}"
        raise SettingsError(f"{seen}; set the lengths in the list of filters")
    return named_cleaning(chosen)
