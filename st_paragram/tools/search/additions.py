"""Additions to the LanceDB table of an index: new sentences, and fields of existing sentences."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice
from typing import Any

import numpy as np

from st_paragram.core.encoding.models import TextEncoder
from st_paragram.core.encoding.unit_embeddings import unit_embeddings
from st_paragram.core.extras import require
from st_paragram.core.text.words import has_two_letters
from st_paragram.errors import SettingsError, one_line, short
from st_paragram.tools.search.rows import Fields
from st_paragram.tools.search.table import (
    HASH,
    OWN_COLUMNS,
    add_hashes,
    column_note,
    field_types,
    pa,
    text_hashes,
    write_note,
)
from st_paragram.tools.search.where import MAX_EXACT, literal

compute = require("pyarrow.compute", "search")

_ROWS = 1 << 16  # rows added at a time
_LITERALS = 10_000  # values in a condition
_KINDS = ("string", "int64", "double", "bool")  # types of fields
_CASTS = (("int64", "double"), ("int64", "string"))  # allowed casts to the type of a field
# LanceDB ends a name at NUL, and reads periods and backticks as signs
_NAME = re.compile(r"[^\W_][^.`\x00-\x1f\x7f-\x9f\ud800-\udfff]*")


def add_rows(
    table: Any, rows: Iterator[tuple[str, Fields]], encoder: TextEncoder, method: str
) -> Counter[str]:
    """Add rows, block by block: new sentences, and existing sentences with further fields.

    Existing sentences are found by hashes, so texts of the table are read only for these.

    Returns:
        Counts, see `SearchIndex.counts`.
    """
    counts = Counter[str]()
    add_hashes(table)
    last_line = int(column_note(table, "line", "last") or 0)
    while block := list(islice(rows, _ROWS)):
        counts.update(_add_block(table, block, last_line + 1, encoder, method))
        last_line += len(block)
    write_note(table, "line", "last", str(last_line))
    return counts


def _add_block(
    table: Any,
    block: Sequence[tuple[str, Fields]],
    first_line: int,
    encoder: TextEncoder,
    method: str,
) -> dict[str, int]:
    lines: dict[str, int] = {}
    fields: dict[str, dict[str, Any]] = {}
    blank = 0
    for line, (text, values) in enumerate(block, first_line):
        if has_two_letters(text):
            lines.setdefault(text, line)
            fields.setdefault(text, {}).update(values)
        else:
            blank += 1
    columns = _field_columns(table, list(fields.values()))
    texts = pa.array(list(lines), "string")
    numbers = pa.array(list(lines.values()), "int64")
    hashes = text_hashes(texts)
    given = pa.table({"text": texts, "line": numbers, HASH: hashes, **columns})

    existing = _existing_rows(table, texts, hashes)
    places = compute.index_in(existing["text"], texts)
    for name in columns:
        values = compute.coalesce(given[name].take(places), existing[name])
        number = existing.schema.get_field_index(name)
        existing = existing.set_column(number, name, values)

    new = given.filter(compute.invert(compute.is_in(texts, existing["text"])))
    embeddings = unit_embeddings(encoder, new["text"].to_pylist(), method)
    vectors = embeddings.vectors[embeddings.known].astype(np.float16)
    column = pa.FixedSizeListArray.from_arrays(vectors.ravel(), vectors.shape[1])
    added = new.filter(pa.array(embeddings.known)).append_column("vector", column)
    if columns and len(existing):
        table.merge_insert("line").when_matched_update_all().execute(existing)
    if len(added):
        table.add(added)
    return {
        "lines": len(block),
        "blank": blank,
        "repeated": len(block) - blank - len(lines),
        "known": len(existing),
        "added": len(added),
        "unknown": len(new) - len(added),
    }


def _existing_rows(table: Any, texts: Any, hashes: Any) -> Any:
    """Return the rows of the sentences that a table has."""
    row_ids: list[int] = []
    query = table.search().select([HASH]).with_row_id(True)
    for batch in query.to_batches(_ROWS):
        is_match = compute.is_in(batch[HASH], hashes)
        row_ids += batch["_rowid"].filter(is_match).to_pylist()
    rows = table.take_row_ids(row_ids).to_arrow()
    return rows.filter(compute.is_in(rows["text"], texts))


def conditions_for(column: str, values: Iterable[str | int]) -> list[str]:
    """Return conditions for blocks of a column's values, small enough for fast SQL parsing."""
    literals = [literal(value) for value in dict.fromkeys(values)]
    conditions = []
    for begin in range(0, len(literals), _LITERALS):
        block = ", ".join(literals[begin : begin + _LITERALS])
        conditions.append(f"{column} in ({block})")
    return conditions


def _field_columns(table: Any, rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Return Arrow arrays of the fields of n sentences, (n,); add new fields to the table."""
    types = field_types(table)
    columns = {}
    new = []
    for name in dict.fromkeys(chain.from_iterable(rows)):
        is_new = name not in types
        if is_new and (name in OWN_COLUMNS or not _NAME.fullmatch(name)):
            raise SettingsError(
                f"field {short(name)}: use another name, without periods, backticks and control"
                " characters"
            )
        column = _array(name, [row.get(name) for row in rows])
        if is_new:
            types[name] = column.type
            new.append(pa.field(name, column.type))
        kind = str(column.type)
        wanted = str(types[name])
        if (kind, wanted) == ("double", "int64"):
            _widen(table, name)
            types[name] = column.type
        elif kind not in _KINDS or (kind != wanted and (kind, wanted) not in _CASTS):
            earlier = f", but earlier values are {wanted}" if kind != wanted else ""
            raise SettingsError(
                f"field {name}: a value is {kind}{earlier}; give text, numbers or booleans of one"
                " type"
            )
        try:
            columns[name] = column.cast(types[name])
        except pa.ArrowInvalid as error:
            raise _too_large(name) from error
    if new:
        table.add_columns(pa.schema(new))
    return columns


def _array(name: str, values: list[Any]) -> Any:
    """Return an Arrow array of the values of a field; integers and decimals become decimals."""
    types = {type(value) for value in values if value is not None}
    if types == {int, float}:
        integers = [value for value in values if isinstance(value, int)]
        if max(integers) > MAX_EXACT or min(integers) < -MAX_EXACT:
            raise _too_large(name)
    if bool in types and len(types) > 1:  # Arrow would make some of them numbers
        raise SettingsError(
            f"field {name}: some values are true or false and others are not; give values of one"
            " type"
        )
    try:
        return pa.array(values)
    except (TypeError, ValueError, OverflowError) as error:
        raise SettingsError(f"field {name}: {one_line(error)}; give values of one type") from error


def _widen(table: Any, name: str) -> None:
    """Change a column of integers to decimals."""
    column = f"`{name}`"
    if table.count_rows(f"{column} > {MAX_EXACT} or {column} < {-MAX_EXACT}"):
        raise _too_large(name)
    wide = f"{name} as decimals"  # LanceDB cannot change the type of the column itself
    while wide in table.schema.names:
        wide += "_"
    table.add_columns({wide: f"cast({column} as double)"})
    table.drop_columns([name])
    table.alter_columns({"path": wide, "rename": name})


def _too_large(name: str) -> SettingsError:
    return SettingsError(
        f"field {name}: whole numbers above {MAX_EXACT:,} cannot be mixed with decimals exactly;"
        " give such numbers as text, or only whole numbers"
    )
