"""Whether what a checkpoint has of optimiser and schedule is what this run would have written."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

_MAY_DIFFER = {"params", "lr", "initial_lr"}

#: The options of each of an optimiser's groups.
Options = list[dict[str, Any]]


def options_of(optimizer: torch.optim.Optimizer) -> Options:
    """The options that a checkpoint must not change: all but the learning rate."""
    return [{name: group[name] for name in group.keys() - _MAY_DIFFER} for group in optimizer.param_groups]


def check_optimizer(optimizer: torch.optim.Optimizer, options: Options) -> None:
    """Look at an optimiser after its state was loaded.

    Args:
        optimizer: any; `RowLazyAdam` checks its state itself.
        options: as they were before.

    Raises:
        ValueError: it has other options, or the state does not suit its parameters.
    """
    found = options_of(optimizer)
    if found != options or not _alike(found, options):  # for 0 is equal to False, but does not do for it
        raise ValueError("an optimizer with other options")
    if not all(_is_rate(group[name]) for group in optimizer.param_groups for name in ("lr", "initial_lr")):
        raise ValueError("a learning rate that is no number from 0 up")
    if isinstance(optimizer, torch.optim.Adam | torch.optim.AdamW):
        for parameter in (parameter for group in optimizer.param_groups for parameter in group["params"]):
            _check_adam(optimizer.state.get(parameter, {}), parameter)


def _check_adam(state: Mapping[str, Any], parameter: Tensor) -> None:
    """What torch takes as it comes."""
    if state and state.keys() - {"max_exp_avg_sq"} != {"step", "exp_avg", "exp_avg_sq"}:
        raise ValueError("not the state of Adam")
    for name, value in state.items():
        shape = torch.Size([]) if name == "step" else parameter.shape
        if not isinstance(value, Tensor) or not value.is_floating_point() or value.shape != shape:
            raise ValueError(f"{name} is not a tensor of floats of shape {tuple(shape)}")


def check_scheduler(state: Any, expected: Mapping[str, Any]) -> None:  # noqa: ANN401 - whatever was loaded
    """Compare the state of a learning-rate schedule with one of this run.

    Raises:
        ValueError: it has other names, or values of other types.
    """
    if not _alike(state, expected):
        raise ValueError("not the state of this learning-rate schedule")


def _is_rate(value: object) -> bool:
    number = value.item() if isinstance(value, Tensor) and value.numel() == 1 else value
    return isinstance(number, int | float) and math.isfinite(number) and number >= 0


def _alike(found: Any, expected: Any) -> bool:  # noqa: ANN401
    """Whether a value is built as another is, of values of the same types; all numbers finite."""
    if isinstance(expected, Mapping):
        return (
            isinstance(found, Mapping)
            and found.keys() == expected.keys()
            and all(_alike(found[name], value) for name, value in expected.items())
        )
    if isinstance(expected, list | tuple):
        same = type(found) is type(expected) and len(found) == len(expected)
        return same and all(map(_alike, found, expected))
    if isinstance(expected, int | float) and not isinstance(expected, bool):
        return type(found) in (int, float) and math.isfinite(found)
    return type(found) is type(expected)
