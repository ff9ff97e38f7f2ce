"""The losses of a dual encoder's tasks on flat ids: translation, questions and answers, responses, inference."""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

import torch
import torch.nn.functional as F
from sentence_transformers.sentence_transformer.modules import Router
from torch import Tensor, nn

from st_paragram.families.muse.dual_encoder_ranking import finding_loss
from st_paragram.families.muse.sentence_vectors import FlatIds, SentenceVectors, tensors
from st_paragram.families.muse.towers import DOCUMENT, QUERY, TaskHeads, context_vectors, through


@dataclass(frozen=True)
class TaskBatch:
    """Pairs of one task.

    Attributes:
        task: "translation", "qa", "response" or "nli".
        first: Sentences, questions, utterances or premises.
        second: Their translations, answers, responses or hypotheses. Either side may have more texts behind those of
            the pairs.
        contexts: Of all answers, or None.
        without: Answers that have no context, bool (n,), or None: all have one.
        labels: Of inference, int64 (n,), or None.
    """

    task: str
    first: FlatIds
    second: FlatIds
    contexts: FlatIds | None = None
    without: Tensor | None = None
    labels: Tensor | None = None


class DualEncoderTasks(nn.Module):
    """Vectors of both sides of a task's pairs, and its loss on them.

    Translations are compared as sentences; questions and utterances go through one tower, answers, in their contexts,
    and responses through the other (ACL 2020, section 2).

    Attributes:
        vectors: Of sentences.
        heads: What the pipeline does not have.
    """

    def __init__(
        self,
        vectors: SentenceVectors,
        heads: TaskHeads,
        scale: float = 20.0,
        margin: float = 0.3,
        qa_margin: float = 0.0,
    ) -> None:
        """Losses with the scale of the cosines, the margin of translations, and that of answers and responses."""
        super().__init__()
        self.vectors, self.heads = vectors, heads
        self.pipeline = vectors.model
        self.scale, self.margin, self.qa_margin = scale, margin, qa_margin

    def sides(self, batch: TaskBatch) -> tuple[Tensor, Tensor]:
        """Unit vectors of both sides, float (n, D) each, as the task compares them."""
        first, second = self.vectors([batch.first, batch.second])
        if batch.task not in ("qa", "response"):
            return first, second
        router = cast("Router", self.pipeline[-1])
        queries = through(router, QUERY, first)
        if batch.contexts is None:
            return queries, through(router, DOCUMENT, second)
        contexts = context_vectors(self.vectors.table, *tensors(batch.contexts, second.device))
        if batch.without is not None:
            contexts = torch.where(batch.without[:, None], second, contexts)
        return queries, self.heads.answers(router, second, contexts)

    def ranking(self, task: str, first: Tensor, second: Tensor, in_second: Tensor, in_first: Tensor) -> Tensor:
        """The loss of B pairs, a scalar.

        Translations are found in both directions, of questions and utterances what belongs to them.

        Args:
            task: of the pairs.
            first: unit vectors, float (B + M, D): of the pairs, and of further negatives of their second sides.
            second: the same of the other side, float (B + K, D).
            in_second: bool (B, B + K), what of the second side is not a negative of a pair's first side.
            in_first: bool (B, B + M), the same the other way round.
        """
        pairs = len(in_second)
        if task != "translation":
            return finding_loss(first[:pairs], second, self.scale, self.qa_margin, in_second)
        there = finding_loss(first[:pairs], second, self.scale, self.margin, in_second)
        return (there + finding_loss(second[:pairs], first, self.scale, self.margin, in_first)) / 2

    def inference(self, first: Tensor, second: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
        """The sum of the classifier's losses over pairs, and how many it classifies correctly."""
        with torch.autocast(first.device.type, enabled=False):
            logits = self.heads.logits(first, second)
        return F.cross_entropy(logits, labels, reduction="sum"), (logits.argmax(1) == labels).sum()
