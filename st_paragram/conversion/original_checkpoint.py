"""Read a checkpoint of the original P-SP or SP code safely.

Such a file is a pickle of `state_dict` (with `embedding.weight`), `vocab` (string -> row), `args`
(argparse.Namespace), `optimizer` and `epoch`, in torch's zip format or the older format. torch's
restricted unpickler reads it: it creates tensors, plain values and an `argparse.Namespace`, and
refuses every other class or function before it is called.
"""

from __future__ import annotations

import argparse
import pickle
import re
import struct
import warnings
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from st_paragram.core.files import content_digest, folder_for_file
from st_paragram.errors import DAMAGED, ModelDirectoryError, one_line, short

#: The string whose row is used for texts without known tokens.
UNKNOWN = "UUUNKKK"
_TABLE = "embedding.weight"
_IGNORED = "embedding_fr.weight"  # the code creates it even if it is not used
_UNREADABLE = (
    pickle.UnpicklingError,
    zipfile.BadZipFile,
    struct.error,
    AssertionError,
    MemoryError,
    *DAMAGED,
)
_REFUSED = re.compile(r"GLOBAL (\S+) (?:was not an allowed|whose)")
_TOO_LARGE = 1e15  # sums of smaller numbers, and squares of their means, are finite in float32


@dataclass(frozen=True)
class OriginalCheckpoint:
    """The parts of a checkpoint that an import needs."""

    table: Tensor  # float32 (V, D)
    vocabulary: Mapping[str, int]  # string -> row, in 0 .. V - 1
    arguments: Mapping[str, Any]  # training arguments by name
    epoch: int | None  # the last epoch, if recorded
    digest: str  # SHA-256 of the file, in hexadecimal digits
    path: Path

    @property
    def unknown_row(self) -> int:
        """The row of `UUUNKKK`."""
        return self.vocabulary[UNKNOWN]

    def strings(self) -> list[str]:
        """Return the strings except `UUUNKKK`, in the order of their rows."""
        return sorted(self.vocabulary.keys() - {UNKNOWN}, key=self.vocabulary.__getitem__)

    def rows_of(self, strings: Sequence[str]) -> list[int]:
        """Return the rows of strings, and the unknown row after them."""
        return [self.vocabulary[string] for string in strings] + [self.unknown_row]


def read_checkpoint(path: str | Path) -> OriginalCheckpoint:
    """Read a checkpoint; in the zip format, only its table, not the state of the optimizer."""
    path = Path(path)
    if wrong := folder_for_file(path):
        raise ModelDirectoryError(f"{wrong}; name a file")
    if not path.is_file():
        raise ModelDirectoryError(f"{path}: no such file or directory; check the path")
    try:
        digest = content_digest(path)
        values = _read(path)
    except _UNREADABLE as error:
        request = _REFUSED.search(str(error))
        if request is None:
            raise _error(path, "not a checkpoint, or damaged") from error
        name = one_line(request[1], 100)
        raise ModelDirectoryError(
            f"{path}: it requests {name}, which no P-SP or SP checkpoint needs; nothing was"
            " executed; do not use this file"
        ) from error
    if not isinstance(values, dict) or not {"state_dict", "vocab", "args"} <= values.keys():
        raise _error(path, "it does not hold state_dict, vocab and args")
    arguments = values["args"]
    if isinstance(arguments, argparse.Namespace):
        arguments = vars(arguments)
    if not isinstance(arguments, dict):
        raise _error(path, "its args are not settings by name")
    table = _table(path, values["state_dict"])
    epoch = values.get("epoch")
    return OriginalCheckpoint(
        table,
        vocabulary=_vocabulary(path, values["vocab"], len(table)),
        arguments=arguments,
        epoch=epoch if type(epoch) is int else None,
        digest=digest,
        path=path,
    )


def _read(path: Path) -> object:
    """Read tensors, plain values and an `argparse.Namespace`.

    Other classes are refused, even if the process has allowed them.
    """
    allowed = torch.serialization.get_safe_globals()
    torch.serialization.clear_safe_globals()
    torch.serialization.add_safe_globals([argparse.Namespace])
    try:
        with warnings.catch_warnings():
            # about other versions of pickles, which an error also reports
            warnings.simplefilter("ignore")
            mmap = zipfile.is_zipfile(path)
            return torch.load(path, map_location="cpu", weights_only=True, mmap=mmap)
    finally:
        torch.serialization.clear_safe_globals()
        torch.serialization.add_safe_globals(allowed)


def _table(path: Path, state: object) -> Tensor:
    """Return the embedding matrix, float32 (V, D); refuse models with other parameters."""
    if not isinstance(state, dict) or not isinstance(state.get(_TABLE), Tensor):
        raise _error(path, f"its state_dict has no tensor {_TABLE}")
    others = [name for name in state if name not in (_TABLE, _IGNORED)]
    if others:
        raise ModelDirectoryError(
            f"{path}: has parameters {short(others)}, so it is a recurrent or gated encoder"
            " (BiLSTM, GRAN); only checkpoints that average embeddings can be imported"
        )
    table: Tensor = state[_TABLE]
    is_plain = table.is_floating_point() and table.layout is torch.strided and not table.is_meta
    # a tensor may repeat stored numbers
    is_stored = table.numel() * table.element_size() <= path.stat().st_size
    if table.ndim != 2 or 0 in table.shape or not is_plain or not is_stored:
        kind = f"{table.dtype} of shape {tuple(table.shape)}"
        raise _error(path, f"{_TABLE} is a tensor of {kind}, not rows of numbers in the file")
    table = table.detach().to(torch.float32)
    is_usable = (table.abs() < _TOO_LARGE).all(dim=1)
    if not bool(is_usable.all()):
        row = int((~is_usable).nonzero()[0])
        raise _error(path, f"{_TABLE}, row {row}: NaN, infinite or huge numbers")
    return table


def _vocabulary(path: Path, vocabulary: object, rows: int) -> dict[str, int]:
    """Return the row of each string, after checking that all rows exist."""
    if not isinstance(vocabulary, dict) or UNKNOWN not in vocabulary:
        raise _error(path, f"its vocab is not a dictionary of strings with a row for {UNKNOWN}")
    for name, row in vocabulary.items():
        if not isinstance(name, str) or type(row) is not int or not 0 <= row < rows:
            entry = f"{short(name)} to {short(row)}"
            raise _error(path, f"vocab maps {entry}, not a string to a row below {rows:,}")
        if any("\ud800" <= character <= "\udfff" for character in name):
            name = ascii(name)[:80]
            raise _error(path, f"vocab names {name}, which is not valid text (a lone surrogate)")
    return vocabulary


def _error(path: Path, reason: str) -> ModelDirectoryError:
    return ModelDirectoryError(f"{path}: {reason}; download the file again from its authors")
