"""`model.safetensors` of an averaging model: an embedding table in the names that sentence-transformers knows.

| table | tensors |
|---|---|
| float32, float16 | `embedding.weight` (V, D) |
| int8 | `embeddings`, int8 (V, D), and `weights`, float32 (V,): what each row is multiplied by |
| int4 | `embedding.weight`, uint8 (V, D / 2), see `nibbles`, and `embedding.scale`, float32 (V,), the same |

Next to them is `unknown_embedding`, float32 (D,), the row of the unknown id, which is zero in the table. In tables of
int4 it is a row like others: `StaticEmbedding`, for which it is zero, cannot read them, and `TokenEmbedding` does.
The names of int8 tables are model2vec's; `StaticEmbedding` reads them since sentence-transformers 6.2.

Tables are mapped into memory, not read: processes that open one model share one copy, and opening it takes as long for
large tables as for small ones. The mapping is private, so that the row of the unknown id can be put back into it; only
that page is copied. Saving replaces the file as a whole, which leaves mappings of the old one as they are.
"""

from __future__ import annotations

import json
import mmap
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from st_paragram.core.encoding.packing import to_int8
from st_paragram.core.encoding.table import Table, TableType
from st_paragram.errors import DAMAGED, ModelDirectoryError, one_line

_UNKNOWN = "unknown_embedding"
_MOST = 1e30  # trained tables have no numbers above 100
_TYPES = {name: np.dtype(code) for name, code in {"F32": "<f4", "F16": "<f2", "I8": "i1", "U8": "u1"}.items()}
_FLOATS = ("embedding.weight", None, _UNKNOWN)
_NAMES = {  # of table, scales, and the row of the unknown id
    TableType.FLOAT32: _FLOATS,
    TableType.FLOAT16: _FLOATS,
    TableType.INT8: ("embeddings", "weights", _UNKNOWN),
    TableType.INT4: ("embedding.weight", "embedding.scale", None),
}


def write_table(path: Path, table: Table, unknown_id: int) -> None:
    """Write a table whose row `unknown_id` is the row of the unknown id."""
    from safetensors.numpy import save_file

    table_name, scale_name, unknown_name = _NAMES[table.kind]
    tensors = {table_name: table.weight}
    if unknown_name is not None:
        tensors = {table_name: table.weight.copy(), unknown_name: table.rows(unknown_id)}
        tensors[table_name][unknown_id] = 0
    if scale_name is not None:
        tensors[scale_name] = np.ascontiguousarray(table.scale)
    save_file(tensors, path)


def map_table(path: Path, shape: tuple[int, int], kind: TableType, unknown_id: int, checked: bool = False) -> Table:
    """Map what `write_table` wrote, with the row of the unknown id put back.

    Args:
        path: a safetensors file.
        shape: (V, D) that the table must have.
        kind: how its numbers must be stored.
        unknown_id: the row to put back.
        checked: the file is known to hold what an earlier call accepted: do not look for NaN again.

    Raises:
        ModelDirectoryError: the file is damaged, or holds another table.
    """
    stored, scale, unknown = _parts(path, kind)
    packed = kind is TableType.INT4
    numbers, stored_shape = np.dtype(np.uint8 if packed else kind.value), (shape[0], shape[1] // (1 + packed))
    if stored.shape != stored_shape:
        seen = f"a table of shape {stored.shape}, expected {stored_shape}"
        raise ModelDirectoryError(f"{path}: {seen}; save the model again")
    if stored.dtype != numbers:
        raise ModelDirectoryError(f"{path}: a table of {stored.dtype}, expected {numbers}; save the model again")
    if (unknown is not None and unknown.shape != shape[1:]) or (scale is not None and scale.shape != shape[:1]):
        raise ModelDirectoryError(f"{path}: damaged weights (parts of different sizes); save the model again")
    if not checked and not _sound(stored, scale, unknown):
        seen = "NaN, numbers above 1e30 or negative scales"
        raise ModelDirectoryError(f"{path}: damaged weights ({seen}); save the model again")
    scale = None if scale is None else scale.astype(np.float32)
    if unknown is not None:
        stored[unknown_id] = unknown if scale is None else to_int8(unknown, scale[unknown_id])
    return Table(stored, scale)


def _parts(path: Path, kind: TableType) -> tuple[NDArray[Any], NDArray[Any] | None, NDArray[Any] | None]:
    """Table, scales and the row of the unknown id, None for what a table of this type has not.

    Raises:
        ModelDirectoryError: the file is damaged, or a part is missing.
    """
    try:
        arrays = _mapped(path)
        table, *others = _NAMES[kind]
        scale, unknown = (None if name is None else arrays[name] for name in others)
        return arrays[table], scale, unknown
    except KeyError as error:
        raise _foreign(path, f"there is no tensor {error}") from error
    except DAMAGED as error:
        raise _foreign(path, one_line(error)) from error


def _sound(stored: NDArray[Any], scale: NDArray[Any] | None, unknown: NDArray[Any] | None) -> bool:
    floats = [stored if scale is None else scale, *([] if unknown is None else [unknown])]
    return all(map(_is_moderate, floats)) and (scale is None or not (scale < 0).any())


def _is_moderate(array: NDArray[Any]) -> bool:
    """Whether no number is NaN, or so large that a sum of rows could overflow."""
    if not array.size:
        return True
    least, most = float(array.min()), float(array.max())  # as float16, the limit itself would be infinite
    return least >= -_MOST and most <= _MOST


def _foreign(path: Path, reason: str) -> ModelDirectoryError:
    return ModelDirectoryError(f"{path}: not the weights of a st_paragram model ({reason}); save it again")


def _mapped(path: Path) -> dict[str, NDArray[Any]]:
    """The tensors of a safetensors file, writable without changing the file.

    Format: the length of a JSON header (uint64, little-endian), the header, the numbers; the header has for each tensor
    `dtype`, `shape` and `data_offsets`, which count from its end. The library checks all of it but keeps its mapping to
    itself.

    Raises:
        OSError, ValueError, KeyError, TypeError: not such a file; a type that no table has.
    """
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, "np"):
            pass
    except SafetensorError as error:
        raise ValueError(one_line(error)) from error
    with path.open("rb") as file:
        content = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY)
    size = int.from_bytes(content[:8], "little")
    header = json.loads(content[8 : 8 + size])
    return {name: _array(content, 8 + size, entry) for name, entry in header.items() if name != "__metadata__"}


def _array(content: mmap.mmap, begin: int, entry: Mapping[str, Any]) -> NDArray[Any]:
    dtype = _TYPES.get(entry["dtype"])
    if dtype is None:
        raise ValueError(f"numbers of type {entry['dtype']}")
    first, last = entry["data_offsets"]
    array = np.frombuffer(content, dtype, (last - first) // dtype.itemsize, begin + first).reshape(entry["shape"])
    return array if array.flags.aligned else array.copy()
