"""Beam search: find the most probable sentences of a decoder, many at once.

As in fairseq (Ott et al., 2019), the best one-piece continuations of a sentence's beam are
considered at each step. Those that end are finished if they are among the best `beam`, and the best
`beam` others are continued. A sentence is done when it has `beam` finished hypotheses. The best
hypothesis has the highest log probability divided by a power of its length, including the end. With
a beam of 1, each piece is the most probable next piece.

A prefix is read again for each piece: decoders here have one layer, and the softmax costs more.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from st_paragram.families.bgt.latent_decoder import LatentDecoder

_NEVER = -math.inf


@dataclass(frozen=True)
class Hypothesis:
    """A generated sentence."""

    ids: tuple[int, ...]  # without the end id
    # log probability in nats, including the end, divided by the length to the power of the penalty
    score: float


def beam_search(
    decoder: LatentDecoder,
    latents: Tensor,
    end: int,
    writable: Tensor,
    beam: int = 5,
    max_length: int = 200,
    penalty: float = 1.0,
) -> list[Hypothesis]:
    """Find a likely sentence for each latent vector.

    Args:
        decoder: Decoder with the logits of V ids.
        latents: float (S, k).
        end: The id that begins and ends a sentence. A sentence has at least one other id.
        writable: Ids allowed in a sentence, bool (V,), on the device of `latents`. The probability
            of other ids, such as padding and unknown pieces, is lost; it is not redistributed.
        beam: Number of prefixes kept for each sentence.
        max_length: Maximum ids per sentence, without the end; the decoder reads one more id.
        penalty: The power of the length; 0 compares log probabilities without normalization.

    Returns:
        S hypotheses; a hypothesis without ids and with score -inf if nothing could be generated.
    """
    best = [Hypothesis((), _NEVER)] * len(latents)
    # The unfinished sentences: their numbers (S,), the log probabilities of their prefixes
    # (S, beam), the prefixes, which begin with the end id (S, beam, 1 + length), and the number of
    # finished hypotheses (S,).
    sentences = torch.arange(len(latents), device=latents.device)
    scores = latents.new_full((len(latents), beam), _NEVER, dtype=torch.float32)
    scores[:, 0] = 0
    prefixes = torch.full((len(latents), beam, 1), end, device=latents.device)
    finished = torch.zeros_like(sentences)
    for length in range(max_length + 1):
        if not len(sentences):
            break
        allowed = writable & (length < max_length)
        allowed[end] = length > 0
        prefix_latents = latents[sentences].repeat_interleave(beam, 0)
        logits = decoder.next_logits(prefixes.flatten(0, 1), prefix_latents)
        next_scores = logits.float().log_softmax(-1).masked_fill(~allowed, _NEVER)
        vocabulary = next_scores.shape[1]
        all_scores = (scores.reshape(-1, 1) + next_scores).view(len(sentences), -1)
        # Twice as many as prefixes, in falling order, so that enough of them do not end.
        scores, places = all_scores.topk(min(2 * beam, beam * vocabulary))
        parents = places // vocabulary
        ids = places % vocabulary

        ends = (ids == end) & scores.isfinite()
        ends_in_beam = ends[:, :beam]
        final_scores = scores[:, :beam] / (length + 1) ** penalty
        highest, columns = final_scores.masked_fill(~ends_in_beam, _NEVER).max(1)
        numbers = sentences.tolist()
        for row, score in enumerate(highest.tolist()):
            if score > best[numbers[row]].score:
                prefix = prefixes[row, parents[row, columns[row]], 1:]
                best[numbers[row]] = Hypothesis(tuple(prefix.tolist()), score)

        # the best continuations that do not end, in order
        kept = (ids == end).int().argsort(dim=1, stable=True)[:, :beam]
        scores = scores.masked_fill(ends, _NEVER).gather(1, kept)
        parents = parents.gather(1, kept)
        ids = ids.gather(1, kept)
        parent_prefixes = prefixes.gather(1, parents[:, :, None].expand(-1, -1, length + 1))
        prefixes = torch.cat([parent_prefixes, ids[:, :, None]], 2)

        finished += ends_in_beam.sum(1)
        unfinished = (finished < beam) & scores.isfinite().any(1)
        sentences = sentences[unfinished]
        scores = scores[unfinished]
        prefixes = prefixes[unfinished]
        finished = finished[unfinished]
    return best
