"""The margin loss of SP and P-SP, for any SentenceTransformer."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch.nn.functional as F
from sentence_transformers import SentenceTransformer
from torch import Tensor, nn

from st_paragram.errors import SettingsError
from st_paragram.families.psp.hardest_negatives import hardest_negatives
from st_paragram.learning.modules.flat_features import is_flat, join_features
from st_paragram.learning.papers import P_SP
from st_paragram.learning.training.text_labels import labels_of_features


class MarginHardNegativeLoss(nn.Module):
    """Mean of [margin - cos(s, t) + cos(s, t')]+ plus mean of [margin - cos(s, t) + cos(t, s')]+.

    Source: EMNLP 2022 ("Paraphrastic Representations at Scale"), equation 1, in both directions
    like the authors' code. Columns of the data set: (s, t), where negatives are the hardest
    sentences of the batch's other side; or (s, t, t', s'), where the negatives of s and of t are
    given, as mined by `MegaBatchTrainer`.

    For embeddings that can be truncated, wrap this loss in sentence-transformers' `MatryoshkaLoss`.

    Examples:
        >>> import st_paragram
        >>> loss = st_paragram.MarginHardNegativeLoss(st_paragram.load("p-sp-mini"), margin=0.4)
        >>> loss.get_config_dict()["margin"]
        0.4
    """

    def __init__(
        self, model: SentenceTransformer, margin: float = 0.4, mask_duplicates: bool = True
    ) -> None:
        """Train `model`; `margin` is the paper's δ.

        With two columns, pairs that share a text are never each other's negatives, as with
        `MegaBatchTrainer`. Without `mask_duplicates` they may be, as in the authors' code.
        """
        super().__init__()
        if not margin > 0:
            raise SettingsError(f"margin is {margin}; it must be positive (the papers use 0.4)")
        self.model = model
        self.margin = margin
        self.mask_duplicates = mask_duplicates

    def forward(
        self, sentence_features: Iterable[dict[str, Tensor]], labels: Tensor | None = None
    ) -> Tensor:
        """Compute the loss of a batch from two or four columns; labels are not used."""
        columns = list(sentence_features)
        if len(columns) == 4:
            s, t, negative_of_s, negative_of_t = self.embed(columns)
            return margin_loss(s, t, negative_of_s, negative_of_t, margin=self.margin)
        if len(columns) != 2:
            raise SettingsError(
                f"MarginHardNegativeLoss got {len(columns)} columns of text; it takes 2 (s, t) or"
                " 4 (s, t, negative of s, negative of t)"
            )
        # Read before the model is applied, since it may replace the features.
        texts = labels_of_features(columns) if self.mask_duplicates else None
        s, t = self.embed(columns)
        of_s, of_t = hardest_negatives(s.detach(), t.detach(), texts)
        return margin_loss(s, t, t[of_s], s[of_t], margin=self.margin)

    def embed(self, columns: list[dict[str, Tensor]]) -> list[Tensor]:
        """Embed columns of B texts each, float (B, D)."""
        if not all(is_flat(column) for column in columns):
            return [self.model(column)["sentence_embedding"] for column in columns]
        # One forward pass for all columns: each backward pass through the table costs as much as a
        # whole step.
        embeddings = self.model(join_features(columns))["sentence_embedding"]
        counts = [len(column["cu_seq_lens_q"]) - 1 for column in columns]
        return list(embeddings.split(counts))

    def get_config_dict(self) -> dict[str, Any]:
        """Return the settings for the model card."""
        return {"margin": self.margin, "mask_duplicates": self.mask_duplicates}

    @property
    def citation(self) -> str:
        """BibTeX for the model card."""
        return P_SP.bibtex


def margin_loss(
    s: Tensor, t: Tensor, negative_of_s: Tensor, negative_of_t: Tensor, margin: float
) -> Tensor:
    """Compute the loss on embeddings, float (B, D) each; see `MarginHardNegativeLoss`."""
    positive = F.cosine_similarity(s, t)
    from_s = F.relu(margin - positive + F.cosine_similarity(s, negative_of_s)).mean()
    from_t = F.relu(margin - positive + F.cosine_similarity(t, negative_of_t)).mean()
    return from_s + from_t
