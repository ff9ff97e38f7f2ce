"""Weights next to a plain pipeline: safetensors files whose tensors and shapes are known before they are read."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor

from st_paragram.core.encoding.directory import file_of
from st_paragram.errors import ModelDirectoryError, refused
from st_paragram.learning.modules.compact_embedding import is_finite


def read_tensors(
    folder: Path, name: str, shapes: Mapping[str, tuple[int, ...]], whole: bool = True
) -> dict[str, Tensor]:
    """The tensors of a safetensors file; sizes are compared before any is read.

    Args:
        folder: a model directory.
        name: of the file.
        shapes: the tensors to read, and what shapes they must have.
        whole: refuse a file that holds others, too.

    Returns:
        float32 tensors on the CPU, finite, by name.

    Raises:
        ModelDirectoryError: the file is missing or damaged, or holds other tensors.
    """
    path = file_of(folder, name)
    what = "not the weights of this st_paragram model"
    with refused(ModelDirectoryError, path, what, "save it again", SafetensorError):
        with safe_open(path, "pt") as file:
            names = [key for key in file.keys() if whole or key in shapes]  # noqa: SIM118 - no mapping
            _check_shapes({key: tuple(file.get_slice(key).get_shape()) for key in names}, shapes)
            tensors = {key: file.get_tensor(key) for key in shapes}
        if not all(tensor.dtype == torch.float32 and is_finite(tensor) for tensor in tensors.values()):
            raise ValueError("other numbers than finite ones of float32")
    return tensors


def _check_shapes(found: Mapping[str, tuple[int, ...]], expected: Mapping[str, tuple[int, ...]]) -> None:
    for name in sorted(found.keys() | expected.keys()):
        if found.get(name) != expected.get(name):
            raise ValueError(f"{name} of shape {found.get(name)}, expected {expected.get(name)}")
