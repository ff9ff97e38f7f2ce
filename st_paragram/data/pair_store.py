"""The pair store: encoded parallel sentences in one HDF5 file, read through memory maps.

File format, version 1. For each side `a` and `b`: `<side>/ids`, contiguous, the smallest unsigned type that holds the
vocabulary, and `<side>/offsets`, uint64 (N + 1,): sentence i of a side is ids[offsets[i]:offsets[i + 1]]. Beside them
`sentencepiece_model`, the model's bytes. Attributes of the root: `format`, `format_version`, `languages` (two names),
`pairs`, `lower_case`, `segmentation`, `max_length`, `seed`, `settings` (JSON), and `complete`, written last.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any

import h5py
import numpy as np
from numpy.typing import NDArray

from st_paragram.errors import ParagramError, SettingsError, StoreError
from st_paragram.native import kernels
from st_paragram.tokenizers import flat_ids
from st_paragram.tokenizers.sentencepiece import Segmentation, SentencePieceTokenizer

FORMAT = "st_paragram pair store"
FORMAT_VERSION = 1
SIDES = ("a", "b")
_REMAKE = "prepare it again with `st-paragram prepare`"
_CHUNK = 1 << 22  # ids or offsets looked at together while checking


class PairStoreWriter:
    """Write a pair store; the file takes its name only when the `with` block ends without an error."""

    def __init__(
        self,
        path: str | Path,
        languages: tuple[str, str],
        vocabulary: SentencePieceTokenizer,
        max_length: int | None = None,
        settings: Mapping[str, Any] | None = None,
        seed: int = 0,
    ) -> None:
        """Open `<path>.part` for writing.

        Args:
            path: the file to make.
            languages: names of side a and side b, e.g. ("en", "es").
            vocabulary: the vocabulary of the ids; its model is stored inside.
            max_length: the truncation, in pieces, that the ids went through.
            settings: what is worth knowing of the preparation; anything JSON holds.
            seed: the seed of the shuffle.
        """
        self.path = Path(path)
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self.part = self.path.with_name(self.path.name + ".part")
        self._file = h5py.File(self.part, "w")
        self._file.attrs.update(
            format=FORMAT,
            format_version=FORMAT_VERSION,
            languages=list(languages),
            lower_case=vocabulary.lower_case,
            segmentation=vocabulary.segmentation.value,
            max_length=max_length or 0,
            seed=seed,
        )
        self.settings: dict[str, Any] = dict(settings or {})
        self._file["sentencepiece_model"] = np.frombuffer(vocabulary.model_proto, dtype=np.uint8)
        self._dtype = np.min_scalar_type(len(vocabulary) - 1)
        self._spool = {side: _Spool(self.part, side, self._dtype) for side in SIDES}

    def append(
        self,
        a_ids: NDArray[np.int64],
        a_offsets: NDArray[np.int64],
        b_ids: NDArray[np.int64],
        b_offsets: NDArray[np.int64],
    ) -> None:
        """Append as many pairs as the offsets (of shape (n + 1,), from 0) say; ids are flat.

        Raises:
            ValueError: the sides differ in their number of sentences.
        """
        if len(a_offsets) != len(b_offsets):
            raise ValueError(f"{len(a_offsets) - 1} sentences on side a, {len(b_offsets) - 1} on side b")
        self._spool["a"].append(a_ids, a_offsets)
        self._spool["b"].append(b_ids, b_offsets)

    def __len__(self) -> int:
        """Pairs written so far."""
        return self._spool["a"].sentences

    def __enter__(self) -> PairStoreWriter:
        """Return the writer."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Complete and rename the file, or remove it after an error."""
        try:
            if kind is None:
                for side, spool in self._spool.items():
                    spool.move_into(self._file.create_group(side))
                self._file.attrs["pairs"] = len(self)
                self._file.attrs["settings"] = json.dumps(self.settings, ensure_ascii=False)
                self._file.attrs["complete"] = True
                self._file.close()
                self.part.replace(self.path)
        finally:
            self._file.close()
            self.part.unlink(missing_ok=True)
            for spool in self._spool.values():
                spool.remove()


class _Spool:
    """One side's ids and offsets in raw files beside the store, until their totals are known."""

    def __init__(self, part: Path, side: str, dtype: np.dtype[Any]) -> None:
        self.paths = {name: part.with_name(f"{part.name}.{side}.{name}") for name in ("ids", "offsets")}
        self.files = {name: path.open("wb") for name, path in self.paths.items()}
        self.dtypes = {"ids": dtype, "offsets": np.dtype(np.uint64)}
        self.sentences = self.total = 0
        self.files["offsets"].write(np.zeros(1, np.uint64).tobytes())

    def append(self, ids: NDArray[np.int64], offsets: NDArray[np.int64]) -> None:
        self.files["ids"].write(ids.astype(self.dtypes["ids"]).tobytes())
        self.files["offsets"].write((offsets[1:] + self.total).astype(np.uint64).tobytes())
        self.sentences += len(offsets) - 1
        self.total += len(ids)

    def move_into(self, group: h5py.Group) -> None:
        for name, count in (("ids", self.total), ("offsets", self.sentences + 1)):
            self.files[name].close()
            data = group.create_dataset(name, shape=(count,), dtype=self.dtypes[name])
            with self.paths[name].open("rb") as raw:
                for start in range(0, count, _CHUNK):
                    piece = np.fromfile(raw, dtype=self.dtypes[name], count=_CHUNK)
                    data[start : start + len(piece)] = piece
            self.paths[name].unlink()

    def remove(self) -> None:
        for name, file in self.files.items():
            file.close()
            self.paths[name].unlink(missing_ok=True)


class PairStore:
    """Read a pair store. Ids and offsets are memory-mapped, so memory does not grow with the number of pairs."""

    def __init__(self, path: str | Path, check_ids: bool = True, limit: int | None = None) -> None:
        """Open and check a store.

        Args:
            path: an HDF5 file of this format.
            check_ids: look through all ids and offsets once.
            limit: show at most the first so many pairs: a random sample, since preparation shuffles.

        Raises:
            SettingsError: the limit is below 1.
            StoreError: the file is missing, no pair store, of another version, incomplete, empty or damaged.
        """
        if limit is not None and limit < 1:
            raise SettingsError(f"a limit of {limit} pairs; at least 1 is needed")
        self.path = Path(path)
        if not self.path.is_file():
            raise StoreError(f"{self.path}: no such pair store; make it with `st-paragram prepare`")
        try:
            with h5py.File(self.path, "r") as file:
                self._read_header(file)
                self._extents = {
                    side: {name: _extent(file[side][name]) for name in ("ids", "offsets")} for side in SIDES
                }
        except (OSError, KeyError, ValueError, TypeError, AttributeError) as error:
            reason = str(error).replace("\n", " ")
            raise StoreError(f"{self.path}: not a readable pair store ({reason}); {_REMAKE}") from error
        self._maps: dict[str, tuple[NDArray[Any], NDArray[Any]]] = {}
        self._check_shapes()
        if check_ids:
            self._check_ids()
        if limit is not None:
            self.pairs = min(len(self), limit)

    def _read_header(self, file: h5py.File) -> None:
        if file.attrs.get("format") != FORMAT:
            raise StoreError(f"{self.path}: HDF5, but not a pair store of st_paragram; {_REMAKE}")
        version = int(file.attrs.get("format_version", -1))
        if version != FORMAT_VERSION:
            message = f"pair store of format version {version}, this st_paragram reads version {FORMAT_VERSION}"
            raise StoreError(f"{self.path}: {message}; {_REMAKE}")
        if not file.attrs.get("complete", False):
            raise StoreError(f"{self.path}: incomplete, its preparation did not finish; {_REMAKE}")
        attributes = dict(file.attrs)
        first, second = (str(name) for name in attributes["languages"])
        self.languages = (first, second)
        self.pairs = int(attributes["pairs"])
        if self.pairs < 1:
            raise StoreError(f"{self.path}: holds no pairs; {_REMAKE} from text with pairs in it")
        self.max_length = int(attributes["max_length"]) or None
        self.seed = int(attributes["seed"])
        self.settings: dict[str, Any] = json.loads(attributes["settings"])
        self.lower_case = bool(attributes["lower_case"])
        self.segmentation = Segmentation(attributes["segmentation"])
        self._model_proto = file["sentencepiece_model"][:].tobytes()

    def _check_shapes(self) -> None:
        size = self.path.stat().st_size
        for side, extents in self._extents.items():
            if extents["offsets"][2] != self.pairs + 1:
                count = extents["offsets"][2] - 1
                raise StoreError(f"{self.path}: side {side} has {count} sentences, not {self.pairs}; {_REMAKE}")
            for name, (position, dtype, count) in extents.items():
                if position + dtype.itemsize * count > size:
                    raise StoreError(f"{self.path}: truncated, {side}/{name} ends beyond the file; {_REMAKE}")

    def _check_ids(self) -> None:
        try:
            pieces = len(self.tokenizer())
        except ParagramError as error:
            raise StoreError(f"{self.path}: damaged vocabulary ({error}); {_REMAKE}") from error
        for side in SIDES:
            ids, offsets = self._side(side)
            if offsets[0] != 0 or offsets[-1] != len(ids):
                seen = f"offsets run {offsets[0]}..{offsets[-1]} over {len(ids)} ids"
                raise StoreError(f"{self.path}: side {side}: {seen}; {_REMAKE}")
            for start in range(0, self.pairs, _CHUNK):
                piece = offsets[start : start + _CHUNK + 1]
                if (piece[1:] <= piece[:-1]).any():
                    row = start + int(np.argmax(piece[1:] <= piece[:-1]))
                    raise StoreError(f"{self.path}: side {side}, row {row}: offsets do not grow; {_REMAKE}")
            for start in range(0, len(ids), _CHUNK):
                chunk = ids[start : start + _CHUNK]
                if chunk.max() >= pieces:
                    bad = start + int(np.argmax(chunk >= pieces))
                    row = int(np.searchsorted(offsets, bad, side="right")) - 1
                    seen = f"id {ids[bad]} is outside the vocabulary of {pieces}"
                    raise StoreError(f"{self.path}: side {side}, row {row}: {seen}; {_REMAKE}")

    def __len__(self) -> int:
        """Number of pairs."""
        return self.pairs

    def __getstate__(self) -> dict[str, Any]:
        """Leave the maps behind: every process opens its own."""
        return {**self.__dict__, "_maps": {}}

    def tokenizer(self, side: str = "a") -> SentencePieceTokenizer:
        """The tokenizer that the ids of a side belong to; in this version of the format both sides share it."""
        return SentencePieceTokenizer(self._model_proto, self.lower_case, self.segmentation)

    def take(
        self, side: str, rows: NDArray[np.integer[Any]], dtype: type[np.integer[Any]] = np.int64
    ) -> tuple[NDArray[Any], NDArray[np.int64]]:
        """Read sentences of one side.

        Args:
            side: "a" or "b".
            rows: integers of shape (n,), in any order.
            dtype: of the ids that are returned, int64 or int32.

        Returns:
            ids (total,), and offsets, int64 (n + 1,).
        """
        ids, edges = self._side(side)
        begin = edges[rows].astype(np.int64)
        counts = edges[rows + 1].astype(np.int64) - begin
        if dtype is np.int32 and (native := kernels()) is not None:  # other threads run while the disk is waited for
            offsets = flat_ids.starts(counts)
            result = np.empty(offsets[-1], dtype)
            native.gather(ids, begin, offsets, result)
            return result, offsets
        taken, offsets = flat_ids.take(ids, begin, counts)
        return taken.astype(dtype), offsets

    def texts(self, side: str, rows: NDArray[np.integer[Any]]) -> Iterator[str]:
        """Decode sentences of one side (lower-cased and truncated as stored, unknown characters missing)."""
        tokenizer = self.tokenizer()
        ids, offsets = self.take(side, np.asarray(rows))
        for start, end in itertools.pairwise(offsets):
            yield tokenizer.decode(ids[start:end].tolist())

    def _side(self, side: str) -> tuple[NDArray[Any], NDArray[Any]]:
        if side not in self._maps:
            ids, offsets = (
                np.memmap(self.path, mode="r", dtype=dtype, offset=position, shape=(count,))
                for position, dtype, count in self._extents[side].values()
            )
            self._maps[side] = (ids, offsets)
        return self._maps[side]


def _extent(data: h5py.Dataset) -> tuple[int, np.dtype[Any], int]:
    """Position in the file, type and length of a contiguous data set."""
    position = data.id.get_offset()
    if position is None or data.ndim != 1 or data.dtype.kind != "u":
        raise ValueError(f"{data.name} is not a contiguous list of unsigned integers")
    return int(position), data.dtype, int(data.shape[0])
