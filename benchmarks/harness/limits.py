"""What the machine can do, measured with torch alone: matrix products, memory, rows gathered at random."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F

from harness.channel import Channel
from st_paragram.learning.modules import huge_pages

_LEAST_SECONDS = 0.2  # of a round: what is quicker is repeated


def run(peer: str, arguments: dict[str, Any], channel: Channel) -> None:
    """Measure one limit; arguments: `mib`, the size of the memory that is walked through.

    Work is counted in operations (products) or bytes (memory; reads and writes both count).
    """
    work, do = FACTORIES[peer](arguments["mib"] << 20)
    started = time.perf_counter()
    do()
    repeats = 1 + int(_LEAST_SECONDS / max(time.perf_counter() - started, 1e-6))
    channel.ready()
    while channel.wait():
        started = time.perf_counter()
        for _ in range(repeats):
            do()
        channel.report(time.perf_counter() - started, work * repeats)


def _product(dtype: torch.dtype) -> tuple[float, Callable[[], Any]]:
    """A square product, of 2,048 rows where 512 are quick."""
    for size in (512, 2048):
        first, second = (torch.randn(size, size).to(dtype) for _ in range(2))
        out = torch.empty(size, size, dtype=dtype)
        started = time.perf_counter()
        torch.matmul(first, second, out=out)
        if time.perf_counter() - started > 0.05:
            break
    return 2.0 * size**3, lambda: torch.matmul(first, second, out=out)


def _copy(size: int) -> tuple[float, Callable[[], Any]]:
    first, second = huge_pages.empty((size // 4,)).fill_(1.0), huge_pages.empty((size // 4,)).fill_(0.0)
    return 2.0 * size, lambda: second.copy_(first)


def _read(size: int) -> tuple[float, Callable[[], Any]]:
    numbers = huge_pages.empty((size // 4,)).fill_(1.0)
    return float(size), lambda: numbers.sum()


def _gather(size: int, row: int) -> tuple[float, Callable[[], Any]]:
    """As many rows as the table has, drawn at random, written one after another."""
    table, rows = _table(size, row)
    out = huge_pages.empty(tuple(table.shape)).fill_(0.0)
    return 2.0 * size, lambda: torch.index_select(table, 0, rows, out=out)


def _sum(size: int, row: int) -> tuple[float, Callable[[], Any]]:
    """As many rows as the table has, drawn at random, sums of 16 written."""
    table, rows = _table(size, row)
    offsets = torch.arange(0, len(rows), 16)
    return size * (1 + 1 / 16), lambda: F.embedding_bag(rows, table, offsets, mode="sum")


def _table(size: int, row: int) -> tuple[torch.Tensor, torch.Tensor]:
    shape = (size // row, row // 4)
    generator = torch.Generator().manual_seed(0)
    return huge_pages.empty(shape).fill_(1.0), torch.randint(shape[0], (shape[0],), generator=generator)


FACTORIES: dict[str, Callable[[int], tuple[float, Callable[[], Any]]]] = {
    "product float32": lambda size: _product(torch.float32),
    "product bfloat16": lambda size: _product(torch.bfloat16),
    "copy": _copy,
    "read": _read,
    "gather 1 KiB": lambda size: _gather(size, 1 << 10),
    "gather 4 KiB": lambda size: _gather(size, 1 << 12),
    "sum 1 KiB": lambda size: _sum(size, 1 << 10),
    "sum 4 KiB": lambda size: _sum(size, 1 << 12),
}
