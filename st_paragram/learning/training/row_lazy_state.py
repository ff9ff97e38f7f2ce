"""What the state of `RowLazyAdam` can be: it comes from a disk, and with wrong counters rows would move by wrong steps.

No steps of the optimiser, by torch or compiled, lead to a state that `check_state` refuses. A damaged state may still
pass, such as one in which a moment has slightly another value: only a digest of the file tells.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from numbers import Real
from typing import Any

import torch
from torch import Tensor

from st_paragram.errors import SettingsError
from st_paragram.learning.modules.compact_embedding import is_finite

_ROWS = 4096  # rows looked at in one go
_MOST_STEPS = 2**53  # which float64 counts
_LEFT = 1e-12  # of a row's momentum at the end of the window
_SMALLEST_BETA = 1e-3
_ROUNDING = 1e-6


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


def check_saved(saved: Any, tables: Sequence[Tensor], groups: list[list[int]], width: int) -> None:  # noqa: ANN401
    """Refuse what `RowLazyAdam.state_dict` cannot have returned.

    Args:
        saved: what was read.
        tables: the optimiser's parameters, (V, D) each.
        groups: numbers of the tables in each of its groups.
        width: columns of `moves`.

    Raises:
        SettingsError: says what is wrong.
    """
    _refuse(_group_defects(saved, groups))
    _refuse(_table_defects(saved["tables"], tables))
    _refuse(_state_defects(saved["state"], len(tables)))
    betas = {index: group["betas"] for group in saved["param_groups"] for index in group["params"]}
    for index, state in saved["state"].items():
        if state:
            check_state(state, tables[index], betas[index], width)


def check_state(state: dict[str, Any], table: Tensor, betas: Sequence[float], width: int) -> None:
    """Refuse a table's state that no steps can have led to.

    Args:
        state: what `RowLazyAdam.state_of` describes.
        table: float (V, D).
        betas: of Adam.
        width: columns of `moves`, after which all rows are woken.

    Raises:
        SettingsError: says what is wrong.
    """
    _refuse(_kind_defects(state, table, width))
    _refuse(_counter_defects(state, betas, width))
    _refuse(_sum_defects(state["moves"], int(state["step"]) - int(state["moves_from"])))
    _refuse(_moment_defects(state, betas))


def _refuse(defects: Iterable[str]) -> None:
    for defect in defects:
        raise SettingsError(f"the optimiser's state is damaged: {defect}; resume from another checkpoint")


def _group_defects(saved: Any, expected: list[list[int]]) -> Iterator[str]:  # noqa: ANN401
    if not isinstance(saved, dict) or not {"state", "param_groups", "tables"} <= set(saved):
        yield "it lacks state, param_groups or tables"
    groups = saved["param_groups"]
    if not (isinstance(groups, list) and all(isinstance(group, dict) for group in groups)):
        yield "param_groups is no list of groups"
    if repr([group.get("params") for group in groups]) != repr(expected):
        yield "it is not that of the same tables"
    for group in groups:
        settings = {name: group.get(name) for name in ("lr", "betas", "eps")}
        if not converges(**settings):
            yield ", ".join(f"{name} {_brief(value)}" for name, value in settings.items())


def _table_defects(saved: Any, tables: Sequence[Tensor]) -> Iterator[str]:  # noqa: ANN401
    if not (isinstance(saved, list) and len(saved) == len(tables)):
        yield f"it does not hold {len(tables)} tables"
    for table, values in zip(tables, saved, strict=True):
        yield from _array_defects("the table", values, tuple(table.shape), table.dtype)
        if not is_finite(values):
            yield "the table has components that are not finite"


def _state_defects(states: Any, tables: int) -> Iterator[str]:  # noqa: ANN401
    if not (isinstance(states, dict) and all(isinstance(state, dict) for state in states.values())):
        yield "state is no dictionary of states"
    if not all(type(index) is int and 0 <= index < tables for index in states):
        yield f"state names other tables than 0 ... {tables - 1}"


def _kind_defects(state: dict[str, Any], table: Tensor, width: int) -> Iterator[str]:
    """What is wrong with names, shapes and types."""
    shape, rows = tuple(table.shape), (len(table),)
    kinds: dict[str, tuple[tuple[int, ...], torch.dtype]] = {
        "exp_avg": (shape, table.dtype),
        "exp_avg_sq": (shape, table.dtype),
        "last_step": (rows, torch.int64),
        "step": ((), torch.int64),
        "moves": ((4, width), torch.float64),
        "moves_from": ((), torch.int64),
    }
    if set(state) != set(kinds):
        yield f"it holds {_brief(sorted(map(str, state)))}, not {', '.join(kinds)}"
    for name, (expected, dtype) in kinds.items():
        yield from _array_defects(name, state[name], expected, dtype)


def _array_defects(name: str, value: Any, shape: tuple[int, ...], dtype: torch.dtype) -> Iterator[str]:  # noqa: ANN401
    if not isinstance(value, Tensor) or value.is_nested or value.layout is not torch.strided or value.is_meta:
        yield f"{name} is no array"
    found, expected = _kind(value.dtype, value.shape), _kind(dtype, shape)
    if found != expected:
        yield f"{name} is {found}, not {expected}"


def _kind(dtype: torch.dtype, shape: Sequence[int]) -> str:
    return f"{str(dtype).removeprefix('torch.')} {list(shape)}"


def _counter_defects(state: dict[str, Any], betas: Sequence[float], width: int) -> Iterator[str]:
    """What is wrong with steps.

    All rows are woken at the steps width, 2 * width, ..., the first columns of `moves` from there on; and in each of
    the first steps, by the end of which every row touched before was awake (see `RowLazyAdam`). The last step has
    touched some row.
    """
    step, begin, last = int(state["step"]), int(state["moves_from"]), state["last_step"]
    if not 0 <= step < _MOST_STEPS:
        yield f"step is {step}"
    if begin != max(step - 1, 0) // width * width:
        yield f"moves_from is {begin} at step {step}"
    touched = last[last != 0]
    if len(touched) == 0:
        return
    first, latest = int(touched.min()), int(touched.max())
    earliest = max(begin, min(step, window(betas) // 8) - 1, 1)
    if first < earliest or latest != step:
        yield f"last_step goes from {first} to {latest} where it can go from {earliest} to {step} only"


def _sum_defects(moves: Tensor, steps: int) -> Iterator[str]:
    """What is wrong with the moments 0..3 of positive measures, one for each of the steps so far; zeros follow."""
    if not is_finite(moves) or bool((moves < 0).any()):
        yield "moves has numbers below zero, or that are not finite"
    if bool(moves[:, steps:].any()):
        yield "moves has sums of steps that are yet to come"
    zeroth, first, second, third = moves
    for middle, low, high in ((first, zeroth, second), (second, first, third)):  # by Cauchy and Schwarz
        if not bool((middle**2 <= low * high * (1 + _ROUNDING) + torch.finfo(moves.dtype).tiny).all()):
            yield "moves has sums that no steps add up to"


def _moment_defects(state: dict[str, Any], betas: Sequence[float]) -> Iterator[str]:
    """What is wrong with moments: m² <= c * v by Cauchy and Schwarz, c = (1 - β1)² / (1 - β2) / (1 - β1² / β2)."""
    (beta1, beta2), (moments, squares) = betas, (state["exp_avg"], state["exp_avg_sq"])
    # Four times as much for rounding; and squares underflow where moments do not.
    most, tiny = 4 * (1 - beta1) ** 2 / (1 - beta2) / (1 - beta1**2 / beta2), 1e-30
    for name, values in (("exp_avg", moments), ("exp_avg_sq", squares)):
        if not is_finite(values):
            yield f"{name} has components that are not finite"
    for part in range(0, len(moments), _ROWS):
        moment, square = moments[part : part + _ROWS], squares[part : part + _ROWS]
        if bool((square < 0).any()):
            yield "exp_avg_sq has components below zero"
        # In fewer bits than float32's, small shares of a gradient are lost in the square.
        if moment.dtype in (torch.float32, torch.float64) and bool((moment**2 > square * most + tiny).any()):
            yield "exp_avg has components too large for those of exp_avg_sq"
        untouched = state["last_step"][part : part + _ROWS] == 0
        if bool((moment.any(dim=1) | square.any(dim=1))[untouched].any()):
            yield "last_step is 0 where exp_avg or exp_avg_sq are not"


def _brief(value: Any) -> str:  # noqa: ANN401
    """A value as text of one short line."""
    text = " ".join(repr(value).split())
    return text if len(text) <= 60 else text[:57] + "..."
