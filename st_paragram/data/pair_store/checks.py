"""Checks of a pair store: that its arrays fit together, and that every number in them is in its range."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from st_paragram.data.pair_store.format import CHUNK, LABELS, REMAKE, ROW_LANGUAGES, SIDES
from st_paragram.data.pair_store.header import Header
from st_paragram.errors import MissingExtraError, ParagramError, StoreError
from st_paragram.tokenizers.base import Tokenizer


def check_shapes(path: Path, header: Header) -> None:
    """Check the lengths of all arrays without reading them.

    Raises:
        StoreError: an array has another number of rows than the store, or ends beyond the file.
    """
    size = path.stat().st_size
    for name, extent in header.extents.items():
        side, _, kind = name.partition("/")
        if kind == "offsets" and extent.length != header.pairs + 1:
            raise StoreError(f"{path}: side {side} has {extent.length - 1} sentences, not {header.pairs}; {REMAKE}")
        if not kind and extent.length != header.pairs:
            raise StoreError(f"{path}: {extent.length} {name} for {header.pairs} rows; {REMAKE}")
        if extent.position + extent.dtype.itemsize * extent.length > size:
            raise StoreError(f"{path}: truncated, {name} ends beyond the file; {REMAKE}")


def load_tokenizers(path: Path, header: Header) -> tuple[Tokenizer, Tokenizer]:
    """Make the tokenizers of side a and side b, one and the same object if the sides share it.

    Raises:
        StoreError: a tokenizer is damaged.
        MissingExtraError: a tokenizer needs a package that is not installed.
    """
    try:
        loaded = [tokenizer.load() for tokenizer in header.tokenizers]
    except MissingExtraError:
        raise
    except ParagramError as error:
        raise StoreError(f"{path}: damaged tokenizer ({error}); {REMAKE}") from error
    return loaded[0], loaded[-1]


def check_rows(path: Path, header: Header, tokenizers: tuple[Tokenizer, Tokenizer]) -> None:
    """Look through all arrays once.

    Raises:
        StoreError: offsets do not grow, or an id, a row's languages or a label is out of its range; the message names
            side and row.
    """
    for side, tokenizer in zip(SIDES, tokenizers, strict=True):
        ids, offsets = (header.extents[f"{side}/{name}"].map(path) for name in ("ids", "offsets"))
        _check_offsets(f"{path}: side {side}", offsets, len(ids))
        _check_ids(f"{path}: side {side}", ids, offsets, len(tokenizer))
    known = len(header.language_pairs)
    for start, chunk in _chunks(path, header, ROW_LANGUAGES):
        if chunk.max() >= known:
            row = int(np.argmax(chunk >= known))
            seen = f"pair of languages {chunk[row]}, but there are only {known}, counted from 0"
            raise StoreError(f"{path}: row {start + row}: {seen}; {REMAKE}")
    for start, chunk in _chunks(path, header, LABELS):
        if not (finite := np.isfinite(chunk)).all():
            row = int(np.argmin(finite))
            raise StoreError(f"{path}: row {start + row}: the label {chunk[row]} is no finite number; {REMAKE}")


def _check_offsets(where: str, offsets: NDArray[Any], ids: int) -> None:
    if offsets[0] != 0 or offsets[-1] != ids:
        raise StoreError(f"{where}: offsets run {offsets[0]}..{offsets[-1]} over {ids} ids; {REMAKE}")
    for start in range(0, len(offsets) - 1, CHUNK):
        piece = offsets[start : start + CHUNK + 1]
        if (piece[1:] <= piece[:-1]).any():
            row = start + int(np.argmax(piece[1:] <= piece[:-1]))
            raise StoreError(f"{where}, row {row}: offsets do not grow; {REMAKE}")


def _check_ids(where: str, ids: NDArray[Any], offsets: NDArray[Any], most: int) -> None:
    for start in range(0, len(ids), CHUNK):
        chunk = ids[start : start + CHUNK]
        if chunk.max() >= most:
            bad = start + int(np.argmax(chunk >= most))
            row = int(np.searchsorted(offsets, bad, side="right")) - 1
            raise StoreError(f"{where}, row {row}: id {ids[bad]} is outside the vocabulary of {most}; {REMAKE}")


def _chunks(path: Path, header: Header, name: str) -> Iterator[tuple[int, NDArray[Any]]]:
    """Where each piece of an array begins, and the piece; nothing if the store has no such array."""
    if name in header.extents:
        values = header.extents[name].map(path)
        for start in range(0, len(values), CHUNK):
            yield start, values[start : start + CHUNK]
