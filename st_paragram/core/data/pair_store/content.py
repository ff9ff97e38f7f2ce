"""The digest of what a store holds; `format` says of what it is made."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from tqdm import tqdm

from st_paragram.core.data.pair_store.header import Header
from st_paragram.core.data.pair_store.mapped_file import MappedFile


class _Tokenizer(Protocol):
    """What is common to a tokenizer in use and one as a store keeps it."""

    @property
    def kind(self) -> str: ...
    @property
    def content(self) -> bytes: ...
    @property
    def options(self) -> dict[str, Any]: ...


class ArrayDigest:
    """The digest of an array, which is made while it is written or read."""

    def __init__(self, dtype: np.dtype[Any]) -> None:
        self._dtype, self._length, self._hash = dtype, 0, hashlib.sha256()

    def add(self, values: NDArray[Any]) -> None:
        """Go on with further numbers, contiguous and of the type of the array."""
        self._hash.update(values.data)
        self._length += len(values)

    def described(self) -> list[Any]:
        """Type, number of numbers, and SHA-256 of their bytes."""
        return [self._dtype.str, self._length, self._hash.hexdigest()]


@dataclass(frozen=True)
class Content:
    """What a store holds, but for its arrays; as in `Header`, `settings` as JSON gives them back."""

    languages: tuple[str, str]
    pairs: int
    max_length: int | None
    seed: int
    settings: Mapping[str, Any]
    tokenizers: Iterable[_Tokenizer]
    language_pairs: Iterable[tuple[str, str]]

    def digest(self, arrays: Mapping[str, ArrayDigest]) -> str:
        """The SHA-256 of the whole, in hexadecimal digits; the arrays by their names in the file."""
        whole = {
            "arrays": {name: array.described() for name, array in arrays.items()},
            "language_pairs": list(self.language_pairs),
            "languages": self.languages,
            "max_length": self.max_length or 0,
            "pairs": self.pairs,
            "seed": self.seed,
            "settings": self.settings,
            "tokenizers": [
                [each.kind, each.options, hashlib.sha256(each.content).hexdigest()] for each in self.tokenizers
            ],
        }
        text = json.dumps(whole, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
        return hashlib.sha256(text.encode("utf-8")).hexdigest()


def digest_of(path: Path, header: Header, maps: MappedFile) -> str:
    """Read a store, and make the digest of what it holds.

    Raises:
        StoreError: the file changed meanwhile.
    """
    content = Content(
        header.languages,
        header.pairs,
        header.max_length,
        header.seed,
        header.settings,
        header.tokenizers,
        header.language_pairs,
    )
    arrays = {name: ArrayDigest(extent.dtype) for name, extent in header.extents.items()}
    size = sum(extent.end - extent.position for extent in header.extents.values())
    with tqdm(total=size, desc=f"checking {path.name}", unit="B", unit_scale=True, delay=1, disable=None) as bar:
        for name, array in arrays.items():
            for _, piece in maps.chunks(name):
                array.add(piece)
                bar.update(piece.nbytes)
    return content.digest(arrays)
