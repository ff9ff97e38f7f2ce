"""The training step of an averaging model as one compiled call: embedding, loss, Adam."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from sentence_transformers import SentenceTransformer
from torch import Tensor, nn
from transformers import TrainingArguments

from st_paragram.core.arrays import Vectors
from st_paragram.core.native import kernels
from st_paragram.core.native import obstacle as missing_kernels
from st_paragram.errors import SettingsError
from st_paragram.families.psp.margin_hard_negative import MarginHardNegativeLoss
from st_paragram.families.psp.mega_batch import Ids, Rows
from st_paragram.learning.models.averaging import averaging_embedding
from st_paragram.learning.modules import huge_pages

# steps after which all rows are updated, which bounds the sums that must be kept
_LONGEST_SLEEP = 4096
_LEFT = 1e-12  # remaining share of a row's momentum at the end of the window
_SMALLEST_BETA = 1e-3


class CompiledAdam(torch.optim.Optimizer):
    """Dense Adam (Kingma and Ba, 2015) on a table at the cost of the rows that a batch touches.

    `make_step` is a whole step, equal to `TokenEmbedding`, `MeanPool`, `MarginHardNegativeLoss` and
    dense Adam, up to float32 rounding. No tensor of all tokens is made, and a row's gradient stays
    in the first-level cache. As an optimizer, this class holds the state for checkpoints; its
    `step` does nothing.

    Dense Adam moves every row at every step, since the moments of a row without gradient decay and
    continue to move it. Here such a row sleeps, and catches up when it is looked up again. At step
    t of its sleep, j steps after its last gradient, it would have moved by

        lr_t * r^j * h_t * m,   r = β1 / sqrt(β2),   h_t = sqrt(1 - β2^t) / (1 - β1^t),
                                                     e_tj = ε * sqrt(1 - β2^t) * β2^(-j/2)

    divided by sqrt(v) + e_tj, with m and v unchanged. For every step l at which a row may have gone
    to sleep, `moves` has the sums of lr_t * r^j * h_t and of its products with the first three
    powers of e_tj (a few hundred additions per step). Catching up then takes one lookup and two
    divisions: the two-point Gauss rule with these four moments replaces all the steps. In the first
    steps, ε's weight changes too fast for that rule, so no row sleeps. Any learning-rate schedule
    works.

    Dropout masks differ from torch's, with the same probability. A mask depends only on the seed,
    the step number and the token's position in the batch, so a resumed run, or a run with another
    number of threads, draws the same masks. The probability is rounded to a multiple of 2^-16.
    """

    def __init__(
        self,
        table: nn.Parameter,
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        unknown_ids: Sequence[int] = (),
    ) -> None:
        """Optimize a table, float32 (V, D) on the CPU; it is moved to huge pages.

        Rows of `unknown_ids` that are zeros stay zeros: texts without a known token have no
        direction.
        """
        decay = math.inf
        if betas[1] > 0:
            decay = max(betas[0], _SMALLEST_BETA) / betas[1] ** 0.5
        if not (lr >= 0 and eps > 0 and 0 <= betas[0] < 1 and betas[1] < 1 and decay < 1):
            raise SettingsError(
                f"lr {lr}, betas {betas}, eps {eps}: Adam does not converge with these; change them"
            )
        super().__init__([table], {"lr": lr, "betas": betas, "eps": eps})
        table.data = huge_pages.copy_of(table.data)
        self.table = table
        first_moments = huge_pages.empty(tuple(table.shape)).zero_()
        second_moments = huge_pages.empty(tuple(table.shape)).zero_()
        self.state[table] = {
            "exp_avg": first_moments,
            "exp_avg_sq": second_moments,
            # last step with a gradient for each row; 0: never
            "last_step": torch.zeros(len(table), dtype=torch.long),
            "step": torch.zeros((), dtype=torch.long),
            "moves": torch.zeros(4, _LONGEST_SLEEP, dtype=torch.float64),
            "moves_from": torch.zeros((), dtype=torch.long),  # the step of the first column
        }
        self._rows_of_zeros = []
        for row in unknown_ids:
            if not table.data[row].any():
                self._rows_of_zeros += [table.data[row], first_moments[row], second_moments[row]]
        # After so many steps, momentum is below float32's resolution.
        window = math.ceil(math.log(_LEFT) / math.log(decay))
        arrays = [array.numpy() for array in self._arrays().values()]
        self._kernel = kernels().TrainingStep(*arrays, *betas, eps, window)
        # Without this mark, accelerate wraps the optimizer, and its wrapper takes longer than many
        # steps.
        self._is_accelerate_prepared = True
        self.step_was_skipped = False

    @staticmethod
    def obstacle(
        model: SentenceTransformer, loss: nn.Module, args: TrainingArguments
    ) -> str | None:
        """Return why a training run cannot use the compiled step, in a few words, or None."""
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
        if args.weight_decay:
            return "weight decay"
        return "clipping" if args.max_grad_norm > 0 else None

    def make_step(
        self,
        ids: Ids,
        offsets: Rows,
        columns: Rows,
        margin: float,
        dropout: float = 0.0,
        seed: int = 0,
        further: Callable[[Vectors], Vectors] | None = None,
    ) -> float:
        """Make a step on `columns` of sentences, int64 (4, B); return the margin loss.

        `ids`, `offsets` and `columns` are as in `MegaBatchTexts`; `dropout` is the probability, in
        [0, 1), of dropping a component of a token's embedding. `further` returns the gradient of an
        additional loss term, float32 (2B, D), for the embeddings of all s and then all t.
        """
        rate = float(self.param_groups[0]["lr"])
        threads = torch.get_num_threads()
        columns = np.ascontiguousarray(columns)
        seed %= 2**64
        loss: float = self._kernel.train(
            ids, offsets, columns, margin, rate, threads, dropout, seed, further
        )
        for row in self._rows_of_zeros:
            row.zero_()
        return loss

    def embed(self, ids: Ids, offsets: Rows) -> Tensor:
        """Embed sentences with dense Adam's weights, float32 (n, D), without dropout."""
        threads = torch.get_num_threads()
        self._kernel.catch_up(ids, threads)
        result = torch.empty(len(offsets) - 1, self.table.shape[1])
        table = self.table.detach().numpy()
        kernels().mean_rows(table, ids, offsets, result.numpy(), False, threads)
        return result

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Do nothing: `make_step` has made the step."""

    def catch_up(self) -> None:
        """Update all rows to the state of dense Adam."""
        self._kernel.catch_up(np.arange(len(self.table), dtype=np.int32), torch.get_num_threads())

    @contextmanager
    def caught_up(self) -> Iterator[None]:
        """Give the table the state of dense Adam within the block, and then restore it exactly."""
        before = self.table.detach().clone()
        self._kernel.move_all(torch.get_num_threads())
        try:
            yield
        finally:
            self.table.data.copy_(before)

    def _arrays(self) -> dict[str, Tensor]:
        return {"table": self.table.detach(), **self.state[self.table]}

    def state_dict(self) -> dict[str, Any]:
        """Return the state, with the table, whose sleeping rows differ from a saved model's."""
        return super().state_dict() | {"table": self.table.detach()}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Load state and table, in place, so that training resumes with identical results."""
        loaded = {"table": state_dict.get("table"), **state_dict["state"][0]}
        for name, tensor in self._arrays().items():
            stored = loaded.get(name)
            if stored is None or stored.shape != tensor.shape or stored.dtype != tensor.dtype:
                raise SettingsError(
                    "the optimizer's state belongs to another table; resume with the same settings"
                )
            tensor.copy_(stored)
        (group,) = state_dict["param_groups"]
        self.param_groups[0].update({**group, "params": [self.table]})
