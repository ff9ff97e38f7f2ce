"""Convolutions over token embeddings and the mean of their outputs: the CNN of mUSE (ACL 2020)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import torch
import torch.nn.functional as F
from sentence_transformers.base.modules import Module
from torch import Tensor, nn

from st_paragram.errors import SettingsError
from st_paragram.families.muse.module_folder import module_folder
from st_paragram.learning.modules.flat_features import FlatFeatures

#: Zero vectors that mark the end of each text; they are part of the mean.
ENDS = 2
_GROUPS = 8  # groups of texts of similar length in a batch


class ConvolutionEncoder(Module):
    """Sentence embeddings from the means of convolutions and of token embeddings (the bag).

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
        """Make new layers with `filters` per width.

        Kernels have Kaiming's uniform distribution, biases are 0, and the first layer has no bias.
        At most `max_length` tokens of a text are read, including the two end markers.
        """
        super().__init__()
        self.embedding_dimension = embedding_dimension
        self.filters = filters
        self.layers = layers
        self.widths = list(widths)
        self.keep_bag = keep_bag
        self.max_length = max_length
        channels = filters * len(self.widths)
        self.convolutions = nn.ModuleList()
        for layer in range(layers):
            size = channels if layer else embedding_dimension
            kernels = [_kernel(size, filters, width, bias=layer > 0) for width in self.widths]
            self.convolutions.append(nn.ModuleList(kernels))
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
        """Dimension of the embeddings."""
        return self.embedding_dimension

    def forward(self, features: dict[str, Any], **kwargs: Any) -> dict[str, Any]:
        """Add `sentence_embedding`, float (B, D), not normalized, to `FlatFeatures`."""
        if not isinstance(features, FlatFeatures):
            raise SettingsError(
                "ConvolutionEncoder needs texts without padding; put TokenEmbedding directly"
                " before it"
            )
        self._truncate(features)
        tokens = features.flat_token_embeddings()
        offsets = features["cu_seq_lens_q"]
        order = offsets.diff().argsort()
        groups = order.split(-(-len(order) // _GROUPS))
        embeddings = [self._embed(tokens, offsets[group], offsets[group + 1]) for group in groups]
        features["sentence_embedding"] = torch.cat(embeddings)[order.argsort()]
        return features

    def _truncate(self, features: FlatFeatures) -> None:
        """Drop the ids of long texts beyond the maximum length."""
        if self.max_length is None:
            return
        longest = self.max_length - ENDS
        offsets = features["cu_seq_lens_q"]
        counts = offsets.diff()
        if int(counts.max()) <= longest:
            return
        begins = offsets[:-1].repeat_interleave(counts)
        places = torch.arange(int(offsets[-1]), device=offsets.device) - begins
        features["input_ids"] = features["input_ids"][:, places < longest]
        features["cu_seq_lens_q"] = F.pad(counts.clamp(max=longest).cumsum(0), (1, 0))

    def _embed(self, tokens: Tensor, begins: Tensor, ends: Tensor) -> Tensor:
        """Embed B texts of similar length, padded with zeros.

        Text i is tokens[begins[i]:ends[i]].
        """
        counts = (ends - begins).unsqueeze(1)
        places = torch.arange(int(counts.max()) + ENDS, device=tokens.device)
        is_token = places < counts
        outside = (places >= counts + ENDS).unsqueeze(2)
        index = (begins.unsqueeze(1) + places) * is_token
        rows = F.embedding(index, tokens) * is_token.unsqueeze(2)
        states = rows
        for layer in self.convolutions:
            image = states.transpose(1, 2).unsqueeze(2)
            # an even kernel adds one position on the right
            outputs = [kernel(image)[..., : len(places)] for kernel in cast("nn.ModuleList", layer)]
            joined = torch.cat(outputs, 1).squeeze(2).transpose(1, 2)
            states = joined.masked_fill(outside, 0.0).relu()
        mean = states.sum(1) / (counts + ENDS)
        embedding: Tensor = self.projection(mean.to(tokens.dtype))
        if not self.keep_bag:
            return embedding
        return self.bag_scale * rows.sum(1) / (counts + ENDS) + self.gate * embedding

    def save(self, output_path: str, *args: Any, **kwargs: Any) -> None:
        """Write configuration and weights (always as safetensors)."""
        self.save_config(output_path)
        self.save_torch_weights(output_path)

    @classmethod
    def load(cls, model_name_or_path: str, **kwargs: Any) -> ConvolutionEncoder:  # type: ignore[override]
        """Load a saved module; arguments as for sentence-transformers' modules."""
        folder = str(module_folder(model_name_or_path, kwargs))
        encoder = cls(**cls.load_config(folder))
        return cls.load_torch_weights(folder, model=encoder)  # type: ignore[no-any-return]


def _kernel(size: int, filters: int, width: int, bias: bool) -> nn.Conv2d:
    """Make a convolution over one row, which takes half the time of `Conv1d` on CPUs."""
    return nn.Conv2d(size, filters, (1, width), padding=(0, width // 2), bias=bias)
