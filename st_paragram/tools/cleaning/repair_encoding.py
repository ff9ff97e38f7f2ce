"""The repair `repair_encoding`: UTF-8 that was read as another encoding ("donâ€™t"), repaired by the library ftfy.

Source: R. Speer (2019), ftfy, Zenodo, doi:10.5281/zenodo.2591652; https://ftfy.readthedocs.io.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from types import ModuleType
from typing import Any, ClassVar

import numpy as np

from st_paragram.core.extras import require
from st_paragram.tools.cleaning.base import Row, RowRepair
from st_paragram.tools.cleaning.broken_characters import has_broken_characters, may_be_broken
from st_paragram.tools.cleaning.options import options


@options
class RepairEncoding(RowRepair):
    """Repair texts whose UTF-8 was read as another encoding: "donâ€™t" becomes "don’t".

    A text is changed only if it has broken characters as `markup` knows them, and only if the repaired text has none.
    So correct text stays as it is, and what cannot be repaired is left to `markup`, which must come later in the list.
    Only the encoding is repaired: quotation marks, HTML entities and the width of characters stay as they are.
    """

    name: ClassVar[str] = "repair_encoding"
    note: ClassVar[str] = "rows that had been read in a wrong encoding (repaired)"

    def repair(self, rows: Sequence[Row]) -> list[Row]:
        """Return the rows with repaired texts; rows without a repair are the same objects as before.

        Raises:
            MissingExtraError: ftfy is not installed.
        """
        repair = _repairer()
        repaired = list(rows)
        sides = [(index, side) for index, row in enumerate(rows) for side in (0, 1) if not row[side].isascii()]
        for place in np.flatnonzero(may_be_broken([rows[index][side] for index, side in sides])).tolist():
            index, side = sides[place]
            row = repaired[index]
            text = repair(row[side])
            if text != row[side]:
                repaired[index] = (*row[:side], text, *row[side + 1 :])
        return repaired

    def identity(self) -> dict[str, Any]:
        """The version of ftfy.

        Raises:
            MissingExtraError: ftfy is not installed.
        """
        return {"ftfy": _ftfy().__version__}


def _ftfy() -> ModuleType:
    return require("ftfy", "repair", 'the entry "repair_encoding"')


@cache
def _repairer() -> Callable[[str], str]:
    ftfy = _ftfy()
    config = ftfy.TextFixerConfig(replace_lossy_sequences=False, explain=False)

    def repair(text: str) -> str:
        if not has_broken_characters(text):
            return text
        fixed = " ".join(ftfy.fix_encoding(text, config).split())
        return text if has_broken_characters(fixed) else fixed

    return repair
