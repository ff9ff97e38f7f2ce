"""The cross-entropy of a large linear layer, some rows at a time: the table of all logits never exists.

Logits are E_h h + E_z z, where h belongs to a token and z to its sentence. That is E [z; h], the "Logit" injection of
EMNLP 2020, with the part of z computed once a sentence. Gradients are made while the logits are there, in the forward
pass.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor

from st_paragram.families.bgt.linear_softmax import LinearSoftmax

_CHUNK = 1 << 21  # logits at a time: few enough to stay in a cache, enough to keep threads busy


def linear_cross_entropy(
    layer: LinearSoftmax, targets: Tensor, smoothing: float = 0.0, dtype: torch.dtype | None = None
) -> tuple[Tensor, Tensor]:
    """The cross-entropy of tokens, summed.

    Args:
        layer: the parts of the logits.
        targets: ids below V, int64 (N,).
        smoothing: share of the probability that label smoothing spreads over the V ids of the layer.
        dtype: what matrices are multiplied in; if not given, autocast's where it is on, or else that of the states.

    Returns:
        The sum in nats, a scalar that has gradients; and the same without smoothing, which has none.
    """
    inputs = (layer.states, layer.of_states, layer.latents, layer.of_latents)
    device = layer.states.device.type
    if dtype is None:
        dtype = torch.get_autocast_dtype(device) if torch.is_autocast_enabled(device) else layer.states.dtype
    constants = (layer.sentences, layer.offsets, targets, smoothing, dtype)
    return _LinearCrossEntropy.apply(*inputs, *constants)


class _LinearCrossEntropy(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, *inputs: Any) -> tuple[Tensor, Tensor]:  # noqa: ANN401
        *parts, targets, smoothing, dtype = inputs
        work = _Work(LinearSoftmax(*parts), targets, smoothing, dtype, any(ctx.needs_input_grad))
        with torch.autocast(targets.device.type, enabled=False):
            for begin, end in _chunks(len(targets), len(parts[1])):
                work.add(begin, end)
        ctx.gradients = work.gradients
        ctx.mark_non_differentiable(work.plain)
        return work.total, work.plain

    @staticmethod
    def backward(ctx: Any, scale: Tensor, _: Tensor) -> tuple[Tensor | None, ...]:  # type: ignore[override] # noqa: ANN401
        wanted = zip(ctx.gradients, ctx.needs_input_grad, strict=False)
        found = (gradient * scale if gradient is not None and needed else None for gradient, needed in wanted)
        return *found, None, None, None, None, None


def _chunks(tokens: int, vocabulary: int) -> Iterator[tuple[int, int]]:
    size = max(1, _CHUNK // vocabulary)
    return ((begin, min(begin + size, tokens)) for begin in range(0, tokens, size))


class _Work:
    """The sums so far.

    What belongs to the sentences of some tokens is appended to the table, a column each, and the states record to which
    of them a token belongs: one product then makes the logits, and one the gradients of both.

    Attributes:
        total: The cross-entropy, a scalar.
        plain: The same without label smoothing.
        gradients: Those of states, their table, latents and theirs; None where there is none.
    """

    def __init__(
        self, layer: LinearSoftmax, targets: Tensor, smoothing: float, dtype: torch.dtype, with_gradients: bool
    ) -> None:
        parts = (layer.states, layer.of_states, layer.latents, layer.of_latents)
        self.states, self.of_states, self.latents, self.of_latents = (
            None if part is None else part.detach().to(dtype) for part in parts
        )
        if layer.offsets is not None:  # an additional column of the table, which every token has
            self.of_states = torch.cat([layer.of_states.detach(), layer.offsets[:, None]], 1).to(dtype)
            self.states = torch.cat([layer.states.detach(), layer.states.new_ones(len(targets), 1)], 1).to(dtype)
        self.sentences, self.targets, self.smoothing = layer.sentences, targets, smoothing
        exact = torch.promote_types(layer.states.dtype, torch.float32)
        self.total = torch.zeros((), dtype=exact, device=targets.device)
        self.plain = torch.zeros_like(self.total)
        self.gradients = [
            torch.zeros_like(part, dtype=exact) if part is not None and with_gradients else None for part in parts
        ]

    def add(self, begin: int, end: int) -> None:
        """Add the tokens from `begin` to `end`."""
        assert self.states is not None and self.of_states is not None
        states, table, first = self.states[begin:end], self.of_states, 0
        if self.sentences is not None and self.latents is not None and self.of_latents is not None:
            rows = self.sentences[begin:end]
            first, last = int(rows[0]), int(rows[-1]) + 1
            which = torch.zeros(end - begin, last - first, dtype=states.dtype, device=states.device)
            which.scatter_(1, (rows - first)[:, None], 1.0)
            states = torch.cat([states, which], 1)
            table = torch.cat([table, self.of_latents @ self.latents[first:last].T], 1)
        change = self._entropy(states @ table.T, self.targets[begin:end])
        if self.gradients[0] is not None:
            self._add_gradients(change, states, begin, end, first)

    def _entropy(self, logits: Tensor, targets: Tensor) -> Tensor:
        """Add the cross-entropy of (n, V) logits; returns what they must change by, the gradient."""
        probabilities = logits.softmax(1)
        # The largest probability is at least 1 / V, so that its logarithm is always a number.
        norms = logits.amax(1).to(self.total.dtype) - probabilities.amax(1).to(self.total.dtype).log()
        plain = (norms - logits.gather(1, targets[:, None])[:, 0]).sum()
        self.plain += plain
        self.total += (1 - self.smoothing) * plain
        if self.smoothing:
            self.total += self.smoothing * (norms - logits.mean(1, dtype=self.total.dtype)).sum()
            probabilities -= self.smoothing / logits.shape[1]
        of_targets = probabilities.gather(1, targets[:, None]) - (1 - self.smoothing)
        return probabilities.scatter_(1, targets[:, None], of_targets)  # scatter_add_ converts all of a bfloat16

    def _add_gradients(self, change: Tensor, states: Tensor, begin: int, end: int, first: int) -> None:
        of_states, of_tables, of_latents, of_latent_tables = self.gradients
        assert of_states is not None and of_tables is not None and self.of_states is not None
        dim = of_tables.shape[1]
        of_states[begin:end] = change @ self.of_states[:, :dim]
        both = change.T @ states
        of_tables += both[:, :dim]
        if of_latents is None or of_latent_tables is None or self.latents is None or self.of_latents is None:
            return
        sums = both[:, self.of_states.shape[1] :]
        last = first + sums.shape[1]
        of_latents[first:last] += sums.T @ self.of_latents
        of_latent_tables += sums @ self.latents[first:last]
