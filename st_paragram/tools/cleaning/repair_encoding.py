"""The repair `repair_encoding` of UTF-8 that was read as another encoding, by the library ftfy.

Source: R. Speer (2019), ftfy, Zenodo, doi:10.5281/zenodo.2591652; https://ftfy.readthedocs.io.
"""

from __future__ import annotations

from types import ModuleType
from typing import Any

from st_paragram.core.extras import require
from st_paragram.tools.cleaning.base import Row, RowRepair, options
from st_paragram.tools.cleaning.markup import has_broken_characters


@options
class RepairEncoding(RowRepair):
    """Repair texts whose UTF-8 was read as another encoding: "donâ€™t" becomes "don’t".

    A text is changed only if it has broken characters as defined by `markup`, and if the repaired
    text has none. So correct text is not changed, and text that cannot be repaired is left to
    `markup`, which must be later in the list. Only the encoding is repaired: quotation marks, HTML
    entities and the width of characters are not changed.
    """

    name = "repair_encoding"
    repairs = "repair_encoding"
    note = "rows that had been read in a wrong encoding (repaired)"

    def repair(self, row: Row) -> Row:
        """Return a row with repaired texts."""
        first = _repaired(row[0])
        second = _repaired(row[1])
        return row if (first, second) == row[:2] else (first, second, *row[2:])

    def identity(self) -> dict[str, Any]:
        """Return the version of ftfy."""
        return {"ftfy": _ftfy().__version__}


def _ftfy() -> ModuleType:
    return require("ftfy", "repair", 'the entry "repair_encoding"')


def _repaired(text: str) -> str:
    if not has_broken_characters(text):
        return text
    config = _ftfy().TextFixerConfig(replace_lossy_sequences=False, explain=False)
    fixed = " ".join(_ftfy().fix_encoding(text, config).split())
    return text if has_broken_characters(fixed) else fixed
