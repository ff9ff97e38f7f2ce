"""A large linear layer before a softmax whose input has a part of each token and a part of each sentence."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class LinearSoftmax:
    """The parts of the logits of N tokens of S sentences.

    Attributes:
        states: h, float (N, d).
        of_states: E_h, float (V, d).
        latents: z, float (S, k); None where the logits have no part of it.
        of_latents: E_z, float (V, k); None with `latents`.
        sentences: The sentence of each token, int64 (N,), never falling.
        offsets: What is added to the logits of all tokens, float (V,), without gradients; None for nothing.
    """

    states: Tensor
    of_states: Tensor
    latents: Tensor | None = None
    of_latents: Tensor | None = None
    sentences: Tensor | None = None
    offsets: Tensor | None = None

    def logits(self) -> Tensor:
        """All logits at once, (N, V): for few tokens; `linear_cross_entropy` never makes them all."""
        logits = self.states @ self.of_states.T
        if self.offsets is not None:
            logits = logits + self.offsets
        if self.latents is None or self.of_latents is None:
            return logits
        return logits + (self.latents @ self.of_latents.T)[self.sentences]

    def among(self, targets: Tensor, others: int) -> tuple[LinearSoftmax, Tensor]:
        """The same softmax over all targets of a batch and a sample of the other ids.

        The sampled ids stand for all others, by the logarithm of how many each stands for: what a softmax divides by is
        then right in expectation, with the part of the batch's own ids, which are the frequent ones, exact (uniform
        sampling of Bengio and Senécal, 2008, outside the batch).

        Args:
            targets: int64 (N,).
            others: ids to draw, without replacement; with as many as there are, the softmax stays as it is.

        Returns:
            The smaller layer, and the targets' places in it, int64 (N,).
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
        smaller = LinearSoftmax(self.states, self.of_states[ids], self.latents, of_latents, self.sentences, offsets)
        return smaller, places
