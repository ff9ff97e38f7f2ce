"""Tables in Parquet, read a thousand rows at a time; they need pyarrow (extra `parquet`)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from typing import Any

from st_paragram.core.extras import require
from st_paragram.core.text.table import Table, Unreadable, places_of
from st_paragram.errors import TextError, refused

_ROWS = 1024
_ADVICE = "if it is damaged or packed, fetch it again or unpack it"


class ParquetTable(Table):
    """A Parquet file; columns that are not wanted are not read."""

    def __init__(self, path: str, stack: ExitStack, wanted: Sequence[str], others: Sequence[str] = ()) -> None:
        """Read its schema.

        Raises:
            TextError: It cannot be read, or has no such columns of text.
            MissingExtraError: pyarrow is not installed.
        """
        parquet = require("pyarrow.parquet", "parquet", f"{path}: a Parquet table")
        self.name, self._wanted = path, [*wanted, *others]
        with self._refused():
            self._file = stack.enter_context(parquet.ParquetFile(path))
            schema = self._file.schema_arrow
            self.columns = list(schema.names)
        places_of(self, others)
        for place in places_of(self, wanted):
            if not _is_text(schema.field(place).type):
                seen = f"has {schema.field(place).type} in column {self.columns[place]!r}"
                raise self.refusal(Unreadable(seen, "name a column of text"))

    @property
    def size(self) -> int:
        """Number of rows."""
        return int(self._file.metadata.num_rows)

    def rows(self) -> Iterator[Sequence[object] | Unreadable]:
        """Yield the values."""
        batches = self._file.iter_batches(_ROWS, columns=list(dict.fromkeys(self._wanted)), use_threads=False)
        while True:
            with self._refused():
                batch = next(batches, None)
                if batch is None:
                    return
                batch.validate(full=True)
                values = [batch.column(batch.schema.get_field_index(name)).to_pylist() for name in self._wanted]
            for row in zip(*values, strict=True):
                self.row += 1
                yield row

    def _refused(self) -> refused:
        return refused(TextError, self.name, "cannot be read as Parquet", _ADVICE)


def _is_text(kind: Any) -> bool:  # noqa: ANN401 - pyarrow has no types
    types = require("pyarrow.types", "parquet")
    kind = kind.value_type if types.is_dictionary(kind) else kind
    return any(is_kind(kind) for is_kind in (types.is_string, types.is_large_string, types.is_string_view))
