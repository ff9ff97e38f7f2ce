"""The option `--columns` of commands that read texts with a sentence on each line."""

from __future__ import annotations

from collections.abc import Sequence

from st_paragram.core.text.tables import check_plain
from st_paragram.errors import SettingsError
from st_paragram.tools.options.common import Parser

_HELP = "for a table (CSV, TSV, JSON lines or Parquet): name of the text column in the first row"


def add_columns_option(parser: Parser, what: str = _HELP, metavar: str | tuple[str, ...] = "NAME") -> None:
    """Add `--columns`."""
    note = "; numbers from 1 for a CSV or TSV without a header"
    parser.add_argument("--columns", nargs="+", metavar=metavar, help=what + note)


def columns_of(columns: Sequence[str] | None, texts: Sequence[str]) -> list[str | None]:
    """The column of each text, None for plain text: one column was given for all texts, or one for each."""
    if not columns:
        for text in texts:
            check_plain(text)
        return [None] * len(texts)
    if not texts:
        raise SettingsError("--columns is given, and no text with a sentence on each line; leave it out")
    if len(columns) not in (1, len(texts)):
        seen = f"{len(columns)} columns for {len(texts)} text{'s' * (len(texts) != 1)}"
        raise SettingsError(f"{seen}; name one column for all, or one for each")
    return [*columns] if len(columns) == len(texts) else [columns[0]] * len(texts)
