"""`model.safetensors` of an averaging model: an embedding table in the names that sentence-transformers knows.

| table | tensors |
|---|---|
| float32, float16 | `embedding.weight` (V, D) |
| int8 | `embeddings`, int8 (V, D), and `weights`, float32 (V,): what each row is multiplied by |

Next to them is `unknown_embedding`, float32 (D,), the row of the unknown id, which is zero in the table.
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

from st_paragram.core.damage import DAMAGED, one_line
from st_paragram.core.encoding.table import Table, TableType
from st_paragram.core.vectors.packing import to_int8
from st_paragram.errors import ModelDirectoryError

_UNKNOWN = "unknown_embedding"
_MOST = 1e30  # trained tables have no numbers above 100
_TYPES: dict[str, np.dtype[Any]] = {"F32": np.dtype("<f4"), "F16": np.dtype("<f2"), "I8": np.dtype("i1")}


def write_table(path: Path, table: Table, unknown_id: int) -> None:
    """Write a table whose row `unknown_id` is the row of the unknown id."""
    from safetensors.numpy import save_file

    weight = table.weight.copy()
    weight[unknown_id] = 0
    tensors = {_UNKNOWN: table.rows(unknown_id)}
    if table.scale is None:
        tensors["embedding.weight"] = weight
    else:
        tensors |= {"embeddings": weight, "weights": np.ascontiguousarray(table.scale)}
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
    names = ("embeddings", "weights", _UNKNOWN) if kind is TableType.INT8 else ("embedding.weight", _UNKNOWN)
    try:
        arrays = _mapped(path)
        stored, *scales, unknown = (arrays[name] for name in names)
    except KeyError as error:
        raise _foreign(path, f"there is no tensor {error}") from error
    except DAMAGED as error:
        raise _foreign(path, one_line(error)) from error
    if stored.shape != shape:
        raise ModelDirectoryError(f"{path}: a table of shape {stored.shape}, expected {shape}; save the model again")
    if stored.dtype.name != kind.value:
        raise ModelDirectoryError(f"{path}: a table of {stored.dtype}, expected {kind.value}; save the model again")
    if unknown.shape != stored.shape[1:] or any(scale.shape != stored.shape[:1] for scale in scales):
        raise ModelDirectoryError(f"{path}: damaged weights (parts of different sizes); save the model again")
    if not checked and not _sound(stored, unknown, scales):
        seen = "NaN, numbers above 1e30 or negative scales"
        raise ModelDirectoryError(f"{path}: damaged weights ({seen}); save the model again")
    return _with_unknown(stored, scales, unknown, unknown_id)


def _with_unknown(weight: NDArray[Any], scales: list[NDArray[Any]], unknown: NDArray[Any], unknown_id: int) -> Table:
    if not scales:
        weight[unknown_id] = unknown
        return Table(weight)
    scale = scales[0].astype(np.float32)
    weight[unknown_id] = to_int8(unknown, scale[unknown_id])
    return Table(weight, scale)


def _sound(stored: NDArray[Any], unknown: NDArray[Any], scales: list[NDArray[Any]]) -> bool:
    floats = [unknown, *scales] if scales else [unknown, stored]
    return all(map(_is_moderate, floats)) and not any((scale < 0).any() for scale in scales)


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
