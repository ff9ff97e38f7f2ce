"""Convolutions over token embeddings and the mean of what they find, without padding: the CNN of mUSE (ACL 2020).

A text is its tokens and two ends, which are zero vectors and belong to the mean. They let stock modules, which know no
mask, find the same. A first layer without bias is zero beyond what its kernels reach: two places behind the last token
with widths up to 5. So in a longer padded text each of the n + 2 places, and the two behind them that the second layer
sees, hold what they hold here. With a bias in the second layer, a third would see the padding: there are at most two.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, TypeVar

import torch
import torch.nn.functional as F
from sentence_transformers.base.modules import Module
from torch import Tensor, nn

from st_paragram.errors import SettingsError
from st_paragram.families.muse.flat_convolution import convolve
from st_paragram.learning.modules.flat_features import FlatFeatures

#: Zero vectors at the end of each text; also the rows of zeros between texts.
ENDS = 2
_MOST_LAYERS, _WIDEST = 2, 2 * ENDS + 1
_Encoder = TypeVar("_Encoder", bound="ConvolutionEncoder")


class ConvolutionEncoder(Module):
    """Sentence embeddings from the mean of convolutions, and from the bag of tokens.

    Each layer has kernels of several widths and ReLU; a kernel of width w sees places i - w // 2 to i + (w - 1) // 2.
    Of the last layer's mean over a text's n + 2 places, a linear map makes the embedding. With the bag kept it is
    bag_scale * (sum of token embeddings / (n + 2)) + gate * (linear map of the mean), with a learned gate; the trainer
    sets the buffer `bag_scale`.
    """

    config_keys: list[str] = ["embedding_dimension", "filters", "layers", "widths", "keep_bag", "max_length"]  # noqa: RUF012 - as declared by sentence-transformers
    config_file_name = "convolution_encoder_config.json"
    bag_scale: Tensor

    def __init__(
        self,
        embedding_dimension: int,
        filters: int,
        layers: int = 2,
        widths: Iterable[int] = (1, 2, 3, 5),
        keep_bag: bool = True,
        max_length: int | None = None,
    ) -> None:
        """Make new layers with torch's random generator: Kaiming's uniform kernels, biases of 0.

        Args:
            embedding_dimension: D, components of a token's and of a sentence's embedding.
            filters: F, kernels of each width.
            layers: 1 or 2.
            widths: of kernels, increasing, 1 to 5.
            keep_bag: use the bag of tokens next to the convolutions.
            max_length: tokens of a text that are read, its two ends included; None: all.
        """
        super().__init__()
        self.embedding_dimension, self.filters = embedding_dimension, filters
        self.layers, self.widths, self.keep_bag, self.max_length = layers, list(widths), keep_bag, max_length
        if min(embedding_dimension, filters) < 1:
            raise SettingsError(f"{embedding_dimension} components and {filters} filters; both must be at least 1")
        if not 1 <= layers <= _MOST_LAYERS:
            raise SettingsError(f"{layers} layers of convolutions; choose 1 or {_MOST_LAYERS}")
        if not self.widths or self.widths != sorted(set(self.widths) & set(range(1, _WIDEST + 1))):
            raise SettingsError(f"widths are {self.widths}; give increasing numbers from 1 to {_WIDEST}")
        channels = filters * len(self.widths)
        inputs = [embedding_dimension, channels][:layers]
        self.convolutions = nn.ModuleList(
            _Convolutions(size, filters, self.widths, bias=place > 0) for place, size in enumerate(inputs)
        )
        self.projection = nn.Linear(channels, embedding_dimension)
        if keep_bag:
            self.gate = nn.Parameter(torch.tensor(0.1))
            self.register_buffer("bag_scale", torch.tensor(1.0))

    def get_embedding_dimension(self) -> int:
        """D."""
        return self.embedding_dimension

    def forward(self, features: dict[str, Any], **kwargs: Any) -> dict[str, Any]:  # noqa: ANN401
        """Add `sentence_embedding`, float (B, D), not normalized, to flat features.

        Raises:
            SettingsError: padded features.
        """
        if not isinstance(features, FlatFeatures) or "cu_seq_lens_q" not in features:
            raise SettingsError("ConvolutionEncoder reads texts without padding; put TokenEmbedding right before it")
        self._cut(features)
        tokens = features.flat_token_embeddings()
        layout = _Layout.of(features["cu_seq_lens_q"], len(tokens))
        rows = tokens.new_zeros(layout.rows, tokens.shape[1]).index_copy(0, layout.tokens, tokens)
        states = rows
        for layer in self.convolutions:
            states = layer(states, layout.gaps)
        embedding = self.projection(layout.means(states.to(tokens.dtype)))
        if self.keep_bag:
            embedding = self.bag_scale * layout.means(rows) + self.gate * embedding
        features["sentence_embedding"] = embedding
        return features

    def _cut(self, features: dict[str, Any]) -> None:
        """Cut texts before anything is made for each of their tokens."""
        offsets, most = features["cu_seq_lens_q"], (self.max_length or 0) - ENDS
        counts = offsets.diff()
        if self.max_length is not None and int(counts.max()) > most:
            place = torch.arange(int(offsets[-1]), device=offsets.device) - offsets[:-1].repeat_interleave(counts)
            features["input_ids"] = features["input_ids"][:, place < most]
            features["cu_seq_lens_q"] = F.pad(counts.clamp(max=most).cumsum(0), (1, 0))

    def save(self, output_path: str, *args: Any, safe_serialization: bool = True, **kwargs: Any) -> None:  # noqa: ANN401
        """Write configuration and weights (always as safetensors)."""
        self.save_config(output_path)
        self.save_torch_weights(output_path)

    @classmethod
    def load(  # type: ignore[override]
        cls: type[_Encoder],
        model_name_or_path: str,
        subfolder: str = "",
        token: bool | str | None = None,
        cache_folder: str | None = None,
        revision: str | None = None,
        local_files_only: bool = False,
        **kwargs: Any,  # noqa: ANN401
    ) -> _Encoder:
        """Read what `save` wrote; arguments as those of sentence-transformers' modules."""
        hub: dict[str, Any] = {
            "subfolder": subfolder,
            "token": token,
            "cache_folder": cache_folder,
            "revision": revision,
            "local_files_only": local_files_only,
        }
        encoder = cls(**cls.load_config(model_name_or_path, **hub))
        cls.load_torch_weights(model_name_or_path, model=encoder, **hub)
        return encoder


class _Convolutions(nn.Module):
    """One layer: kernels (F, C, w) of each width, a bias (len(widths) * F,) for all of them, ReLU."""

    def __init__(self, inputs: int, filters: int, widths: list[int], bias: bool) -> None:
        super().__init__()
        self.kernels = nn.ParameterList(torch.empty(filters, inputs, width) for width in widths)
        self.bias = nn.Parameter(torch.zeros(filters * len(widths))) if bias else None
        for kernel in self.kernels:
            nn.init.kaiming_uniform_(kernel, nonlinearity="relu")

    def forward(self, rows: Tensor, gaps: Tensor) -> Tensor:
        states = convolve(rows, list(self.kernels))
        if self.bias is not None:
            states += self.bias.to(states.dtype)
        return states.index_fill_(0, gaps, 0.0).relu_()


@dataclass(frozen=True)
class _Layout:
    """Where texts are among rows: gaps of zero rows before, between and behind them.

    Attributes:
        rows: number of rows.
        tokens: rows of the tokens, int64 (total,).
        places: rows of tokens and ends, int64 (total + ENDS * B,), text after text.
        offsets: int64 (B + 1,), where texts begin and end in `places`.
        gaps: the other rows, int64 (ENDS * (B + 1),).
    """

    rows: int
    tokens: Tensor
    places: Tensor
    offsets: Tensor
    gaps: Tensor

    @classmethod
    def of(cls, offsets: Tensor, total: int) -> _Layout:
        """The layout of B texts of `total` tokens that begin and end at `offsets`, int64 (B + 1,)."""
        texts, device = len(offsets) - 1, offsets.device
        numbers, counts = torch.arange(texts + 1, device=device), offsets.diff()

        def spread(each: Tensor, size: int) -> tuple[Tensor, Tensor]:
            text = numbers[:-1].repeat_interleave(each, output_size=size)
            return torch.arange(size, device=device), text

        token, text = spread(counts, total)
        place, text_of_place = spread(counts + ENDS, total + ENDS * texts)
        ends = offsets + 2 * ENDS * numbers
        return cls(
            rows=total + 2 * ENDS * texts + ENDS,
            tokens=token + 2 * ENDS * text + ENDS,
            places=place + ENDS * text_of_place + ENDS,
            offsets=offsets + ENDS * numbers,
            gaps=(ends[:, None] + torch.arange(ENDS, device=device)).view(-1),
        )

    def means(self, rows: Tensor) -> Tensor:
        """The mean of each text's rows, its ends included, float (B, C)."""
        return F.embedding_bag(self.places, rows, self.offsets, mode="mean", include_last_offset=True)
