"""Convolutions over token embeddings and the mean of their outputs: the CNN of mUSE (ACL 2020)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import torch
import torch.nn.functional as F
from sentence_transformers.base.modules import Module
from torch import Tensor, nn

from st_paragram.errors import SettingsError
from st_paragram.learning.modules.flat_features import FlatFeatures

#: Zero vectors that mark the end of each text; they are part of the mean.
ENDS = 2
_GROUPS = 8  # groups of texts of similar length in a batch
_HUB_ARGUMENTS = ("subfolder", "token", "cache_folder", "revision", "local_files_only")


class ConvolutionEncoder(Module):
    """Sentence embeddings from the mean of convolutions and the mean of token embeddings (the bag
    of tokens).

    Put it after `TokenEmbedding`. Each layer has kernels of several widths and ReLU; a kernel of
    width w sees positions i - w // 2 to i + (w - 1) // 2. The embedding is a linear map of the last
    layer's mean over n + 2 places. With the bag, it is bag_scale * (sum of token embeddings / (n +
    2)) + gate * (linear map of the mean), with a learned gate; the trainer sets the buffer
    `bag_scale`.
    """

    config_keys: list[str] = [  # noqa: RUF012
        "embedding_dimension",
        "filters",
        "layers",
        "widths",
        "keep_bag",
        "max_length",
    ]
    config_file_name = "convolution_encoder_config.json"
    bag_scale: Tensor

    def __init__(
        self,
        embedding_dimension: int,
        filters: int,
        layers: int = 2,
        widths: Sequence[int] = (1, 2, 3, 5),
        keep_bag: bool = True,
        max_length: int | None = None,
    ) -> None:
        """Make new layers with `filters` per width: Kaiming's uniform kernels, biases of 0, no bias
        in the first layer.

        At most `max_length` tokens of a text are read, including the two end markers.
        """
        super().__init__()
        self.embedding_dimension, self.filters, self.layers = embedding_dimension, filters, layers
        self.widths, self.keep_bag, self.max_length = list(widths), keep_bag, max_length
        channels = filters * len(self.widths)
        # On CPUs, images of one row in channels-last format take half the time of `Conv1d`.
        self.convolutions = nn.ModuleList(
            nn.ModuleList(
                nn.Conv2d(size, filters, (1, width), padding=(0, width // 2), bias=layer > 0)
                for width in self.widths
            )
            for layer, size in enumerate([embedding_dimension, *[channels] * (layers - 1)])
        )
        for name, parameter in self.convolutions.named_parameters():
            if name.endswith("bias"):
                nn.init.zeros_(parameter)
            else:
                nn.init.kaiming_uniform_(parameter, nonlinearity="relu")
        self.projection = nn.Linear(channels, embedding_dimension)
        if keep_bag:
            self.gate = nn.Parameter(torch.tensor(0.1))
            self.register_buffer("bag_scale", torch.tensor(1.0))

    def get_embedding_dimension(self) -> int:
        """D."""
        return self.embedding_dimension

    def forward(self, features: dict[str, Any], **kwargs: Any) -> dict[str, Any]:
        """Add `sentence_embedding`, float (B, D), not normalized, to `FlatFeatures`."""
        if not isinstance(features, FlatFeatures):
            raise SettingsError(
                "ConvolutionEncoder needs texts without padding; put TokenEmbedding directly"
                " before it"
            )
        offsets = features["cu_seq_lens_q"]
        counts = offsets.diff()
        if self.max_length is not None and int(counts.max()) > (most := self.max_length - ENDS):
            place = torch.arange(int(offsets[-1]), device=offsets.device) - offsets[
                :-1
            ].repeat_interleave(counts)
            features["input_ids"] = features["input_ids"][:, place < most]
            features["cu_seq_lens_q"] = offsets = F.pad(counts.clamp(max=most).cumsum(0), (1, 0))
        tokens, order = features.flat_token_embeddings(), offsets.diff().argsort()
        groups = order.split(-(-len(order) // _GROUPS))
        embeddings = torch.cat(
            [self._embed(tokens, offsets[group], offsets[group + 1]) for group in groups]
        )
        features["sentence_embedding"] = embeddings[order.argsort()]
        return features

    def _embed(self, tokens: Tensor, begins: Tensor, ends: Tensor) -> Tensor:
        """Embed B texts of similar length, padded with zeros; text i is tokens[begins[i]:ends[i]]."""
        counts = (ends - begins).unsqueeze(1)
        places = torch.arange(int(counts.max()) + ENDS, device=tokens.device)
        is_token, outside = places < counts, (places >= counts + ENDS).unsqueeze(2)
        states = rows = F.embedding(
            (begins.unsqueeze(1) + places) * is_token, tokens
        ) * is_token.unsqueeze(2)
        for layer in self.convolutions:
            image = states.transpose(1, 2).unsqueeze(2)
            # An even kernel adds one position on the right.
            found = torch.cat(
                [kernel(image)[..., : len(places)] for kernel in cast("nn.ModuleList", layer)], 1
            )
            states = found.squeeze(2).transpose(1, 2).masked_fill(outside, 0.0).relu()
        embedding: Tensor = self.projection((states.sum(1) / (counts + ENDS)).to(tokens.dtype))
        if self.keep_bag:
            return self.bag_scale * rows.sum(1) / (counts + ENDS) + self.gate * embedding
        return embedding

    def save(
        self, output_path: str, *args: Any, safe_serialization: bool = True, **kwargs: Any
    ) -> None:
        """Write configuration and weights (always as safetensors)."""
        self.save_config(output_path)
        self.save_torch_weights(output_path)

    @classmethod
    def load(cls, model_name_or_path: str, **kwargs: Any) -> ConvolutionEncoder:  # type: ignore[override]
        """Load a saved module; arguments as for sentence-transformers' modules."""
        hub = {name: kwargs[name] for name in _HUB_ARGUMENTS if name in kwargs}
        encoder = super().load(model_name_or_path, **hub)
        return cls.load_torch_weights(model_name_or_path, model=encoder, **hub)  # type: ignore[no-any-return]
