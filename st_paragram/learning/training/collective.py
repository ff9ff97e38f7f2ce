"""What the processes of torchrun or accelerate know together: sums over all of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import torch
import torch.distributed as dist
from torch import Tensor, nn

_MESSAGE = 1 << 25  # numbers of a message


def sum_over_processes(value: Tensor) -> None:
    """Put the sum over all processes into a tensor; nothing to do in a single one."""
    if _several():
        dist.all_reduce(value)


def any_process(flag: bool) -> bool:
    """Whether a flag is set in one of the processes."""
    if not _several():
        return flag
    count = torch.tensor(float(flag), device="cuda" if dist.get_backend() == "nccl" else "cpu")
    dist.all_reduce(count)
    return bool(count)


def gather_rows(share: Tensor, counts: bool, process: int, processes: int, rows: int) -> Tensor:
    """Put the rows of a batch together: process p of n has made rows p, p + n, p + 2n, ...

    Gradients flow into this process's rows alone: summed over processes, they are those of one that made all.

    Args:
        share: float (n, D), the rows that this process has made.
        counts: whether they are to be used; a process without rows must make one, and takes part.
        process: the number of this one.
        processes: how many there are.
        rows: of the batch.
    """
    whole = share.new_zeros(rows, share.shape[1]).detach()
    places = torch.arange(rows, device=share.device)[process::processes]
    if counts:
        whole[places] = share.detach()
    dist.all_reduce(whole)
    return whole.index_copy(0, places, share) if counts else whole + 0.0 * share.sum()


def sum_gradients(parameters: Iterable[nn.Parameter]) -> None:
    """Sum the gradients of all processes, so that each has those of the joined batch; nothing to do in a single one.

    A parameter that has no gradient here counts as zero: it may have one elsewhere.
    """
    if not _several():
        return
    for group in _messages([parameter for parameter in parameters if parameter.requires_grad]):
        message = torch.cat([_gradient(parameter).reshape(-1) for parameter in group])
        dist.all_reduce(message)
        for parameter, part in zip(group, message.split([each.numel() for each in group]), strict=True):
            parameter.grad = part.view_as(parameter).clone()


def _several() -> bool:
    return dist.is_available() and dist.is_initialized() and dist.get_world_size() > 1


def _gradient(parameter: nn.Parameter) -> Tensor:
    return torch.zeros_like(parameter) if parameter.grad is None else parameter.grad


def _messages(parameters: list[nn.Parameter]) -> Iterator[list[nn.Parameter]]:
    """Parameters in groups that have at most `_MESSAGE` numbers, or one parameter."""
    group: list[nn.Parameter] = []
    for parameter in parameters:
        if group and sum(each.numel() for each in group) + parameter.numel() > _MESSAGE:
            yield group
            group = []
        group.append(parameter)
    if group:
        yield group
