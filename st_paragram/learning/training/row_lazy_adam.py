"""Adam on an embedding table at the cost of the rows that a batch touches."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from st_paragram.errors import SettingsError
from st_paragram.learning.modules import huge_pages
from st_paragram.learning.training.row_lazy_state import check_saved, converges, window

_BLOCK = 4096  # rows moved at a time where the whole table is walked
_LONGEST_SLEEP = 4096  # steps after which all rows are woken, so that the sums are kept for as many steps only


class RowLazyAdam(torch.optim.Optimizer):
    """Dense Adam (Kingma and Ba, 2015) on embedding tables with sparse gradients, row by row.

    Dense Adam moves every row at every step, since the moments of a row without gradient decay and go on moving it.
    Here such a row sleeps, and catches up when it is looked up again. At step t of its sleep, j steps after its last
    gradient, it would have moved by

        lr_t * r^j * h_t * m,   r = β1 / sqrt(β2),   h_t = sqrt(1 - β2^t) / (1 - β1^t),
                                                     e_tj = ε * sqrt(1 - β2^t) * β2^(-j/2)

    over sqrt(v) + e_tj, with m and v as they were. For every step l at which a row may have gone to sleep, the sums of
    lr_t * r^j * h_t and of its products with the first three powers of e_tj are kept (a few hundred additions a step).
    Catching up is then one lookup and two divisions: the two-point Gauss rule that these four moments define replaces
    all the steps. Any learning-rate schedule is followed. No weight decay, no AMSGrad.

    Call `watch(module)` once, so that the rows are up to date whenever the module reads them. The table's other rows
    are behind between steps: use `caught_up()` or `catch_up_all()` before reading the table itself.
    """

    def __init__(
        self,
        params: Iterable[nn.Parameter],
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
    ) -> None:
        """Optimize tables of shape (rows, D).

        Raises:
            SettingsError: rates or betas outside Adam's range.
        """
        if not converges(lr, betas, eps):
            raise SettingsError(f"lr {lr}, betas {betas}, eps {eps}: not a setting of Adam that converges")
        super().__init__(params, {"lr": lr, "betas": betas, "eps": eps})

    def watch(self, module: Any) -> None:  # noqa: ANN401 - anything with `embedding` and `before_lookup`
        """Bring rows up to date whenever `module` (a `TokenEmbedding`) looks them up."""
        table = module.embedding.weight
        module.before_lookup = lambda ids: self.catch_up(table, ids)

    @property
    def window(self) -> int:
        """Steps after which what is left of a row's momentum, (β1 / sqrt(β2))^steps, is below float32's resolution."""
        return window(self.param_groups[0]["betas"])

    def state_of(self, table: Tensor) -> dict[str, Any]:
        """The state of a table, made on first use; see the class for what it holds."""
        state = self.state[table]
        if not state:
            state["exp_avg"] = _zeros_like(table)
            state["exp_avg_sq"] = _zeros_like(table)
            state["last_step"] = torch.zeros(len(table), dtype=torch.long, device=table.device)
            state["step"] = torch.zeros((), dtype=torch.long)
            # Moments 0..3 of what a row has to move, for each step at which it may have gone to sleep (see the class).
            state["moves"] = torch.zeros(4, _LONGEST_SLEEP, dtype=torch.float64, device=table.device)
            state["moves_from"] = torch.zeros((), dtype=torch.long)  # the step of the first column
        return state

    @torch.no_grad()
    def step(self, closure: Callable[[], Any] | None = None) -> Any:  # noqa: ANN401
        """Make one step of Adam.

        Raises:
            SettingsError: a table whose gradient is dense.
        """
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        for group in self.param_groups:
            for table in group["params"]:
                if table.grad is None:
                    continue
                if not table.grad.is_sparse:
                    raise SettingsError("RowLazyAdam needs sparse gradients: set sparse_gradient=True on the embedding")
                rows, values = rows_and_values(table.grad)
                if len(rows) > 0:  # else a step of nothing, which torch's SparseAdam skips, too
                    self._step_rows(table, group, rows, values)
        return loss

    def _step_rows(self, table: Tensor, group: dict[str, Any], rows: Tensor, gradient: Tensor) -> None:
        state = self.state_of(table)
        step = int(state["step"])
        slept = step - int(state["moves_from"])
        if not 0 <= slept <= _LONGEST_SLEEP:
            raise SettingsError(f"step {step}, of which {slept} are remembered: the optimizer's state was changed")
        wake_all = slept == _LONGEST_SLEEP
        early = step < window(group["betas"]) // 8
        # In the first steps ε's weight changes too fast for the rule that replaces a sleep: there, no row sleeps.
        self.catch_up(table, torch.arange(len(table), device=table.device) if wake_all or early else rows)
        if wake_all:
            state["moves_from"].fill_(step)
            state["moves"].zero_()
        state["step"] += 1
        step, (beta1, beta2) = int(state["step"]), group["betas"]
        scale1, scale2 = 1 - beta1**step, (1 - beta2**step) ** 0.5
        moment = state["exp_avg"].index_select(0, rows).lerp_(gradient, 1 - beta1)
        square = state["exp_avg_sq"].index_select(0, rows).mul_(beta2).addcmul_(gradient, gradient, value=1 - beta2)
        state["exp_avg"].index_copy_(0, rows, moment)
        state["exp_avg_sq"].index_copy_(0, rows, square)
        state["last_step"][rows] = step
        table.index_add_(
            0, rows, moment.div_(square.sqrt_().div_(scale2).add_(group["eps"])), alpha=-group["lr"] / scale1
        )
        self._extend_sums(state, group, step, scale2 / scale1, scale2)

    @staticmethod
    def _extend_sums(state: dict[str, Any], group: dict[str, Any], step: int, height: float, scale2: float) -> None:
        """Add step's move to the sums of the rows that may be asleep since steps step - 1, step - 2, ..."""
        beta1, beta2 = group["betas"]
        begin = int(state["moves_from"])
        first = max(begin, step - window(group["betas"]))
        asleep = torch.arange(step - first, 0, -1, dtype=torch.float64, device=state["moves"].device)
        move = group["lr"] * height * (beta1 / beta2**0.5) ** asleep
        epsilon = scale2 * beta2 ** (-asleep / 2)  # in units of ε
        state["moves"][:, first - begin : step - begin] += torch.stack([move * epsilon**power for power in range(4)])

    @torch.no_grad()
    def catch_up(self, table: Tensor, ids: Tensor) -> None:
        """Make the steps that rows have slept through.

        Args:
            table: one of the optimizer's parameters.
            ids: int64 of any shape, repeated ids allowed.
        """
        state = self.state.get(table)
        if not state:
            return
        last, step = state["last_step"], int(state["step"])
        wanted = torch.zeros(len(table), dtype=torch.bool, device=table.device)
        wanted[ids.reshape(-1)] = True
        rows = (wanted & (last > 0) & (last < step)).nonzero().view(-1)
        beta1, beta2 = self._group(table)["betas"]
        for part in rows.split(_BLOCK):
            slept = (step - last[part]).double()
            moment = state["exp_avg"].index_select(0, part)
            square = state["exp_avg_sq"].index_select(0, part)
            table.index_add_(0, part, self._slept_move(table, last[part], moment, square), alpha=-1)
            moment.mul_((beta1**slept).to(moment.dtype)[:, None])
            square.mul_((beta2**slept).to(square.dtype)[:, None])
            state["exp_avg"].index_copy_(0, part, moment)
            state["exp_avg_sq"].index_copy_(0, part, square)
            last[part] = step

    def _slept_move(self, table: Tensor, last: Tensor, moment: Tensor, square: Tensor) -> Tensor:
        """Moves of rows, float (n, D), from their moments and the steps `last`, int64 (n,), of their last gradients."""
        moves, columns = self.state[table]["moves"], last - int(self.state[table]["moves_from"])
        if bool(((columns < 0) | (columns >= moves.shape[1])).any()):
            raise SettingsError(
                "the optimizer state is inconsistent, with missing steps; resume from another checkpoint"
            )
        total, nodes, weights = _gauss_rule(moves[:, columns])
        nodes, weights = (nodes * self._group(table)["eps"]).float(), (weights * total).float()
        root = square.sqrt()
        result = moment * weights[0, :, None] / (root + nodes[0, :, None])
        if weights[1].any():
            result += moment * weights[1, :, None] / (root + nodes[1, :, None])
        return result

    def catch_up_all(self) -> None:
        """Bring all tables up to date, as dense Adam would have left them."""
        for table, state in self.state.items():
            if state:
                self.catch_up(table, torch.arange(len(table), device=table.device))

    @contextmanager
    def caught_up(self) -> Iterator[None]:
        """Within the block the tables are as dense Adam would have left them; after it as before, to the bit."""
        sleeping: list[tuple[Tensor, Tensor, Tensor]] = []
        with torch.no_grad():
            for table, state in self.state.items():
                if not state:
                    continue
                last = state["last_step"]
                rows = ((last > 0) & (last < int(state["step"]))).nonzero().view(-1)
                sleeping.append((table, rows, table.index_select(0, rows)))
                for part in rows.split(_BLOCK):
                    moment, square = (state[name].index_select(0, part) for name in ("exp_avg", "exp_avg_sq"))
                    table.index_add_(0, part, self._slept_move(table, last[part], moment, square), alpha=-1)
        try:
            yield
        finally:
            with torch.no_grad():
                for table, rows, before in sleeping:
                    table.index_copy_(0, rows, before)

    def _group(self, table: Tensor) -> dict[str, Any]:
        return next(group for group in self.param_groups if any(p is table for p in group["params"]))

    def state_dict(self) -> dict[str, Any]:
        """State with the tables themselves: their sleeping rows are behind those of a saved model."""
        result = super().state_dict()
        tables = [table for group in self.param_groups for table in group["params"]]
        result["tables"] = [table.detach() for table in tables]
        return result

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take over state and tables, so that training is resumed to the bit.

        Raises:
            SettingsError: the state of other tables; nothing has changed.
        """
        tables = [table for group in self.param_groups for table in group["params"]]
        groups = [group["params"] for group in super().state_dict()["param_groups"]]
        check_saved(state_dict, tables, groups, _LONGEST_SLEEP)
        state_dict = dict(state_dict)
        saved = state_dict.pop("tables")
        super().load_state_dict(state_dict)
        with torch.no_grad():
            for index, (table, values) in enumerate(zip(tables, saved, strict=True)):
                table.copy_(values)
                # torch casts floating-point state to the table's type; the sums and counters must keep theirs.
                given = state_dict["state"].get(index, {})
                for name in ("last_step", "step", "moves", "moves_from"):
                    if name in given:
                        device = "cpu" if name in ("step", "moves_from") else table.device
                        self.state[table][name] = given[name].clone(memory_format=torch.contiguous_format).to(device)
                for name in ("exp_avg", "exp_avg_sq"):
                    if name in self.state[table]:
                        self.state[table][name] = _zeros_like(table).copy_(self.state[table][name])


def _zeros_like(table: Tensor) -> Tensor:
    """Zeros; on the CPU in huge pages, since rows are visited in no order."""
    on_cpu = table.device.type == "cpu"
    return huge_pages.empty(tuple(table.shape), table.dtype).zero_() if on_cpu else torch.zeros_like(table)


def rows_and_values(gradient: Tensor) -> tuple[Tensor, Tensor]:
    """Rows, int64 (n,), each once, and values, float (n, D), of a sparse gradient, copied only if need be.

    autograd forgets that a gradient is coalesced; looking costs less than sorting and copying it again.
    """
    rows = gradient._indices()[0]
    if not (rows[1:] > rows[:-1]).all():
        gradient = gradient.coalesce()
    return gradient._indices()[0], gradient._values()


def _gauss_rule(moments: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Two points with the same moments 0..3 as each of n positive measures, float64 (4, n).

    Returns:
        The totals (n,), the points (2, n) and their shares of the total (2, n). Where the spread is below a
        hundredth of the mean (always, after some hundred steps), the mean alone, with share 1, is exact enough.
    """
    total = moments[0].clamp(min=torch.finfo(torch.float64).tiny)  # a learning rate of 0 must not give 0 / 0
    first, second, third = moments[1:] / total
    variance = second - first**2
    spread = torch.where(variance > (0.01 * first) ** 2, variance, 0.0).sqrt()
    skewness = (third - 3 * first * variance - first**3) / spread.clamp(min=1e-6) ** 3
    z = torch.stack([skewness + (skewness**2 + 4).sqrt(), skewness - (skewness**2 + 4).sqrt()]) / 2
    shares = torch.where(spread > 0, 1 / (1 + z**2), torch.tensor([[1.0], [0.0]], dtype=z.dtype, device=z.device))
    return moments[0], (first + spread * z).clamp(min=1e-12), shares
