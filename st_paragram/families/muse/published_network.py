"""The convolutional network of the published multilingual USE, from pieces to unit vectors.

Table of pieces -> linear map, layer norm -> for each width, a part of the features: two residual
convolutions -> embedding and all widths side by side, layer norm -> sum over the pieces, linear
map, divided by the square root of their number -> three layers with shortcuts -> tanh -> unit
length.

Everything before the first convolutions depends only on the piece, and so do their products. They
are computed once for each distinct piece of a batch, so large batches are faster. Texts are not
padded.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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


class Branch(nn.Module):
    """Two residual convolutions of one width."""

    def __init__(self, channels: int, width: int) -> None:
        super().__init__()
        self.width = width
        self.first = nn.Linear(width * channels, channels)
        self.second = nn.Linear(width * channels, channels)


class PublishedNetwork(nn.Module):
    """Compute unit vectors of texts from piece ids.

    The table is uint8 and is not trained: row i stands for
    table[i] * scales[i % G] + offsets[i % G].
    """

    table: Tensor  # (V, D)
    scales: Tensor  # (G,)
    offsets: Tensor  # (G,)

    def __init__(self, state: Mapping[str, Tensor], epsilon: float, precision: Precision) -> None:
        """Make a network of the sizes of a state, without its weights.

        Args:
            state: Tensors of a network.
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
        self.epsilon = epsilon
        self.precision = precision
        self.channels: int = len(state["branches.0.first.weight"])
        for name in ("table", "scales", "offsets"):
            self.register_buffer(name, torch.empty_like(state[name]))
        self.branches: nn.ModuleList = nn.ModuleList()
        for name, weight in state.items():
            if name.endswith(".first.weight"):
                self.branches.append(Branch(self.channels, weight.shape[1] // self.channels))
        channels = len(self.branches) * self.channels
        dim = self.dim
        units = len(state["dense.0.weight"])
        self.project: nn.Linear = nn.Linear(dim, channels)
        self.project_norm: nn.LayerNorm = nn.LayerNorm(channels, epsilon)
        self.norm: nn.LayerNorm = nn.LayerNorm(dim + channels, epsilon)
        self.output: nn.Linear = nn.Linear(dim + channels, dim)
        sizes = [(dim, units), (dim, units), (units, units), (units, dim), (units, dim), (dim, dim)]
        self.dense: nn.ModuleList = nn.ModuleList()
        for inputs, outputs in sizes:
            self.dense.append(nn.Linear(inputs, outputs, bias=False))

    @classmethod
    def of(
        cls, state: Mapping[str, Tensor], epsilon: float, precision: Precision
    ) -> PublishedNetwork:
        """Make the network of a state and use its tensors.

        If they do not fit, an error of Python or torch is raised.
        """
        with torch.device("meta"):  # new weights would only be discarded
            network = cls(state, epsilon, precision)
        network.load_state_dict(state, assign=True)
        for name, tensor in state.items():
            dtype = torch.uint8 if name == "table" else torch.float32
            if tensor.dtype != dtype or not is_finite(tensor):
                raise ValueError(f"{name} has another number type, or NaN or infinite values")
        return network

    @property
    def dim(self) -> int:
        """Dimension of piece and text embeddings."""
        return self.table.shape[1]

    def forward(self, ids: Tensor, offsets: Tensor) -> Tensor:
        """Embed texts.

        Args:
            ids: int64 (T,), the concatenated pieces of the texts, all below V.
            offsets: int64 (B + 1,): text i is ids[offsets[i]:offsets[i + 1]], at least one piece.

        Returns:
            float32 (B, D), of length 1.
        """
        if len(offsets) < 2:
            return self.scales.new_zeros(0, self.dim)
        pieces, places = ids.unique(return_inverse=True)
        group = pieces % len(self.scales)
        rows = self.table[pieces] * self.scales[group, None] + self.offsets[group, None]
        projected = self._product(rows, self.project.weight).float() + self.project.bias
        states = self.project_norm(projected).split(self.channels, 1)
        products = []
        for number, branch in enumerate(self._branches):
            products.append(self._products(states[number], branch.first.weight, branch.width))
        sums = []
        for begin, end, bounds in _blocks(offsets):
            sums.append(self._sums(rows, states, products, places[begin:end], bounds))
        counts = offsets.diff()[:, None].to(rows.dtype)
        total = self.norm.weight * torch.cat(sums) + counts * self.norm.bias
        mean = (self.output(total) + (counts - 1) * self.output.bias) / counts.sqrt()
        return self._last_layers(mean)

    @property
    def _branches(self) -> list[Branch]:
        return [cast("Branch", branch) for branch in self.branches]

    def _products(self, states: Tensor, weight: Tensor, width: int) -> Tensor:
        """Multiply states (N, C) by the kernel's part for each window position.

        The result is (width * (N + 1), C); the last products are zero.
        """
        channels = states.shape[1]
        taps = weight.view(channels, width, channels).transpose(0, 1).reshape(-1, channels)
        return self._product(F.pad(states, (0, 0, 0, 1)), taps).view(-1, channels)

    def _product(self, rows: Tensor, weight: Tensor) -> Tensor:
        """Apply a linear map in the chosen precision."""
        if self.precision == "bfloat16":
            return F.linear(rows.bfloat16(), weight.bfloat16())
        return F.linear(rows, weight)

    def _sums(
        self,
        rows: Tensor,
        states: Sequence[Tensor],
        products: Sequence[Tensor],
        places: Tensor,
        bounds: Tensor,
    ) -> Tensor:
        """Sum the normalized features over each text of a block, float (b, D + C * branches).

        Args:
            rows: Embeddings of U distinct pieces, float (U, D).
            states: Their states in each branch, float (U, C).
            products: Their products with the first kernel of each branch, (width * (U + 1), C).
            places: The block's pieces, as indices of distinct pieces, int64 (T,).
            bounds: Where texts begin in the block, int64 (b + 1,).
        """
        features = [rows[places]]
        around = _windows(bounds, max(branch.width for branch in self._branches))
        outside = places.new_full((1,), len(rows))
        pieces_around = torch.cat([places, outside])[around]
        for number, branch in enumerate(self._branches):
            first = _convolved(products[number], pieces_around, branch.width) + branch.first.bias
            hidden = states[number][places] + first.relu_()
            hidden_products = self._products(hidden, branch.second.weight, branch.width)
            second = _convolved(hidden_products, around, branch.width) + branch.second.bias
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
    """Divide texts into blocks of about `BLOCK` pieces.

    A block has its first piece, its end, and offsets in the block, int64 (b + 1,).
    """
    blocks = []
    edges = offsets.tolist()
    begin = 0
    for end in range(1, len(edges)):
        if end + 1 == len(edges) or edges[end + 1] - edges[begin] > BLOCK:
            bounds = offsets[begin : end + 1] - offsets[begin]
            blocks.append((edges[begin], edges[end], bounds))
            begin = end
    return blocks


def _windows(bounds: Tensor, widest: int) -> Tensor:
    """Return the positions around each piece, int64 (T, widest).

    Positions outside the piece's text are T.
    """
    counts = bounds.diff()
    total = int(bounds[-1])
    begins = bounds[:-1].repeat_interleave(counts, output_size=total)[:, None]
    ends = bounds[1:].repeat_interleave(counts, output_size=total)[:, None]
    left = (widest - 1) // 2
    shifts = torch.arange(-left, widest - left, device=bounds.device)
    around = torch.arange(total, device=bounds.device)[:, None] + shifts
    return around.masked_fill((around < begins) | (around >= ends), total)


def _convolved(products: Tensor, around: Tensor, width: int) -> Tensor:
    """Sum products over windows, float32 (T, C).

    A window of even width has one more position on its right.
    """
    left = (around.shape[1] - 1) // 2 - (width - 1) // 2
    index = around[:, left : left + width] * width + torch.arange(width, device=around.device)
    return F.embedding_bag(index, products, mode="sum").float()
