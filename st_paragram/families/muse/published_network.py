"""The convolutional network of the published multilingual USE, which turns pieces into unit vectors
without padding.

Table of pieces -> linear map, layer norm -> for each width, a part of the features: two residual
convolutions -> embedding and all widths side by side, layer norm -> sum over the pieces, linear
map, divided by the square root of their number -> three layers with shortcuts -> tanh -> unit
length.

Everything before the first convolutions depends only on the piece, and so do their products. They
are computed once for each distinct piece of a batch, so large batches are faster.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, cast, get_args

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from st_paragram.errors import SettingsError, short
from st_paragram.learning.modules.compact_embedding import is_finite

Precision = Literal["float32", "bfloat16"]
PRECISIONS: tuple[Precision, ...] = get_args(Precision)
#: Pieces in a block of texts: few enough for the results of the layers to fit in the cache.
BLOCK = 1024


@dataclass(frozen=True)
class NetworkShape:
    """The sizes of a network."""

    pieces: int  # V, rows of the table
    dim: int  # D, dimensions of piece and text embeddings
    blocks: int  # G, groups of rows with one scale and one offset; row i belongs to group i mod G
    channels: int  # C of each branch
    widths: tuple[int, ...]  # window of the convolutions of each branch, in pieces
    units: int  # H, units of the first two of the last layers

    @classmethod
    def of(cls, state: Mapping[str, Tensor]) -> NetworkShape:
        """Return the sizes of a network, given its state."""
        channels = len(state["branches.0.first.weight"])
        firsts = sum(name.endswith(".first.weight") for name in state)
        widths = tuple(
            state[f"branches.{i}.first.weight"].shape[1] // channels for i in range(firsts)
        )
        pieces, dim = state["table"].shape
        return cls(
            pieces, dim, len(state["scales"]), channels, widths, len(state["dense.0.weight"])
        )


class Branch(nn.Module):
    """Two residual convolutions of one width."""

    def __init__(self, channels: int, width: int) -> None:
        super().__init__()
        self.width = width
        self.first = nn.Linear(width * channels, channels)
        self.second = nn.Linear(width * channels, channels)


class PublishedNetwork(nn.Module):
    """Compute unit vectors of texts from piece ids.

    The table is uint8 and is not trained: row i stands for table[i] * scales[i % G] + offsets[i %
    G].
    """

    table: Tensor
    scales: Tensor
    offsets: Tensor

    def __init__(
        self, shape: NetworkShape, epsilon: float = 1e-12, precision: Precision = "float32"
    ) -> None:
        """Make a new network.

        Args:
            shape: Its sizes.
            epsilon: Added to variances in layer norms; also the minimum of a squared length.
            precision: Number type of the large products, except those of the last layers.
        """
        super().__init__()
        if precision not in PRECISIONS:
            raise SettingsError(
                f"precision is {short(precision)}; choose one of {', '.join(PRECISIONS)}"
            )
        if not (isinstance(epsilon, float) and 0 < epsilon < 1):
            raise SettingsError(f"epsilon is {short(epsilon)}; it must be above 0 and below 1")
        self.shape, self.epsilon, self.precision = shape, epsilon, precision
        dim, units, channels = shape.dim, shape.units, len(shape.widths) * shape.channels
        self.register_buffer("table", torch.zeros(shape.pieces, dim, dtype=torch.uint8))
        self.register_buffer("scales", torch.ones(shape.blocks))
        self.register_buffer("offsets", torch.zeros(shape.blocks))
        self.project = nn.Linear(dim, channels)
        self.project_norm = nn.LayerNorm(channels, epsilon)
        self.branches = nn.ModuleList(Branch(shape.channels, width) for width in shape.widths)
        self.norm = nn.LayerNorm(dim + channels, epsilon)
        self.output = nn.Linear(dim + channels, dim)
        extents = [
            (dim, units),
            (dim, units),
            (units, units),
            (units, dim),
            (units, dim),
            (dim, dim),
        ]
        self.dense = nn.ModuleList(nn.Linear(*extent, bias=False) for extent in extents)

    @classmethod
    def of(
        cls, state: Mapping[str, Tensor], epsilon: float, precision: Precision
    ) -> PublishedNetwork:
        """Make the network of a state and use its tensors; raise an error of Python or torch if
        they do not fit.
        """
        with torch.device("meta"):  # new weights would only be discarded
            network = cls(NetworkShape.of(state), epsilon, precision)
        network.load_state_dict(state, assign=True)
        for name, tensor in state.items():
            if tensor.dtype != (torch.uint8 if name == "table" else torch.float32) or not is_finite(
                tensor
            ):
                raise ValueError(f"{name} has another number type, or NaN or infinite values")
        return network

    def forward(self, ids: Tensor, offsets: Tensor) -> Tensor:
        """Embed texts.

        Args:
            ids: int64 (T,), the concatenated pieces of the texts, all below V.
            offsets: int64 (B + 1,): text i is ids[offsets[i]:offsets[i + 1]], at least one piece.

        Returns:
            float32 (B, D), of length 1.
        """
        if len(offsets) < 2:
            return self.scales.new_zeros(0, self.shape.dim)
        pieces, places = ids.unique(return_inverse=True)
        group = pieces % self.shape.blocks
        rows = self.table[pieces] * self.scales[group, None] + self.offsets[group, None]
        known = self._of_pieces(rows)
        sums = [
            self._sums(rows, known, places[begin:end], bounds)
            for begin, end, bounds in _blocks(offsets)
        ]
        counts = offsets.diff()[:, None].to(rows.dtype)
        total = self.norm.weight * torch.cat(sums) + counts * self.norm.bias
        return self._last_layers(
            (self.output(total) + (counts - 1) * self.output.bias) / counts.sqrt()
        )

    def _of_pieces(self, rows: Tensor) -> list[tuple[Tensor, Tensor]]:
        """Compute, for each width, states (U, C) and the first convolution's products (width * (U +
        1), C).
        """
        projected = self._product(rows, self.project.weight).float() + self.project.bias
        states = self.project_norm(projected).split(self.shape.channels, 1)
        branches = [cast("Branch", branch) for branch in self.branches]
        products = [
            self._products(own, one.first.weight, one.width)
            for own, one in zip(states, branches, strict=True)
        ]
        return list(zip(states, products, strict=True))

    def _products(self, states: Tensor, weight: Tensor, width: int) -> Tensor:
        """Multiply states by the kernel's part for each window position: (width * (N + 1), C); the
        last are zero.
        """
        channels = states.shape[1]
        taps = weight.view(channels, width, channels).transpose(0, 1).reshape(-1, channels)
        return self._product(F.pad(states, (0, 0, 0, 1)), taps).view(-1, channels)

    def _product(self, rows: Tensor, weight: Tensor) -> Tensor:
        """Apply a linear map in the chosen precision."""
        if self.precision == "bfloat16":
            rows, weight = rows.bfloat16(), weight.bfloat16()
        return F.linear(rows, weight)

    def _sums(
        self, rows: Tensor, known: Sequence[tuple[Tensor, Tensor]], places: Tensor, bounds: Tensor
    ) -> Tensor:
        """Sum the normalized features over each text of a block, float (b, D + C * branches)."""
        features = [rows[places]]
        around = _windows(bounds, max(self.shape.widths))
        outside = places.new_full((1,), len(rows))
        pieces_around = torch.cat([places, outside])[around]
        for branch, (states, products) in zip(self.branches, known, strict=True):
            assert isinstance(branch, Branch)
            first = _convolved(products, pieces_around, branch.width) + branch.first.bias
            hidden = states[places] + first.relu_()
            again = self._products(hidden, branch.second.weight, branch.width)
            second = _convolved(again, around, branch.width) + branch.second.bias
            features.append(hidden + second.relu_())
        normal = F.layer_norm(torch.cat(features, 1), self.norm.normalized_shape, eps=self.epsilon)
        # may be a long text: `sum` adds pairwise, `embedding_bag` sequentially
        if len(bounds) == 2:
            return normal.sum(0, keepdim=True)
        order = torch.arange(len(places), device=places.device)
        return F.embedding_bag(order, normal, bounds, mode="sum", include_last_offset=True)

    def _last_layers(self, mean: Tensor) -> Tensor:
        first, short, second, third, across, last = self.dense
        hidden = (short(mean) + second(first(mean).relu())).relu()
        vectors: Tensor = (across(hidden) + last(third(hidden).relu())).tanh()
        return vectors / vectors.square().sum(1, keepdim=True).clamp(min=self.epsilon).sqrt()


def _blocks(offsets: Tensor) -> list[tuple[int, int, Tensor]]:
    """Divide texts into blocks of about `BLOCK` pieces: first piece, end, and offsets in the block,
    int64 (b + 1,).
    """
    blocks, begin, bounds = [], 0, offsets.tolist()
    for text in range(1, len(bounds)):
        if text + 1 == len(bounds) or bounds[text + 1] - bounds[begin] > BLOCK:
            blocks.append((bounds[begin], bounds[text], offsets[begin : text + 1] - offsets[begin]))
            begin = text
    return blocks


def _windows(bounds: Tensor, widest: int) -> Tensor:
    """Return the positions around each piece, int64 (T, widest); T for positions outside the
    piece's text.
    """
    counts = bounds.diff()
    total = int(bounds[-1])
    begins, ends = (
        bound.repeat_interleave(counts, output_size=total)[:, None]
        for bound in (bounds[:-1], bounds[1:])
    )
    left = (widest - 1) // 2
    around = torch.arange(total, device=bounds.device)[:, None] + torch.arange(
        -left, widest - left
    ).to(bounds.device)
    return around.masked_fill((around < begins) | (around >= ends), total)


def _convolved(products: Tensor, around: Tensor, width: int) -> Tensor:
    """Sum products over windows, float32 (T, C); a window of even width has one more position on
    its right.
    """
    left = (around.shape[1] - 1) // 2 - (width - 1) // 2
    index = around[:, left : left + width] * width + torch.arange(width, device=around.device)
    return F.embedding_bag(index, products, mode="sum").float()
