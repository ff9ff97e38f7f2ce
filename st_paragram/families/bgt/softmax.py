"""The softmax over the vocabulary: logits of all ids or of some, and their cross-entropy.

Logits are E_h h + E_z z, where h belongs to a token and z to its sentence. This is E [z; h], the
"Logit" injection of EMNLP 2020, with the part for z computed once per sentence.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

_CHUNK = 1 << 21  # logits at a time: few enough for the cache, enough to keep threads busy


@dataclass(frozen=True)
class LinearSoftmax:
    """The parts of the logits of N tokens in S sentences; either all parts for sentences are given,
    or none.
    """

    states: Tensor  # h, float (N, d)
    of_states: Tensor  # E_h, float (V, d)
    latents: Tensor | None = None  # z, float (S, k)
    of_latents: Tensor | None = None  # E_z, float (V, k)
    sentences: Tensor | None = None  # the sentence of each token, int64 (N,), in ascending order
    # added to the logits of all tokens, float (V,), without gradients
    offsets: Tensor | None = None

    def logits(self) -> Tensor:
        """Compute all logits at once, (N, V), for few tokens; `linear_cross_entropy` never stores
        all of them.
        """
        states, table = self.states, self.of_states
        if self.latents is not None and self.of_latents is not None and self.sentences is not None:
            # One product: a column of the table for each sentence, selected by a one-hot part of
            # the states.
            columns = torch.arange(len(self.latents), device=states.device)
            states = torch.cat([states, (self.sentences[:, None] == columns).to(states.dtype)], 1)
            table = torch.cat([table, self.of_latents @ self.latents.T], 1)
        return F.linear(states, table, self.offsets)

    def among(self, targets: Tensor, others: int) -> tuple[LinearSoftmax, Tensor]:
        """Restrict the softmax to all targets of a batch, int64 (N,), and a sample of `others` of
        the other ids.

        Each sampled id represents several ids; the logarithm of their number is added to its logit.
        So the normalizer is right in expectation, and exact for the batch's own, frequent ids
        (uniform sampling of Bengio and Senécal, 2008, outside the batch). Also returns the targets'
        positions among the ids.
        """
        own, places = targets.unique(return_inverse=True)
        left = torch.ones(len(self.of_states), dtype=torch.bool, device=targets.device)
        left[own] = False
        rest = left.nonzero()[:, 0]
        if others >= len(rest):
            return self, targets
        drawn = rest[torch.randperm(len(rest), device=rest.device)[:others]]
        ids = torch.cat([own, drawn])
        offsets = self.states.new_zeros(len(ids), dtype=torch.float32)
        offsets[len(own) :] = math.log(len(rest) / max(others, 1))
        of_latents = None if self.of_latents is None else self.of_latents[ids]
        smaller = LinearSoftmax(
            self.states, self.of_states[ids], self.latents, of_latents, self.sentences, offsets
        )
        return smaller, places


def linear_cross_entropy(
    layer: LinearSoftmax, targets: Tensor, smoothing: float = 0.0
) -> tuple[Tensor, Tensor]:
    """Sum the cross-entropy of tokens in nats, chunk by chunk: the table of all logits is never
    stored.

    `smoothing` is the share of the probability that label smoothing spreads over the V ids of the
    layer. Returns the sum, a scalar with gradients, and the sum without smoothing, which has no
    gradients; `targets` are int64 (N,).
    """
    parts = (layer.states, layer.of_states, layer.latents, layer.of_latents)
    return _Chunks.apply(layer, targets, smoothing, *parts)  # type: ignore[no-any-return]


class _Chunks(torch.autograd.Function):
    """Computes gradients in the forward pass, while a chunk's logits are available."""

    @staticmethod
    def forward(  # type: ignore[override]
        ctx: Any,
        layer: LinearSoftmax,
        targets: Tensor,
        smoothing: float,
        *parts: Any,
    ) -> tuple[Tensor, Tensor]:
        leaves: list[Any] = [
            part if part is None else part.detach().requires_grad_() for part in parts
        ]
        wanted = [place for place, needed in enumerate(ctx.needs_input_grad[3:]) if needed]
        sums: list[Any] = [
            torch.zeros_like(leaf) if place in wanted else None for place, leaf in enumerate(leaves)
        ]
        size, entropies = max(1, _CHUNK // len(layer.of_states)), []
        for begin in range(0, len(targets), size):
            tokens, which, sentences = slice(begin, begin + size), slice(None), None
            if layer.sentences is not None:
                sentences = layer.sentences[tokens]
                which = slice(int(sentences[0]), int(sentences[-1]) + 1)
                sentences = sentences - sentences[0]
            places = (tokens, slice(None), which, slice(None))
            with torch.enable_grad():
                pairs = zip(leaves, places, strict=True)
                chunk: list[Any] = [None if leaf is None else leaf[place] for leaf, place in pairs]
                logits = LinearSoftmax(
                    chunk[0], chunk[1], chunk[2], chunk[3], sentences, layer.offsets
                ).logits()
                logits = logits.to(torch.promote_types(logits.dtype, torch.float32))
                total = F.cross_entropy(
                    logits, targets[tokens], reduction="sum", label_smoothing=smoothing
                )
            if wanted:
                gradients = torch.autograd.grad(total, [chunk[place] for place in wanted])
                for place, gradient in zip(wanted, gradients, strict=True):
                    sums[place][places[place]] += gradient
            total, logits = total.detach(), logits.detach()
            of_targets = logits.gather(1, targets[tokens, None])[:, 0]
            plain = total + smoothing * (logits.mean(1) - of_targets).sum() if smoothing else total
            entropies.append(torch.stack([total, plain]))
        ctx.gradients = sums
        total, plain = torch.stack(entropies).sum(0)
        ctx.mark_non_differentiable(plain)
        return total, plain

    @staticmethod
    def backward(ctx: Any, scale: Tensor, _: Tensor) -> tuple[Tensor | None, ...]:  # type: ignore[override]
        return (
            None,
            None,
            None,
            *(None if gradient is None else gradient * scale for gradient in ctx.gradients),
        )
