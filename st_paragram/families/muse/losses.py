"""Losses of dual encoders: ranking among the pairs of a batch, and the tasks of mUSE (ACL 2020)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, cast

import torch
import torch.nn.functional as F
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import Router
from torch import Tensor, nn

from st_paragram.errors import SettingsError
from st_paragram.families.muse.sentence_transformers_encoder import DualEncoder, tensors
from st_paragram.families.muse.settings import DualEncoderSettings
from st_paragram.families.muse.task_rows import TaskBatch
from st_paragram.families.muse.towers import DOCUMENT, QUERY, context_vectors, through
from st_paragram.learning.papers import ADDITIVE_MARGIN
from st_paragram.learning.training.text_labels import labels_of_features, text_labels


class DualEncoderRankingLoss(nn.Module):
    """Additive-margin softmax over the pairs of a batch.

    Source: Yang et al., IJCAI 2019, "Improving Multilingual Sentence Embedding using Bi-directional
    Dual Encoder with Additive Margin Softmax". The authors of multilingual USE (ACL 2020) say in
    its announcement that they use it; their paper does not state the loss.

    The columns of the data set are x and y: translations, or questions and their answers. The
    logits are cosines times `scale`, after subtracting the margin from the cosines of pairs. The
    loss is the cross-entropy of finding each pair's y, averaged with that of finding each pair's x
    if `both_directions`. Without a margin, it equals sentence-transformers'
    `MultipleNegativesRankingLoss`. `mask_equal`: pairs with a shared text are no negatives.

    Examples:
        >>> import st_paragram
        >>> loss = st_paragram.DualEncoderRankingLoss(st_paragram.load("p-sp-mini"), scale=20.0,
        ...     margin=0.3)
        >>> loss.get_config_dict()["margin"]
        0.3
    """

    def __init__(
        self,
        model: SentenceTransformer,
        scale: float = 20.0,
        margin: float = 0.3,
        mask_equal: bool = True,
        both_directions: bool = True,
    ) -> None:
        """Train `model`, any SentenceTransformer."""
        super().__init__()
        if not (scale > 0 and margin >= 0):
            raise SettingsError(
                f"scale is {scale} and margin {margin}; scale must be positive, margin at least 0"
            )
        self.model = model
        self.scale = scale
        self.margin = margin
        self.mask_equal = mask_equal
        self.both_directions = both_directions

    def forward(
        self, sentence_features: Iterable[dict[str, Tensor]], labels: Tensor | None = None
    ) -> Tensor:
        """Compute the loss of a batch, a scalar, from the features of two columns of B texts.

        Labels are ignored.
        """
        columns = list(sentence_features)
        if len(columns) != 2:
            raise SettingsError(
                f"DualEncoderRankingLoss got {len(columns)} columns of text; give 2"
            )
        equal = None
        if self.mask_equal:
            first, second = labels_of_features(columns)
            equal = shared_texts(first, second)
        x, y = (self.model(column)["sentence_embedding"] for column in columns)
        return ranking_loss(
            F.normalize(x, dim=1),
            F.normalize(y, dim=1),
            scale=self.scale,
            margin=self.margin,
            equal=equal,
            both_directions=self.both_directions,
        )

    def get_config_dict(self) -> dict[str, Any]:
        """Return the settings for the model card."""
        return {
            "scale": self.scale,
            "margin": self.margin,
            "mask_equal": self.mask_equal,
            "both_directions": self.both_directions,
        }

    @property
    def citation(self) -> str:
        """BibTeX for the model card."""
        return ADDITIVE_MARGIN.bibtex


def ranking_loss(
    x: Tensor,
    y: Tensor,
    scale: float,
    margin: float,
    equal: Tensor | None = None,
    both_directions: bool = True,
) -> Tensor:
    """Compute the loss of `DualEncoderRankingLoss` on unit vectors of B pairs, float (B, D) each.

    Pairs i and j share a text if `equal`, bool (B, B), is true; then they are not negatives of each
    other. The diagonal is ignored.
    """
    with torch.autocast(x.device.type, enabled=False):
        cosines = x.float() @ y.float().T if x.dtype != torch.float64 else x @ y.T
        pairs = torch.eye(len(x), dtype=torch.bool, device=x.device)
        logits = scale * (cosines - margin * pairs)
        if equal is not None:
            logits = logits.masked_fill(equal & ~pairs, -torch.inf)
        right = torch.arange(len(x), device=x.device)
        loss = F.cross_entropy(logits, right)
        if not both_directions:
            return loss
        return (loss + F.cross_entropy(logits.T, right)) / 2


def shared_texts(first: Tensor, second: Tensor) -> Tensor:
    """Return which of B pairs share a text, bool (B, B).

    The labels of both sides, int64 (B,), are equal for equal texts.
    """
    return (first[:, None] == first[None]) | (second[:, None] == second[None])


class DualEncoderTasks(nn.Module):
    """The loss of each task on the unit vectors of its pairs.

    Translations are compared as sentences, in both directions. Questions and utterances go through
    one tower, answers (with their contexts) and responses through the other, and each question's
    answer must be found. Inference is classified (ACL 2020, section 3.1). The setting `margin`
    applies to translations, `qa_margin` to answers and responses.
    """

    def __init__(self, model: DualEncoder, settings: DualEncoderSettings) -> None:
        """Make the losses of a model from `train muse`, with its heads."""
        super().__init__()
        self.model = model
        self.heads = model.heads
        self.settings = settings

    def sides(self, batch: TaskBatch) -> tuple[Tensor, Tensor]:
        """Compute unit vectors of both sides for the task, float (B, D) each."""
        first, second = self.model.vectors_of_ids(batch.first, batch.second)
        first = F.normalize(first, dim=1)
        second = F.normalize(second, dim=1)
        if batch.task not in ("qa", "response"):
            return first, second
        router = cast("Router", self.model[-1])
        queries = through(router, QUERY, first)
        if batch.contexts is None:
            return queries, through(router, DOCUMENT, second)
        ids, offsets = tensors(batch.contexts, second.device)
        contexts = context_vectors(self.model.table, ids, offsets)
        # without a context, the answer is used
        contexts = torch.where(offsets.diff()[:, None] > 0, contexts, second)
        return queries, self.heads.answers(router, second, contexts)

    def forward(self, batch: TaskBatch, bfloat16: bool = False) -> tuple[Tensor, Tensor | None]:
        """Compute the mean loss of a batch, and the number of correct inference labels."""
        device = self.model.device
        with torch.autocast(device.type, torch.bfloat16, enabled=bfloat16):
            first, second = self.sides(batch)
        if batch.labels is not None:
            labels = torch.from_numpy(batch.labels).to(device)
            logits = self.heads.logits(first, second)
            return F.cross_entropy(logits, labels), (logits.argmax(1) == labels).sum()
        first_labels = torch.from_numpy(text_labels(*batch.first)).to(device)
        second_labels = torch.from_numpy(text_labels(*batch.second)).to(device)
        is_translation = batch.task == "translation"
        loss = ranking_loss(
            first,
            second,
            scale=self.settings.scale,
            margin=self.settings.margin if is_translation else self.settings.qa_margin,
            equal=shared_texts(first_labels, second_labels),
            both_directions=is_translation,
        )
        return loss, None
