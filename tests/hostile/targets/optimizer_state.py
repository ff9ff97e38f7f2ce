"""States of `RowLazyAdam` with other numbers in them: refused in one line, or used within their arrays."""

from __future__ import annotations

import copy

import numpy as np
import torch

from hostile.arrays import extreme
from st_paragram.core.native import kernels
from st_paragram.errors import ParagramError
from st_paragram.learning.losses.margin_hard_negative import margin_loss
from st_paragram.learning.modules.mean_pool import _SparseMean
from st_paragram.learning.training.mega_batch.compiled_step import CompiledStep
from st_paragram.learning.training.mega_batch.mega_batch import MegaBatchTexts
from st_paragram.learning.training.mega_batch.schedule import MegaBatch
from st_paragram.learning.training.row_lazy_adam import RowLazyAdam

TRIES, QUICK = 5_000, 30

_ROWS, _DIM, _PAIRS, _MORE = 60, 4, 10, 5
_COUNTERS, _ARRAYS = ("step", "moves_from"), ("exp_avg", "exp_avg_sq", "last_step", "moves")


def prepare(folder):
    """States after few steps, after more, and after so many that all rows were woken; each with the weights to come."""
    states, rng, (table, optimizer) = [], np.random.default_rng(0), _fresh()
    step = _stepper(table, optimizer)
    batches = [_batch(rng) for _ in range(100)]
    for steps in (12, 150, 4300):
        while (taken := int(optimizer.state_of(table)["step"])) < steps:
            step(*batches[taken % len(batches)])
        state = copy.deepcopy(optimizer.state_dict())
        states.append((state, _continued(state)))
    return states


def attempt(shared, rng, folder):
    """Damage a state and resume from it."""
    state, expected = shared[rng.integers(len(shared))]
    state = copy.deepcopy(state)
    if rng.random() < 0.3:
        return _changed_in_place(state, rng)
    for _ in range(rng.integers(3)):
        _damage_values(state["state"][0], rng)
    return "unharmed" if torch.equal(_continued(state), expected) else "other weights"


def _fresh():
    table = torch.nn.Parameter(torch.randn(_ROWS, _DIM, generator=torch.Generator().manual_seed(0)))
    return table, RowLazyAdam([table], 1e-2)


def _batch(rng):
    """Sentences of rows, some of which come often and others rarely, and the columns of a step."""
    counts = rng.integers(1, 6, 2 * _PAIRS)
    ids = np.minimum(rng.zipf(1.4, counts.sum()), _ROWS - 1) - 1  # the last row never comes
    offsets = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    s = rng.integers(0, _PAIRS, 4)
    columns = [s, s + _PAIRS, rng.integers(_PAIRS, 2 * _PAIRS, 4), rng.integers(0, 2 * _PAIRS, 4)]
    return MegaBatchTexts(MegaBatch(0, 0, 1, 1), ids.astype(np.int32), offsets), np.stack(columns)


def _stepper(table, optimizer):
    """What makes a step on a batch."""

    def by_torch(texts, columns):
        ids, offsets = (torch.from_numpy(array) for array in texts.take(columns.reshape(-1)))
        optimizer.catch_up(table, ids.long())
        optimizer.zero_grad()
        margin_loss(*_SparseMean.apply(table, ids.long(), offsets).view(4, -1, _DIM), 0.4).backward()
        optimizer.step()

    return by_torch if kernels() is None else CompiledStep(optimizer, table, 0.4).train


def _continued(state):
    """The weights some steps after a state."""
    table, optimizer = _fresh()
    optimizer.load_state_dict(copy.deepcopy(state))
    rng, step = np.random.default_rng(99), _stepper(table, optimizer)
    for _ in range(_MORE):
        step(*_batch(rng))
    optimizer.catch_up_all()
    return table.detach()


def _changed_in_place(state, rng):
    """A state that passes when it is loaded and changes afterwards: nothing outside its arrays is read or written."""
    table, optimizer = _fresh()
    optimizer.load_state_dict(state)
    step = _stepper(table, optimizer)
    step(*_batch(rng))
    for _ in range(3):
        name = ("last_step", "last_step", *_COUNTERS)[rng.integers(4)]
        values = optimizer.state[table][name].view(-1)
        values[rng.integers(len(values))] = int(extreme(np.dtype(np.int64), rng))
        try:
            step(*_batch(rng))
        except ParagramError:
            return "changed in place: refused"
    return "changed in place: done"


def _damage_values(arrays, rng):
    """Numbers become extremes, or a little other ones; or bits of them change."""
    name = (*_ARRAYS, *_ARRAYS, *_COUNTERS)[rng.integers(10)]
    values = arrays[name].view(-1)
    begin = int(rng.integers(len(values)))
    part = values[begin : begin + int(rng.integers(1, 20))]
    how = rng.integers(3)
    if how == 0:
        part.fill_(np.asarray(extreme(part.numpy().dtype, rng)).item())
    elif how == 1:
        part += int(rng.choice([-1, 1, 7]))
    else:
        raw = part.numpy().view(np.uint8)
        raw[rng.integers(len(raw))] ^= np.uint8(1 << rng.integers(8))
