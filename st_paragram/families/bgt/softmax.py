"""The softmax over the vocabulary: logits of all ids or of some, and their cross-entropy.

Logits are E_h h + E_z z, where h belongs to a token and z to its sentence. This is E [z; h], the
"Logit" injection of EMNLP 2020 (appendix A), with the part for z computed once per sentence.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

_CHUNK = 1 << 21  # logits at a time: few enough for the cache, enough to keep threads busy
_TRAINED = ("states", "of_states", "latents", "of_latents")  # parts that can have gradients


@dataclass(frozen=True)
class LinearSoftmax:
    """The parts of the logits of N tokens in S sentences.

    The three parts for sentences are given together, or not at all.
    """

    states: Tensor  # h, float (N, d)
    of_states: Tensor  # E_h, float (V, d)
    latents: Tensor | None = None  # z, float (S, k)
    of_latents: Tensor | None = None  # E_z, float (V, k)
    sentences: Tensor | None = None  # the sentence of each token, int64 (N,), in ascending order
    # added to the logits of all tokens, float (V,), without gradients
    offsets: Tensor | None = None

    def logits(self) -> Tensor:
        """Compute all logits at once, (N, V), for few tokens; see also `linear_cross_entropy`."""
        states = self.states
        table = self.of_states
        if self.latents is not None and self.of_latents is not None and self.sentences is not None:
            # One product: a column of the table for each sentence, selected by a one-hot part of
            # the states.
            columns = torch.arange(len(self.latents), device=states.device)
            one_hot = (self.sentences[:, None] == columns).to(states.dtype)
            states = torch.cat([states, one_hot], 1)
            table = torch.cat([table, self.of_latents @ self.latents.T], 1)
        return F.linear(states, table, self.offsets)

    def among(self, targets: Tensor, others: int) -> tuple[LinearSoftmax, Tensor]:
        """Restrict the softmax to all targets of a batch and a sample of `others` of the other ids.

        Each sampled id represents several ids; the logarithm of their number is added to its logit.
        So the normalizer is right in expectation, and exact for the batch's own, frequent ids
        (uniform sampling of Bengio and Senécal, 2008, outside the batch). Targets are int64 (N,);
        their positions among the ids are also returned.
        """
        target_ids, places = targets.unique(return_inverse=True)
        is_other = torch.ones(len(self.of_states), dtype=torch.bool, device=targets.device)
        is_other[target_ids] = False
        other_ids = is_other.nonzero()[:, 0]
        if others >= len(other_ids):
            return self, targets
        order = torch.randperm(len(other_ids), device=other_ids.device)
        ids = torch.cat([target_ids, other_ids[order[:others]]])
        offsets = self.states.new_zeros(len(ids), dtype=torch.float32)
        offsets[len(target_ids) :] = math.log(len(other_ids) / max(others, 1))
        restricted = LinearSoftmax(
            states=self.states,
            of_states=self.of_states[ids],
            latents=self.latents,
            of_latents=None if self.of_latents is None else self.of_latents[ids],
            sentences=self.sentences,
            offsets=offsets,
        )
        return restricted, places


def linear_cross_entropy(
    layer: LinearSoftmax, targets: Tensor, smoothing: float = 0.0
) -> tuple[Tensor, Tensor]:
    """Sum the cross-entropy of tokens in nats, chunk by chunk, without storing all logits.

    `smoothing` is the share of the probability that label smoothing spreads over the V ids of the
    layer. Returns the sum, a scalar with gradients, and the sum without smoothing, which has no
    gradients; `targets` are int64 (N,).
    """
    return _Chunks.apply(  # type: ignore[no-any-return]
        layer,
        targets,
        smoothing,
        layer.states,
        layer.of_states,
        layer.latents,
        layer.of_latents,
    )


class _Chunks(torch.autograd.Function):
    """Computes gradients in the forward pass, while a chunk's logits are available."""

    @staticmethod
    def forward(  # type: ignore[override]
        ctx: Any,
        layer: LinearSoftmax,
        targets: Tensor,
        smoothing: float,
        *parts: Tensor | None,
    ) -> tuple[Tensor, Tensor]:
        leaves = {}
        gradients = {}
        needs_gradient = ctx.needs_input_grad[3:]
        for place, name in enumerate(_TRAINED):
            part = parts[place]
            if part is not None:
                leaves[name] = part.detach().requires_grad_()
            if part is not None and needs_gradient[place]:
                gradients[name] = torch.zeros_like(part)
        size = max(1, _CHUNK // len(layer.of_states))
        sums = []
        for begin in range(0, len(targets), size):
            spans = {"states": slice(begin, begin + size)}
            sentences = None
            if layer.sentences is not None:
                sentences = layer.sentences[begin : begin + size]
                spans["latents"] = slice(int(sentences[0]), int(sentences[-1]) + 1)
                sentences = sentences - sentences[0]
            chunk_targets = targets[begin : begin + size]
            with torch.enable_grad():
                chunk = dict(leaves)
                for name, span in spans.items():
                    chunk[name] = leaves[name][span]
                logits = LinearSoftmax(**chunk, sentences=sentences, offsets=layer.offsets).logits()
                logits = logits.to(torch.promote_types(logits.dtype, torch.float32))
                total = F.cross_entropy(
                    logits, chunk_targets, reduction="sum", label_smoothing=smoothing
                )
            if gradients:
                chunk_gradients = torch.autograd.grad(total, [chunk[name] for name in gradients])
                for name, gradient in zip(gradients, chunk_gradients, strict=True):
                    gradients[name][spans.get(name, slice(None))] += gradient
            total = total.detach()
            plain = total
            if smoothing:
                logits = logits.detach()
                target_logits = logits.gather(1, chunk_targets[:, None])[:, 0]
                plain = total + smoothing * (logits.mean(1) - target_logits).sum()
            sums.append(torch.stack([total, plain]))
        ctx.gradients = [gradients.get(name) for name in _TRAINED]
        total, plain = torch.stack(sums).sum(0)
        ctx.mark_non_differentiable(plain)
        return total, plain

    @staticmethod
    def backward(ctx: Any, scale: Tensor, _: Tensor) -> tuple[Tensor | None, ...]:  # type: ignore[override]
        scaled = [None if gradient is None else gradient * scale for gradient in ctx.gradients]
        return None, None, None, *scaled
