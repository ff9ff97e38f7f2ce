"""The option `--columns` of commands that read one sentence per line."""

from __future__ import annotations

from collections.abc import Sequence

from st_paragram.core.text.tables import check_plain
from st_paragram.errors import SettingsError
from st_paragram.tools.options.common import Parser

_HELP = "for a table (CSV, TSV, JSON lines or Parquet): name of the text column"


def add_columns_option(parser: Parser, what: str = _HELP, metavar: str | tuple[str, ...] = "NAME") -> None:
    """Add `--columns`."""
    note = "; numbers from 1 for a CSV or TSV without a header"
    parser.add_argument("--columns", nargs="+", metavar=metavar, help=what + note)


def columns_of(columns: Sequence[str] | None, texts: Sequence[str]) -> list[str | None]:
    """Return the column of each text, None for plain text; `columns` has one name for all texts, or one per text."""
    if not columns:
        for text in texts:
            check_plain(text)
        return [None] * len(texts)
    if not texts:
        raise SettingsError("--columns needs a text with one sentence per line; leave it out")
    if len(columns) not in (1, len(texts)):
        seen = f"{len(columns)} columns for {len(texts)} text{'s' * (len(texts) != 1)}"
        raise SettingsError(f"{seen}; name one column for all texts, or one per text")
    return [*columns] if len(columns) == len(texts) else [columns[0]] * len(texts)
