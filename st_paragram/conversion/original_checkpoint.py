"""Read a checkpoint of the original P-SP or SP code without trusting it.

Such a file is a pickle of `state_dict` (with `embedding.weight`), `vocab` (string -> row), `args` (argparse.Namespace),
`optimizer` and `epoch`, in torch's zip format or the one before it. torch's restricted unpickler reads it: it makes
tensors, plain values and an `argparse.Namespace`, and refuses every other class or function before it is called.
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

#: What the table of embeddings is called in `state_dict`.
TABLE = "embedding.weight"
#: The string whose row stands for a text without a known token.
UNKNOWN = "UUUNKKK"
# A table for the other language, which the code makes even where it is not used.
_IGNORED = "embedding_fr.weight"
_UNREADABLE = (pickle.UnpicklingError, zipfile.BadZipFile, struct.error, AssertionError, MemoryError, *DAMAGED)
_REFUSED = re.compile(r"GLOBAL (\S+) was not an allowed|unsupported GLOBAL (\S+) whose")
_LARGEST = 1e15  # of a number of the table: sums of many such, and squares of their means, are finite in float32
_BETTER = "download the file again from its authors"


@dataclass(frozen=True)
class OriginalCheckpoint:
    """What an import needs of a checkpoint.

    Attributes:
        table: float32 (V, D).
        vocabulary: the row of each string; every row is in 0 .. V - 1.
        arguments: of the training, by name.
        epoch: the last that was trained; None if the checkpoint does not say.
        digest: SHA-256 of the file, in hexadecimal digits.
        path: of the file.
    """

    table: Tensor
    vocabulary: Mapping[str, int]
    arguments: Mapping[str, Any]
    epoch: int | None
    digest: str
    path: Path

    @property
    def unknown_row(self) -> int:
        """The row of `UUUNKKK`."""
        return self.vocabulary[UNKNOWN]


def read_checkpoint(path: str | Path) -> OriginalCheckpoint:
    """Read a checkpoint; of one in the zip format only the table is read into memory, not the optimizer's state.

    Raises:
        ModelDirectoryError: there is no such file, it is cut off, damaged or no checkpoint, it would execute code, or
            it holds another model than one that averages embeddings.
    """
    path = Path(path)
    digest = _digest(path)
    with _plain_values_only():
        values = _load(path)
    if not isinstance(values, dict) or not {"state_dict", "vocab", "args"} <= values.keys():
        seen = f"a dictionary of {short(list(values))}" if isinstance(values, dict) else f"a {type(values).__name__}"
        raise _error(path, f"it holds {seen}, but a checkpoint has state_dict, vocab and args")
    table = _table(path, values["state_dict"])
    vocabulary = _vocabulary(path, values["vocab"], len(table))
    epoch = values.get("epoch")
    return OriginalCheckpoint(
        table, vocabulary, _arguments(path, values["args"]), epoch if type(epoch) is int else None, digest, path
    )


@contextmanager
def _plain_values_only() -> Iterator[None]:
    """Allow `argparse.Namespace` besides what torch always allows, and nothing that the process has allowed besides."""
    before = torch.serialization.get_safe_globals()
    torch.serialization.clear_safe_globals()
    torch.serialization.add_safe_globals([argparse.Namespace])
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about other versions of pickles, which an error also says
            yield
    finally:
        torch.serialization.clear_safe_globals()
        torch.serialization.add_safe_globals(before)


def _digest(path: Path) -> str:
    if wrong := folder_for_file(path):
        raise ModelDirectoryError(f"{wrong}; name a file")
    if not path.is_file():
        raise ModelDirectoryError(f"{path}: no such file or directory; check the path")
    try:
        return content_digest(path)
    except OSError as error:
        raise ModelDirectoryError(f"{path}: cannot be read ({one_line(error, about=path)}); check the file") from error


def _load(path: Path) -> Any:  # noqa: ANN401 - whatever the restricted unpickler makes
    """What the file holds, tensors on the CPU.

    Raises:
        ModelDirectoryError: it is damaged, or has something that the restricted unpickler refuses.
    """
    try:
        mapped = zipfile.is_zipfile(path)
        if mapped:
            _check_archive(path)
        return torch.load(path, map_location="cpu", weights_only=True, mmap=mapped)
    except _UNREADABLE as error:
        if found := _REFUSED.search(str(error)):
            name = one_line(found[1] or found[2], 100)
            reason = f"it requests {name}, which no P-SP or SP checkpoint needs; nothing was executed"
            raise ModelDirectoryError(f"{path}: {reason}. Do not use this file") from error
        raise _error(path, f"not a checkpoint, or cut off or damaged: {one_line(error)}") from error


def _check_archive(path: Path) -> None:
    """Refuse an archive whose members are packed, as torch never does (so they cannot swell), or damaged.

    Raises:
        ModelDirectoryError: it is one.
        BadZipFile, OSError: it cannot be read at all.
    """
    with zipfile.ZipFile(path) as archive:
        members = archive.infolist()
        packed = [one for one in members if one.compress_type != zipfile.ZIP_STORED]
        size = sum(one.file_size for one in members)
        if packed or size > path.stat().st_size:
            seen = f"member {short(packed[0].filename)} is compressed" if packed else f"members of {size:,} bytes"
            raise _error(path, f"{seen}, which torch does not write")
        if (name := archive.testzip()) is not None:
            raise _error(path, f"member {short(name)} is not what was saved (its checksum differs)")


def _table(path: Path, state: object) -> Tensor:
    """The table of embeddings, float32 (V, D).

    Raises:
        ModelDirectoryError: there is none, or there are other parameters than tables.
    """
    if not isinstance(state, dict) or not isinstance(state.get(TABLE), Tensor):
        raise _error(path, f"its state_dict has no tensor {TABLE}")
    if others := [name for name in state if name not in (TABLE, _IGNORED)]:
        raise ModelDirectoryError(
            f"{path}: has parameters {short(others)}, so it is a recurrent or gated encoder (BiLSTM, GRAN); only "
            "checkpoints that average embeddings can be imported"
        )
    table: Tensor = state[TABLE]
    is_plain = table.is_floating_point() and table.layout is torch.strided and not table.is_meta
    if table.ndim != 2 or 0 in table.shape or not is_plain:
        raise _error(path, f"{TABLE} is a tensor of {table.dtype} of shape {tuple(table.shape)}; rows are expected")
    if table.numel() * table.element_size() > path.stat().st_size:
        raise _error(path, f"{TABLE} of shape {tuple(table.shape)} is larger than the file")
    table = table.detach().to(torch.float32)
    if not bool((finite := torch.isfinite(table).all(dim=1)).all()):
        raise _error(path, f"{TABLE}, row {int((~finite).nonzero()[0])}: NaN or infinite")
    if float(largest := table.abs().max()) > _LARGEST:
        raise _error(path, f"{TABLE} has numbers up to {largest:.1e}, too large for a mean")
    return table


def _vocabulary(path: Path, vocabulary: object, rows: int) -> dict[str, int]:
    """The row of each string.

    Raises:
        ModelDirectoryError: it is not such a dictionary, names rows that are not there, or has no row of `UUUNKKK`.
    """
    if not isinstance(vocabulary, dict) or UNKNOWN not in vocabulary:
        raise _error(path, f"its vocab is not a dictionary of strings with a row for {UNKNOWN}")
    for name, row in vocabulary.items():
        if not isinstance(name, str) or type(row) is not int:
            raise _error(path, f"vocab maps {short(name)} to {short(row)}; strings and rows are expected")
        if any("\ud800" <= character <= "\udfff" for character in name):
            raise _error(path, f"vocab names {ascii(name)[:80]}, which is not text (half a character)")
        if not 0 <= row < rows:
            raise _error(path, f"vocab maps {short(name)} to row {short(row)}, but there are {rows:,}")
    return vocabulary


def _arguments(path: Path, arguments: object) -> dict[str, Any]:
    if isinstance(arguments, argparse.Namespace):
        return dict(vars(arguments))
    if isinstance(arguments, dict):
        return arguments
    raise _error(path, f"its args are a {type(arguments).__name__}; settings by name are expected")


def _error(path: Path, reason: str) -> ModelDirectoryError:
    return ModelDirectoryError(f"{path}: {reason}; {_BETTER}")
