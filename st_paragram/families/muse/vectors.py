"""From flat ids to the vectors of a dual encoder, whatever its encoder is."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from sentence_transformers import SentenceTransformer
from torch import Tensor, nn

from st_paragram.families.muse.t5_encoder import is_t5, table_of
from st_paragram.learning.modules.flat_features import flat_features, join_features
from st_paragram.learning.modules.sentence_batch import SentenceBatch
from st_paragram.learning.modules.token_embedding import TokenEmbedding
from st_paragram.learning.modules.transformer_encoder import SpecialIds

FlatIds = tuple[NDArray[np.integer[Any]], NDArray[np.int64]]


class SentenceVectors:
    """The vectors of sentences in a pipeline that ends with `towers`, before its last module.

    The pipeline is of `TokenEmbedding` and `ConvolutionEncoder`, or of `t5_modules`; `special` are the ids that end a
    text and fill it up, `max_length` those that are read of a text.
    """

    def __init__(self, model: SentenceTransformer, special: SpecialIds, max_length: int) -> None:
        self.model, self.special, self.max_length = model, special, max_length

    @property
    def table(self) -> Tensor:
        """The embeddings of pieces, float (V, D)."""
        first = self.model[0]
        return table_of(first) if is_t5(first) else cast("nn.Embedding", first.embedding).weight

    def __call__(self, columns: Sequence[FlatIds]) -> list[Tensor]:
        """Unit vectors of columns of texts, float (n, D) each."""
        return [F.normalize(each, dim=1) for each in self.raw(columns)]

    def raw(self, columns: Sequence[FlatIds]) -> list[Tensor]:
        """Vectors of columns of texts as the encoder makes them, float (n, D) each."""
        device = self.table.device
        if isinstance(self.model[0], TokenEmbedding):
            joined = join_features([flat_features(*column) for column in columns])
            vectors = self._embedded({name: tensor.to(device) for name, tensor in joined.items()})
            return list(vectors.split([len(offsets) - 1 for _, offsets in columns]))
        batches = [SentenceBatch.of(*column, self.special, self.max_length).to(device) for column in columns]
        return [self._embedded({"input_ids": each.ids, "attention_mask": each.mask.long()}) for each in batches]

    def _embedded(self, features: dict[str, Tensor]) -> Tensor:
        for module in list(self.model)[:-1]:
            features = module(features)
        return features["sentence_embedding"].float()


def tensors(texts: FlatIds, device: torch.device) -> tuple[Tensor, Tensor]:
    """Flat ids as tensors, int64."""
    ids, offsets = texts
    return torch.from_numpy(ids.astype(np.int64)).to(device), torch.from_numpy(offsets).to(device)
