"""The whole training step as one compiled call: catch up, embed, loss, gradients, row-lazy Adam.

Without dropout it computes what `TokenEmbedding`, `MeanPool`, `MarginHardNegativeLoss` and `RowLazyAdam` compute
together, to float32 rounding. It works on the optimizer's own state, so that each can take over where the other
stopped. No tensor of all tokens exists, nothing is allocated, and a row's gradient never leaves the processor's first
cache.

Dropout draws other masks than torch would, with the same odds, so that the two train different models. A mask follows
from the seed, the number of the step and the token's place in the batch, so that it need not be stored for the backward
pass, and a resumed run, or one with another number of threads, draws the same ones. The probability is rounded to a
multiple of 2^-16.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from sentence_transformers import SentenceTransformer
from torch import Tensor, nn

from st_paragram.core.native import kernels
from st_paragram.core.native import obstacle as missing_kernels
from st_paragram.learning.losses.margin_hard_negative import MarginHardNegativeLoss
from st_paragram.learning.models.averaging import averaging_embedding
from st_paragram.learning.training.mega_batch.lesson import Lesson
from st_paragram.learning.training.mega_batch.mega_batch import MegaBatchTexts
from st_paragram.learning.training.row_lazy_adam import RowLazyAdam

_STATE = ("exp_avg", "exp_avg_sq", "last_step", "step", "moves", "moves_from")


class CompiledStep:
    """Optimizer steps of the margin loss on a float32 CPU table."""

    def __init__(
        self,
        optimizer: RowLazyAdam,
        table: Tensor,
        margin: float,
        dropout: float = 0.0,
        seed: int = 0,
        weight: float = 1.0,
        lesson: Lesson | None = None,
        matryoshka_dims: Sequence[int] = (),
    ) -> None:
        """Work on a table and on its optimizer's state.

        Args:
            optimizer: holds the state, which counts the steps.
            table: a parameter of `optimizer`, float32 (V, D).
            margin: of the loss.
            dropout: probability, in [0, 1), of dropping a component of a token's embedding.
            seed: of dropout.
            weight: of the margin loss.
            lesson: what a teacher adds to the loss of mega-batches that have `targets`.
            matryoshka_dims: numbers of components, below D and rising, that the loss is also of.
        """
        self.optimizer = optimizer
        self.table = table
        self.margin = margin
        self.dropout = dropout
        self.seed = seed % 2**64
        self.weight = weight
        self.lesson = lesson
        self._dims = np.array([*matryoshka_dims, table.shape[1]], np.int64) if matryoshka_dims else None
        self._arrays: list[Tensor] = []

    @staticmethod
    def obstacle(model: SentenceTransformer, loss: nn.Module, max_grad_norm: float) -> str | None:
        """Why a training run cannot use the compiled step, in a few words; None if it can."""
        if missing := missing_kernels():
            return missing
        embedding = averaging_embedding(model)
        if embedding is None:
            return "other modules than TokenEmbedding and MeanPool"
        table = embedding.embedding.weight
        if table.device.type != "cpu" or table.dtype != torch.float32:
            return f"a table of {str(table.dtype).removeprefix('torch.')} on {table.device.type}"
        if type(loss) is not MarginHardNegativeLoss:
            return f"the loss {type(loss).__name__}"
        return "clipping" if max_grad_norm > 0 else None

    def train(self, texts: MegaBatchTexts, columns: NDArray[np.int64]) -> float:
        """Make a step and return its loss.

        Args:
            texts: the mega-batch.
            columns: int64 (4, B), sentences of `texts`: s, t, negative of s, negative of t.
        """
        rate = float(self.optimizer.param_groups[0]["lr"])
        columns, threads = np.ascontiguousarray(columns), torch.get_num_threads()
        settings = (self.margin, rate, threads, self.dropout, self.seed, self.weight)
        lesson, targets = self.lesson, texts.targets
        if lesson is None or targets is None:
            return float(self._compiled().train(texts.ids, texts.offsets, columns, *settings, None, self._dims))
        of_batch, taught = targets[columns[:2, :: lesson.every].ravel()], list[float]()

        def teach(embeddings: NDArray[np.float32]) -> NDArray[np.float32]:
            loss, gradient = lesson.gradient(embeddings, of_batch)
            taught.append(loss)
            return gradient

        loss = float(self._compiled().train(texts.ids, texts.offsets, columns, *settings, teach, self._dims))
        return loss + taught[0]

    def embed(self, texts: MegaBatchTexts) -> Tensor:
        """Embeddings of all sentences, float32 (2n, D), no dropout, the parameters as dense Adam would have them."""
        threads = torch.get_num_threads()
        self._compiled().catch_up(texts.ids, threads)
        result = torch.empty(len(texts.offsets) - 1, self.table.shape[1])
        kernels().mean_rows(self.table.detach().numpy(), texts.ids, texts.offsets, result.numpy(), False, threads)
        return result

    def _compiled(self):  # type: ignore[no-untyped-def]  # noqa: ANN202 - a compiled class without type stubs
        """The compiled optimizer on the present state; loading a checkpoint puts another state in its place.

        Raises:
            SettingsError: a state that leads outside its arrays.
        """
        state = self.optimizer.state_of(self.table)
        arrays = [self.table.data, *(state[name] for name in _STATE if name in state)]
        if not _same(arrays, self._arrays):
            group = self.optimizer.param_groups[0]
            numbers = [array.numpy() for array in arrays]
            self._kernel = kernels().TrainingStep(*numbers, *group["betas"], group["eps"], self.optimizer.window)
            self._arrays = arrays
        return self._kernel


def _same(arrays: list[Tensor], before: list[Tensor]) -> bool:
    """Whether tensors are those of before, still at the same place."""
    return [array.data_ptr() for array in arrays] == [array.data_ptr() for array in before]
