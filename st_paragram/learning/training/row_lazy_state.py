"""What the saved state of `RowLazyAdam` must be to be loaded into an optimizer of the same tables.

That it is what was written, the digest in the checkpoint's list of files has proven. The compiled step checks whatever
could lead it outside its arrays.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from numbers import Real
from typing import Any

import torch
from torch import Tensor

from st_paragram.errors import SettingsError

_LEFT = 1e-12  # of a row's momentum at the end of the window
_SMALLEST_BETA = 1e-3


def converges(lr: Any, betas: Any, eps: Any) -> bool:  # noqa: ANN401 - whatever a checkpoint holds
    """Whether these are settings of an Adam that converges, and that can sleep."""
    if not (isinstance(betas, Sequence) and len(betas) == 2):
        return False
    numbers = (lr, eps, *betas)
    if not all(isinstance(number, Real) and math.isfinite(number) for number in numbers):
        return False
    return lr >= 0 and eps > 0 and all(0 <= beta < 1 for beta in betas) and betas[1] > 0 and _decay(betas) < 1


def window(betas: Sequence[float]) -> int:
    """Steps after which what is left of a row's momentum, (β1 / sqrt(β2))^steps, is below float32's resolution."""
    return math.ceil(math.log(_LEFT) / math.log(_decay(betas)))


def _decay(betas: Sequence[float]) -> float:
    return max(betas[0], _SMALLEST_BETA) / betas[1] ** 0.5


def check_saved(saved: Mapping[str, Any], tables: Sequence[Tensor], groups: list[list[int]], width: int) -> None:
    """Refuse the state of other tables, or with counters that lead outside its arrays.

    Args:
        saved: what `RowLazyAdam.state_dict` returned.
        tables: the optimizer's parameters, (V, D) each.
        groups: numbers of the tables in each of its groups.
        width: columns of `moves`.

    Raises:
        SettingsError: says what is wrong.
    """
    if [group["params"] for group in saved["param_groups"]] != groups or len(saved["tables"]) != len(tables):
        raise _unusable("it is not that of the same tables")
    for group in saved["param_groups"]:
        if not converges(group["lr"], group["betas"], group["eps"]):
            raise _unusable("its settings are not those of an Adam that converges")
    for index, (table, values) in enumerate(zip(tables, saved["tables"], strict=True)):
        _check_arrays({"the table": values}, {"the table": (table.shape, table.dtype)})
        if state := saved["state"].get(index):
            _check_state(state, table, width)


def _check_state(state: Mapping[str, Tensor], table: Tensor, width: int) -> None:
    none, rows = torch.Size([]), table.shape[:1]
    kinds = {
        "exp_avg": (table.shape, table.dtype),
        "exp_avg_sq": (table.shape, table.dtype),
        "last_step": (rows, torch.int64),
        "step": (none, torch.int64),
        "moves": (torch.Size([4, width]), torch.float64),
        "moves_from": (none, torch.int64),
    }
    _check_arrays(state, kinds)
    step, begin = int(state["step"]), int(state["moves_from"])
    if not 0 <= begin <= step <= begin + width:
        raise _unusable(f"moves_from is {begin} at step {step}")


def _check_arrays(arrays: Mapping[str, Tensor], kinds: Mapping[str, tuple[torch.Size, torch.dtype]]) -> None:
    for name, (shape, dtype) in kinds.items():
        if (arrays[name].shape, arrays[name].dtype) != (shape, dtype):
            found = f"{arrays[name].dtype} {list(arrays[name].shape)}"
            raise _unusable(f"{name} is {found}, not {dtype} {list(shape)}")


def _unusable(seen: str) -> SettingsError:
    return SettingsError(f"the optimizer's state cannot be used: {seen}; resume from another checkpoint")
