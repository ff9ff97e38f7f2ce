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
    # For unfinished sentences: their numbers (S,), log probabilities of prefixes (S, beam), the
    # prefixes, which begin with the end-of-sentence id (S, beam, 1 + length), and the number of
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
        logits = decoder.next_logits(
            prefixes.flatten(0, 1), latents[sentences].repeat_interleave(beam, 0)
        )
        of_next = logits.float().log_softmax(-1).masked_fill(~allowed, _NEVER)
        vocabulary = of_next.shape[1]
        every = (scores.reshape(-1, 1) + of_next).view(len(sentences), beam * vocabulary)
        # Twice as many as prefixes, in falling order, so that enough of them do not end.
        scores, places = every.topk(min(2 * beam, beam * vocabulary))
        parents, ids = places // vocabulary, places % vocabulary

        ends = (ids == end) & scores.isfinite()
        ending = ends[:, :beam]
        found, columns = (
            (scores[:, :beam] / (length + 1) ** penalty).masked_fill(~ending, _NEVER).max(1)
        )
        for row, (sentence, score) in enumerate(
            zip(sentences.tolist(), found.tolist(), strict=True)
        ):
            if score > best[sentence].score:
                beginning = prefixes[row, parents[row, columns[row]], 1:]
                best[sentence] = Hypothesis(tuple(beginning.tolist()), score)

        # the best that do not end, in order
        others = (ids == end).int().argsort(dim=1, stable=True)[:, :beam]
        scores, parents, ids = (
            each.gather(1, others) for each in (scores.masked_fill(ends, _NEVER), parents, ids)
        )
        finished += ending.sum(1)
        going = (finished < beam) & scores.isfinite().any(1)
        taken = prefixes.gather(1, parents[:, :, None].expand(-1, -1, prefixes.shape[2]))
        prefixes = torch.cat([taken, ids[:, :, None]], 2)[going]
        sentences, scores, finished = sentences[going], scores[going], finished[going]
    return best
