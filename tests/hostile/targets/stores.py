"""Pair stores with bytes damaged, or edited through HDF5: opened, checked, read to the last row.

Where the digest in a store agrees with its content, that content must be the original one.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import h5py
import numpy as np
from support.data import make_pairs, write_store

from hostile.damage import damaged, edited_json, json_bytes
from st_paragram.core.pair_store import PairStore, PairStoreWriter
from st_paragram.core.pair_store.description import check_store, describe_store
from st_paragram.core.tokenizers.sentencepiece import SentencePieceTokenizer, train_vocabulary
from st_paragram.errors import StoreError
from st_paragram.tools.inspection.scan import inspect
from st_paragram.tools.inspection.text import render

TRIES, QUICK = 20_000, 40

_ROWS = 24
_ATTRIBUTES = (
    *("format", "format_version", "languages", "pairs", "max_length", "seed", "settings", "complete"),
    *("content_sha256", "lower_case", "segmentation"),
)
_ARRAYS = ("a/ids", "a/offsets", "b/ids", "b/offsets", "row_languages", "labels")
_TOKENIZERS = ("tokenizer", "a/tokenizer", "b/tokenizer", "sentencepiece_model")
_TYPES = ("<u1", "<u2", "<u4", "<u8", "<i1", "<i2", "<i8", "<f2", "<f4", "<f8", ">u2", ">u4", ">u8", ">f4", "S1")


@dataclass(frozen=True)
class Original:
    """An undamaged store: its file, and all that is read of it."""

    path: Path
    content: tuple[Any, ...]


def prepare(folder: Path) -> list[Original]:
    """A store of version 1, and one of version 2 with all that it can have."""
    os.environ["XDG_CACHE_HOME"] = str(folder)
    pairs = make_pairs(_ROWS)
    vocabulary = SentencePieceTokenizer(train_vocabulary((text for pair in pairs for text in pair), 150))
    first = write_store(folder / "1.h5", pairs, vocabulary, note="é", report={"sources": [{"name": "a", "rows": 24}]})
    other = SentencePieceTokenizer(vocabulary.content, lower_case=False)
    sides = [each for side in (0, 1) for each in vocabulary.encode([pair[side] for pair in pairs])]
    languages = [("en", "fr"), ("en", "es")]
    with PairStoreWriter(
        folder / "2.h5", ("en", "fr-es"), (vocabulary, other), 9, {"x": [1, None]}, 3, languages, np.float32
    ) as writer:
        writer.append(*sides, np.arange(_ROWS) % 2, np.arange(_ROWS))
    return [Original(path, _read(PairStore(path))) for path in (first.path, folder / "2.h5")]


def attempt(shared: list[Original], rng: np.random.Generator, folder: Path) -> str:
    """Damage a store, and read it with and without checks."""
    original, path = shared[rng.integers(len(shared))], folder / "x.h5"
    if rng.random() < 0.4:
        path.write_bytes(damaged(original.path.read_bytes(), rng))
    else:
        shutil.copy(original.path, path)
        _edit(path, rng)
    outcome, content = _unchecked(path)
    try:
        checked = check_store(path)
    except StoreError as error:
        assert "\n" not in str(error) and str(path) in str(error), error
        return outcome if outcome == "refused" else f"{outcome}, refused by --check"
    if outcome == "refused":
        return "wrong: refused, but sound for --check"
    whole = "is what was written" in checked
    if whole and content != original.content:
        return f"wrong: the content is not the original one, and --check said: {checked}"
    return "unharmed" if content == original.content else "other content without a digest"


def _unchecked(path: Path) -> tuple[str, tuple[Any, ...] | None]:
    """What opening and reading gives without the digest: as training and `inspect` do it."""
    try:
        describe_store(path)
        unchecked = PairStore(path, check_ids=False)
        for side in "ab":
            unchecked.take(side, np.arange(len(unchecked)), np.int32)
        unchecked.row_languages(np.arange(len(unchecked)))
        store = PairStore(path)
        content = _read(store)
        render(inspect(store, 3)).encode()
        store.tokenizer("b").encode(["ba ce di", "Ω", ""])
    except StoreError as error:
        assert "\n" not in str(error) and str(path) in str(error), error
        return "refused", None
    return "other content", content


def _read(store: PairStore) -> tuple[Any, ...]:
    """All that a store holds."""
    rows = np.arange(len(store))
    labels = store.labels(rows)
    return (
        *(store.languages, store.language_pairs, store.max_length, store.seed, json.dumps(store.settings)),
        *(array.tolist() for side in "ab" for array in store.take(side, rows)),
        *(list(store.texts(side, rows)) for side in "ab"),
        *(store.row_languages(rows), None if labels is None else [labels.dtype.str, labels.tolist()]),
        *((each.kind, each.content, json.dumps(each.options)) for each in store.tokenizers),
    )


def _edit(path: Path, rng: np.random.Generator) -> None:
    """Edit a store through HDF5, as one may who means harm; some edits HDF5 itself refuses."""
    with h5py.File(path, "r+", libver=("earliest", "latest")) as file:
        for _ in range(int(rng.geometric(0.7))):
            try:
                _EDITS[rng.integers(len(_EDITS))](file, rng)
            except (KeyError, OSError, TypeError, ValueError, RuntimeError, AttributeError):
                file.attrs["seed"] = int(rng.integers(5))


def _one_of(file: h5py.File, names: tuple[str, ...], rng: np.random.Generator) -> str:
    # libhdf5 itself crashes on some virtual data sets
    there = [name for name in names if name in file and not getattr(file[name], "is_virtual", False)]
    return there[rng.integers(len(there))]


def _attribute(file: h5py.File, rng: np.random.Generator) -> None:
    """Remove, retype or blow up an attribute, of the root or of a data set."""
    place = file if rng.random() < 0.7 else file[_one_of(file, (*_ARRAYS, *_TOKENIZERS), rng)]
    names = [name for name in (*_ATTRIBUTES, "kind", "options", "pairs") if name in place.attrs]
    name = names[rng.integers(len(names))]
    value = place.attrs[name]
    strange: list[Callable[[], Any]] = [
        lambda: int(rng.integers(-3, 40)),
        lambda: np.uint64(2**64 - 1),
        lambda: float(rng.normal()),
        lambda: np.inf,
        lambda: str(value),
        lambda: np.bytes_(str(value)),
        lambda: [value] * int(rng.integers(2, 9)),
        lambda: np.zeros(int(rng.integers(1, 8000))),
        lambda: "x" * int(rng.integers(1, 60_000)),
        lambda: h5py.Empty("f8"),
        lambda: file["a"].ref,
        lambda: np.zeros(2, [("x", "f4"), ("y", "S3")]),
        lambda: not value,
        lambda: "\x1b[2J\n",
        lambda: "\udce9",
    ]
    if rng.random() < 0.2:
        del place.attrs[name]
    else:
        place.attrs[name] = strange[rng.integers(len(strange))]()


def _json(file: h5py.File, rng: np.random.Generator) -> None:
    """Edit JSON among the attributes."""
    places = [(file, "settings")]
    places += [(file[name], "options") for name in _TOKENIZERS if name in file and "options" in file[name].attrs]
    places += [(file["row_languages"], "pairs")] if "row_languages" in file else []
    place, name = places[rng.integers(len(places))]
    place.attrs[name] = json_bytes(edited_json(json.loads(place.attrs[name]), rng)).decode()


def _numbers(file: h5py.File, rng: np.random.Generator) -> None:
    """Put other numbers into an array, in place."""
    data = file[_one_of(file, (*_ARRAYS, *_TOKENIZERS), rng)]
    begin = int(rng.integers(len(data)))
    values = data[begin : begin + int(rng.integers(1, 5))]
    kind = rng.integers(4)
    if kind == 0:
        values = values[::-1]
    elif kind == 1:
        values = values + 1
    elif kind == 2:
        values = np.zeros_like(values)
    else:
        values = np.frombuffer(rng.bytes(values.nbytes), values.dtype)
    data[begin : begin + len(values)] = values


def _array(file: h5py.File, rng: np.random.Generator) -> None:
    """Put another array into an array's place: of another type, length, shape or layout."""
    name = _one_of(file, (*_ARRAYS, *_TOKENIZERS), rng)
    values, attributes = file[name][:], dict(file[name].attrs)
    options: dict[str, Any] = {}
    kind = rng.integers(7)
    if kind == 0:
        values = values.astype(_TYPES[rng.integers(len(_TYPES))])
    elif kind == 1:
        values = values[: rng.integers(len(values) + 1)]
    elif kind == 2:
        values = np.concatenate([values, values[: rng.integers(5)]])
    elif kind == 3:
        values = values.reshape((1, -1)) if rng.random() < 0.5 else values[:1].reshape(())
    elif kind == 4:
        options = {"chunks": (3,), "compression": "gzip"} if rng.random() < 0.5 else {"chunks": (5,), "shuffle": True}
    elif kind == 5:
        options = {"external": [(file.filename + ".raw", 0, h5py.h5f.UNLIMITED)]}
    else:
        options = {"maxshape": (None,), "chunks": (4,)}
    del file[name]
    file.create_dataset(name, data=values, **options).attrs.update(attributes)


def _link(file: h5py.File, rng: np.random.Generator) -> None:
    """Put a link, or something of another kind, into a member's place."""
    names = (*_ARRAYS, *_TOKENIZERS, "a", "b")
    name, other = _one_of(file, names, rng), _one_of(file, names, rng)
    strange: list[Callable[[], Any]] = [
        lambda: h5py.SoftLink(f"/{other}"),
        lambda: h5py.SoftLink(f"/{name}"),
        lambda: h5py.ExternalLink(file.filename, f"/{other}"),
        lambda: h5py.ExternalLink("/dev/null", "/x"),
        lambda: file[other],
        lambda: np.dtype("u2"),
        lambda: np.zeros(3, np.uint8),
        lambda: h5py.Empty("u2"),
    ]
    put = strange[rng.integers(len(strange))]()
    del file[name]
    if rng.random() < 0.8:
        file[name] = put


def _virtual(file: h5py.File, rng: np.random.Generator) -> None:
    """Make a virtual data set of an array."""
    name = _one_of(file, _ARRAYS, rng)
    data = file[name]
    layout = h5py.VirtualLayout(data.shape, data.dtype)
    layout[:] = h5py.VirtualSource("." if rng.random() < 0.5 else "/dev/zero", f"/{name}", data.shape)
    del file[name]
    file.create_virtual_dataset(name, layout)


_EDITS = (_attribute, _attribute, _json, _numbers, _numbers, _array, _array, _link, _virtual)
