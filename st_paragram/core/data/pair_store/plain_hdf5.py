"""What pair stores use of HDF5, and nothing else of it.

An HDF5 file can make its reader open other files (links, external storage, virtual data sets) and load code (filters).
A store needs none of that, so a file that has it is refused here, before anything is read through it. All functions
raise one of `UNREADABLE` where a file has something else than is asked for.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import h5py
from h5py import h5a, h5d, h5t

from st_paragram.core.damage import DAMAGED, short
from st_paragram.core.data.pair_store.mapped_file import Extent
from st_paragram.core.json_files import parse_json

#: What h5py, and the readers of what is inside, raise where a file is damaged.
UNREADABLE = (*DAMAGED, MemoryError)

_TEXT, _WHOLE, _YES_OR_NO = (h5t.STRING,), (h5t.INTEGER,), (h5t.ENUM, h5t.INTEGER)
_KINDS = {"u": "unsigned integers", "iuf": "numbers"}


def member(place: h5py.Group, name: str) -> h5py.Group | h5py.Dataset | None:
    """What stands in a group itself under a name, or None."""
    link = place.get(name, getlink=True)
    if link is None:
        return None
    if not isinstance(link, h5py.HardLink):
        raise ValueError(f"{name} is a link to another place")
    found = place[name]
    if not isinstance(found, h5py.Group | h5py.Dataset):
        raise ValueError(f"{name} is neither a group nor a data set")
    return found


def group(place: h5py.Group, name: str) -> h5py.Group:
    """A group in a group."""
    found = member(place, name)
    if not isinstance(found, h5py.Group):
        raise ValueError(f"there is no group {name}")
    return found


def dataset(place: h5py.Group, name: str) -> h5py.Dataset:
    """A data set in a group, stored in one piece in the file itself, as it is."""
    found = member(place, name)
    if not isinstance(found, h5py.Dataset):
        raise ValueError(f"there is no data set {name}")
    layout = found.id.get_create_plist()
    if layout.get_layout() != h5d.CONTIGUOUS or layout.get_external_count() or layout.get_nfilters():
        raise ValueError(f"{name} is not contiguous: chunked, compressed, virtual or in another file")
    return found


def extent(place: h5py.Group, name: str, kinds: str, widest: int = 8) -> Extent:
    """Where a list of numbers stands.

    Args:
        place: the group that has it.
        name: of the data set.
        kinds: of numpy's types that the numbers may have: "u", or "iuf".
        widest: bytes that a number may have.
    """
    data = dataset(place, name)
    shape, dtype, stored_as = data.shape, data.dtype, data.id.get_type()
    if shape is None or len(shape) != 1 or dtype.kind not in kinds or dtype.itemsize > widest:
        raise ValueError(f"{name} is not a contiguous list of {_KINDS[kinds]} of at most {8 * widest} bits")
    if not dtype.isnative:
        raise ValueError(f"{name} has the other byte order than this machine; stores are little-endian")
    if stored_as.committed() or not stored_as.equal(h5t.py_create(dtype)):
        raise ValueError(f"{name} is of a type of its own, not plain {dtype}")
    position = data.id.get_offset() if shape[0] else 0
    if position is None:
        raise ValueError(f"{name} has no place in the file")
    return Extent(int(position), dtype, int(shape[0]))


def content(path: Path, place: h5py.Group, name: str) -> bytes:
    """The bytes of a list of uint8."""
    found = extent(place, name, "u", widest=1)
    with path.open("rb") as file:
        if found.end > file.seek(0, 2):
            raise ValueError(f"{name} ends beyond the file")
        file.seek(found.position)
        return file.read(found.length)


def text(place: h5py.Group | h5py.Dataset, name: str) -> str:
    """A text among the attributes."""
    return _text(_attribute(place, name, _TEXT), name)


def two_texts(place: h5py.Group, name: str) -> tuple[str, str]:
    """A list of two texts among the attributes."""
    first, second = _attribute(place, name, _TEXT, most=2)
    return _text(first, name), _text(second, name)


def whole(place: h5py.Group, name: str, least: int | None = None) -> int:
    """A whole number among the attributes."""
    number = int(_attribute(place, name, _WHOLE))
    if least is not None and number < least:
        raise ValueError(f"{name} is {number}")
    return number


def yes_or_no(place: h5py.Group, name: str) -> bool:
    """A truth value among the attributes."""
    return bool(_attribute(place, name, _YES_OR_NO))


def as_utf8(text: str) -> str:
    """A text with a question mark for what UTF-8 cannot hold: lone surrogates, as in names of files in other codes."""
    return text.encode("utf-8", "replace").decode("utf-8")


def json_value(written: str, kind: type) -> Any:  # noqa: ANN401
    """A value written as JSON, of a certain type, that can be written as UTF-8 again."""
    value = parse_json(written.encode("utf-8"))
    json.dumps(value, ensure_ascii=False).encode("utf-8")
    if not isinstance(value, kind):
        raise ValueError(f"{short(value)} where JSON of another type is expected")
    return value


def _attribute(place: h5py.Group | h5py.Dataset, name: str, classes: tuple[int, ...], most: int = 1) -> Any:  # noqa: ANN401
    """An attribute of one of HDF5's classes of types, after a look at its size."""
    stored = h5a.open(place.id, name.encode())
    points, size = stored.get_space().get_simple_extent_npoints(), stored.get_storage_size()
    if stored.get_type().get_class() not in classes or points > most or size > place.file.id.get_filesize():
        raise ValueError(f"the attribute {name} is of another type or size")
    return place.attrs[name]


def _text(value: object, name: str) -> str:
    if not isinstance(value, str):
        raise ValueError(f"{name} is {short(value)}, no text")
    return as_utf8(value)
