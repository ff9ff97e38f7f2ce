"""Damaged states of `RowLazyAdam`: refused in one line, or the same weights by torch and by the compiled step."""

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
    step = _stepper(table, optimizer, compiled=kernels() is not None)
    batches = [_batch(rng) for _ in range(100)]
    for steps in (12, 150, 4300):
        while (taken := int(optimizer.state_of(table)["step"])) < steps:
            step(*batches[taken % len(batches)])
        state = copy.deepcopy(optimizer.state_dict())
        states.append((state, [_continued(state, compiled) for compiled in _PATHS]))
    return states


def attempt(shared, rng, folder):
    """Damage a state and resume from it."""
    state, expected = shared[rng.integers(len(shared))]
    state = copy.deepcopy(state)
    if rng.random() < 0.3:
        return _changed_in_place(state, rng)
    for _ in range(rng.integers(3)):
        _damage_values(state["state"][0], rng)
    if rng.random() < 0.5:
        _damage_structure(state, rng)
    found = [_outcome(state, compiled) for compiled in _PATHS]
    if any(isinstance(result, str) for result in found):
        return found[0] if len({str(result) for result in found}) == 1 else f"wrong: one path says {found}"
    if all(torch.equal(result, weights) for result, weights in zip(found, expected, strict=True)):
        return "unharmed"
    return "other weights" if _alike(*found) else f"wrong: the paths differ by {(found[0] - found[1]).abs().max()}"


_PATHS = (False, True) if kernels() is not None else (False, False)


def _alike(first, second):
    """Whether weights are the same but for rounding, which in float32 is relative to the largest."""
    return torch.allclose(first, second, rtol=1e-4, atol=1e-4 * float(first.abs().max()), equal_nan=True)


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


def _stepper(table, optimizer, compiled):
    """What makes a step on a batch."""

    def by_torch(texts, columns):
        ids, offsets = (torch.from_numpy(array) for array in texts.take(columns.reshape(-1)))
        optimizer.catch_up(table, ids.long())
        optimizer.zero_grad()
        margin_loss(*_SparseMean.apply(table, ids.long(), offsets).view(4, -1, _DIM), 0.4).backward()
        optimizer.step()

    return CompiledStep(optimizer, table, 0.4).train if compiled else by_torch


def _continued(state, compiled):
    """The weights some steps after a state."""
    table, optimizer = _fresh()
    optimizer.load_state_dict(copy.deepcopy(state))
    rng, step = np.random.default_rng(99), _stepper(table, optimizer, compiled)
    for _ in range(_MORE):
        step(*_batch(rng))
    optimizer.catch_up_all()
    return table.detach()


def _outcome(state, compiled):
    try:
        return _continued(state, compiled)
    except ParagramError as error:
        return "refused" if "\n" not in str(error) else f"wrong: {error}"


def _changed_in_place(state, rng):
    """A state that passes when it is loaded and changes afterwards: nothing outside its arrays is read or written."""
    table, optimizer = _fresh()
    optimizer.load_state_dict(state)
    step = _stepper(table, optimizer, compiled=kernels() is not None)
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


def _damage_structure(state, rng):
    """Make a state dict another one than those of the optimiser."""
    arrays, group = state["state"][0], state["param_groups"][0]
    kind = rng.integers(5)
    if kind < 2:
        name = (*_ARRAYS, *_COUNTERS)[rng.integers(6)]
        arrays[name] = _misshapen(arrays[name], rng)
    elif kind == 2:
        name = ("lr", "betas", "eps", "params")[rng.integers(4)]
        wrong = (None, -1.0, float("nan"), (0.9, 0.999, 0.9), (0.99, 0.5), "0.9", [], 1e-3, [[0]])
        group[name] = wrong[rng.integers(len(wrong))]
    elif kind == 3:
        state["tables"][0] = _misshapen(state["tables"][0], rng)
    else:
        owner = (state, arrays, group)[rng.integers(3)]
        name = list(owner)[rng.integers(len(owner))]
        owner.pop(name)
        if rng.random() < 0.5:
            owner[name] = (None, 3, "text", [1], {}, torch.zeros(2))[rng.integers(6)]


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


def _misshapen(value, rng):
    """An array cut, longer, turned, of another type, or none."""
    flat = value.reshape(-1)
    makers = (
        lambda: value[:-1] if value.ndim else value[None],
        lambda: value[..., :-1] if value.ndim else flat.repeat(2),
        lambda: torch.cat([value, value]) if value.ndim else value.double(),
        lambda: value.T.contiguous().T if value.ndim == 2 else value.clone(),  # the same, in another order of memory
        lambda: value.to((torch.int32, torch.float16, torch.float64, torch.bool, torch.complex64)[rng.integers(5)]),
        lambda: value.numpy(),
        lambda: value.to_sparse() if value.ndim else None,
        lambda: flat[:1].expand(value.shape) if value.ndim else flat,
        lambda: torch.empty_like(value, device="meta"),
        lambda: value.tolist(),
    )
    return makers[rng.integers(len(makers))]()
