"""Checks of a pair store: that its arrays fit together, and that every number in them is in its range."""

from __future__ import annotations

from collections import deque
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from st_paragram.core.damage import one_line
from st_paragram.core.data.pair_store.format import CHUNK, LABELS, REMAKE, ROW_LANGUAGES, SIDES
from st_paragram.core.data.pair_store.header import Header
from st_paragram.core.data.pair_store.mapped_file import MappedFile
from st_paragram.core.tokenizers.base import Tokenizer
from st_paragram.errors import MissingExtraError, ParagramError, StoreError


def check_shapes(path: Path, header: Header) -> None:
    """Check the lengths of all arrays without reading them.

    Raises:
        StoreError: an array has another number of rows than the store, is empty, or ends beyond the file.
    """
    for name, extent in header.extents.items():
        side, _, kind = name.partition("/")
        if kind == "offsets" and extent.length != header.pairs + 1:
            raise StoreError(f"{path}: side {side} has {extent.length - 1} sentences, not {header.pairs}; {REMAKE}")
        if kind == "ids" and not extent.length:
            raise StoreError(f"{path}: side {side} has no ids; {REMAKE}")
        if not kind and extent.length != header.pairs:
            raise StoreError(f"{path}: {extent.length} {name} for {header.pairs} rows; {REMAKE}")
        if extent.end > header.size:
            raise StoreError(f"{path}: truncated, {name} ends beyond the file; {REMAKE}")


def load_tokenizers(path: Path, header: Header) -> tuple[Tokenizer, Tokenizer]:
    """Make the tokenizers of side a and side b, one and the same object if the sides share it.

    Raises:
        StoreError: a tokenizer is damaged.
        MissingExtraError: a tokenizer needs a package that is not installed.
    """
    try:
        loaded = [tokenizer.load() for tokenizer in header.tokenizers]
        for tokenizer in loaded:
            # What is no text is found here, not in training.
            deque(map(tokenizer.piece, range(len(tokenizer))), maxlen=0)
    except MissingExtraError:
        raise
    except ParagramError as error:
        raise StoreError(f"{path}: damaged tokenizer ({one_line(error)}); {REMAKE}") from error
    return loaded[0], loaded[-1]


def check_rows(path: Path, header: Header, maps: MappedFile, tokenizers: tuple[Tokenizer, Tokenizer]) -> None:
    """Look through all arrays once.

    Raises:
        StoreError: offsets do not grow, or an id, a row's languages or a label is out of its range; the message names
            side and row. Or the file changed meanwhile.
    """
    for side, tokenizer in zip(SIDES, tokenizers, strict=True):
        _check_offsets(f"{path}: side {side}", side, maps)
        _check_ids(f"{path}: side {side}", side, maps, len(tokenizer))
    known = len(header.language_pairs)
    for start, chunk in maps.chunks(ROW_LANGUAGES) if ROW_LANGUAGES in header.extents else ():
        check_languages(str(path), chunk, known, start)
    for start, chunk in maps.chunks(LABELS) if LABELS in header.extents else ():
        if not (finite := np.isfinite(chunk)).all():
            row = int(np.argmin(finite))
            raise StoreError(f"{path}: row {start + row}: the label {chunk[row]} is no finite number; {REMAKE}")


def check_languages(where: str, numbers: NDArray[Any], known: int, first_row: int = 0) -> None:
    """Look through numbers of pairs of languages.

    Raises:
        StoreError: one is not below `known`.
    """
    if (wrong := numbers >= known).any():
        row = int(np.argmax(wrong))
        seen = f"pair of languages {numbers[row]}, but there are only {known}, counted from 0"
        raise StoreError(f"{where}: row {first_row + row}: {seen}; {REMAKE}")


def _check_offsets(where: str, side: str, maps: MappedFile) -> None:
    offsets, ids = maps[f"{side}/offsets"], len(maps[f"{side}/ids"])
    if offsets[0] != 0 or offsets[-1] != ids:
        raise StoreError(f"{where}: offsets run {offsets[0]}..{offsets[-1]} over {ids} ids; {REMAKE}")
    for start in range(0, len(offsets) - 1, CHUNK):
        piece = maps[f"{side}/offsets"][start : start + CHUNK + 1]
        if (piece[1:] <= piece[:-1]).any():
            row = start + int(np.argmax(piece[1:] <= piece[:-1]))
            raise StoreError(f"{where}, row {row}: offsets do not grow; {REMAKE}")


def _check_ids(where: str, side: str, maps: MappedFile, most: int) -> None:
    for start, chunk in maps.chunks(f"{side}/ids"):
        if chunk.max() >= most:
            bad = start + int(np.argmax(chunk >= most))
            row = int(np.searchsorted(maps[f"{side}/offsets"], bad, side="right")) - 1
            seen = f"id {chunk[bad - start]} is outside the vocabulary of {most}"
            raise StoreError(f"{where}, row {row}: {seen}; {REMAKE}")
