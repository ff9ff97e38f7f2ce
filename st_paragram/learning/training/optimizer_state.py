"""Whether what a checkpoint has of an optimizer is what this run would have written: digests do not tell that."""

from __future__ import annotations

from typing import Any

import torch

_MAY_DIFFER = {"params", "lr", "initial_lr"}

#: The options of each of an optimizer's groups.
Options = list[dict[str, Any]]


def options_of(optimizer: torch.optim.Optimizer) -> Options:
    """The options that a checkpoint must not change: all but the learning rate."""
    return [{name: group[name] for name in group.keys() - _MAY_DIFFER} for group in optimizer.param_groups]


def check_optimizer(optimizer: torch.optim.Optimizer, options: Options) -> None:
    """Look at an optimizer after its state was loaded.

    Args:
        optimizer: any; `RowLazyAdam` checks its state itself.
        options: as they were before.

    Raises:
        ValueError: it has other options, or moments that do not suit its parameters, which torch's kernels trust.
    """
    if options_of(optimizer) != options:
        raise ValueError("an optimizer with other options")
    for parameter, state in optimizer.state.items():
        for name in {"exp_avg", "exp_avg_sq"} & state.keys():
            if state[name].shape != parameter.shape:
                raise ValueError(f"{name} is not of the shape {tuple(parameter.shape)}")
