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
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from st_paragram.core.files import content_digest, folder_for_file
from st_paragram.errors import DAMAGED, ModelDirectoryError, one_line, short

#: The string whose row is used for texts without known tokens.
UNKNOWN = "UUUNKKK"
# the code creates the second even if it is not used
_TABLE, _IGNORED = "embedding.weight", "embedding_fr.weight"
_UNREADABLE = (
    pickle.UnpicklingError,
    zipfile.BadZipFile,
    struct.error,
    AssertionError,
    MemoryError,
    *DAMAGED,
)
_REFUSED = re.compile(r"GLOBAL (\S+) was not an allowed|unsupported GLOBAL (\S+) whose")
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


def read_checkpoint(path: str | Path) -> OriginalCheckpoint:
    """Read a checkpoint; in the zip format, only the table is read into memory, not the optimizer's
    state.
    """
    path = Path(path)
    if wrong := folder_for_file(path):
        raise ModelDirectoryError(f"{wrong}; name a file")
    if not path.is_file():
        raise ModelDirectoryError(f"{path}: no such file or directory; check the path")
    try:
        digest = content_digest(path)
        with _plain_values_only():
            values = torch.load(
                path, map_location="cpu", weights_only=True, mmap=zipfile.is_zipfile(path)
            )
    except _UNREADABLE as error:
        if found := _REFUSED.search(str(error)):
            name = one_line(found[1] or found[2], 100)
            reason = (
                f"it requests {name}, which no P-SP or SP checkpoint needs; nothing was executed"
            )
            raise ModelDirectoryError(f"{path}: {reason}; do not use this file") from error
        raise _error(path, f"not a checkpoint, or damaged: {one_line(error)}") from error
    if not isinstance(values, dict) or not {"state_dict", "vocab", "args"} <= values.keys():
        seen = (
            f"a dictionary of {short(list(values))}"
            if isinstance(values, dict)
            else f"a {type(values).__name__}"
        )
        raise _error(path, f"it holds {seen}, but a checkpoint has state_dict, vocab and args")
    arguments = (
        vars(values["args"]) if isinstance(values["args"], argparse.Namespace) else values["args"]
    )
    if not isinstance(arguments, dict):
        raise _error(path, f"its args are a {type(arguments).__name__}, not settings by name")
    table = _table(path, values["state_dict"])
    epoch = values.get("epoch")
    return OriginalCheckpoint(
        table,
        _vocabulary(path, values["vocab"], len(table)),
        arguments,
        epoch if type(epoch) is int else None,
        digest,
        path,
    )


@contextmanager
def _plain_values_only() -> Iterator[None]:
    """Allow only `argparse.Namespace` and what torch always allows, even if the process has allowed
    other classes.
    """
    before = torch.serialization.get_safe_globals()
    torch.serialization.clear_safe_globals()
    torch.serialization.add_safe_globals([argparse.Namespace])
    try:
        with warnings.catch_warnings():
            # about other versions of pickles, which an error also reports
            warnings.simplefilter("ignore")
            yield
    finally:
        torch.serialization.clear_safe_globals()
        torch.serialization.add_safe_globals(before)


def _table(path: Path, state: object) -> Tensor:
    """Return the embedding matrix, float32 (V, D); refuse models with other parameters."""
    table = state.get(_TABLE) if isinstance(state, dict) else None
    if not isinstance(state, dict) or not isinstance(table, Tensor):
        raise _error(path, f"its state_dict has no tensor {_TABLE}")
    if others := [name for name in state if name not in (_TABLE, _IGNORED)]:
        raise ModelDirectoryError(
            f"{path}: has parameters {short(others)}, so it is a recurrent or gated encoder"
            " (BiLSTM, GRAN); only checkpoints that average embeddings can be imported"
        )
    is_plain = table.is_floating_point() and table.layout is torch.strided and not table.is_meta
    seen = f"{_TABLE} is a tensor of {table.dtype} of shape {tuple(table.shape)}"
    if table.ndim != 2 or 0 in table.shape or not is_plain:
        raise _error(path, f"{seen}, not rows of numbers")
    # a tensor may repeat stored numbers
    if table.numel() * table.element_size() > path.stat().st_size:
        raise _error(path, f"{seen}, which is larger than the file")
    table = table.detach().to(torch.float32)
    if not bool((fine := (table.abs() < _TOO_LARGE).all(dim=1)).all()):
        raise _error(
            path, f"{_TABLE}, row {int((~fine).nonzero()[0])}: NaN, infinite or huge numbers"
        )
    return table


def _vocabulary(path: Path, vocabulary: object, rows: int) -> dict[str, int]:
    """Return the row of each string, after checking that all rows exist."""
    if not isinstance(vocabulary, dict) or UNKNOWN not in vocabulary:
        raise _error(path, f"its vocab is not a dictionary of strings with a row for {UNKNOWN}")
    for name, row in vocabulary.items():
        if not isinstance(name, str) or type(row) is not int or not 0 <= row < rows:
            raise _error(
                path,
                f"vocab maps {short(name)} to {short(row)}, not a string to a row below {rows:,}",
            )
        if any("\ud800" <= character <= "\udfff" for character in name):
            raise _error(
                path, f"vocab names {ascii(name)[:80]}, which is not valid text (a lone surrogate)"
            )
    return vocabulary


def _error(path: Path, reason: str) -> ModelDirectoryError:
    return ModelDirectoryError(f"{path}: {reason}; download the file again from its authors")
