import copy
import io

import pytest
import torch

from st_paragram.errors import SettingsError
from st_paragram.learning.training.row_lazy_adam import RowLazyAdam

ROWS, DIM = 120, 6


def sparse(rows, values):
    size = (ROWS, values.shape[1])
    return torch.sparse_coo_tensor(rows[None], values, size, is_coalesced=True, check_invariants=False)


def gradients(steps, scale=None, seed=0):
    """Rows and gradients of each step; some rows come always, others rarely, one never, one only at first."""
    generator = torch.Generator().manual_seed(seed)
    for step in range(steps):
        often = torch.randint(2, 12, (5,), generator=generator)
        rarely = torch.randint(12, ROWS - 1, (2,), generator=generator)
        rows = torch.cat([often, rarely, torch.tensor([0] if step < 3 else [2])]).unique()
        size = 10 ** (torch.randn(1, generator=generator, dtype=torch.float64).item() - 3) if scale is None else scale
        yield rows, torch.randn(len(rows), DIM, generator=generator, dtype=torch.float64) * size


def run(steps, rate=lambda step: 1e-2, scale=None, betas=(0.9, 0.999)):
    """A table trained by RowLazyAdam in float32, and by torch's dense Adam in float64."""
    torch.manual_seed(0)
    start = torch.randn(ROWS, DIM, dtype=torch.float64)
    lazy = torch.nn.Parameter(start.float().clone())
    dense = torch.nn.Parameter(start.clone())
    lazy_adam, dense_adam = RowLazyAdam([lazy], betas=betas), torch.optim.Adam([dense], betas=betas)
    for step, (rows, values) in enumerate(gradients(steps, scale)):
        for optimizer in (lazy_adam, dense_adam):
            optimizer.param_groups[0]["lr"] = rate(step)
        lazy.grad = sparse(rows, values.float())
        lazy_adam.step()
        dense.grad = torch.zeros_like(dense).index_copy_(0, rows, values)
        dense_adam.step()
    return lazy, lazy_adam, dense


@pytest.mark.parametrize("scale", [None, 1.0, 1e-8, 1e-10])
@pytest.mark.parametrize("schedule", ["constant", "decaying"])
def test_follows_dense_adam(scale, schedule):
    lazy, optimizer, dense = run(
        250, (lambda s: 1e-2) if schedule == "constant" else (lambda s: 1e-2 * (1 - s / 250)), scale
    )
    asleep = (lazy.double() - dense).abs().max()
    optimizer.catch_up_all()
    torch.testing.assert_close(lazy.double(), dense, atol=1e-5, rtol=0)
    assert asleep > 5e-5  # else nothing would have been asleep, and the test would show nothing


@pytest.mark.parametrize("betas", [(0.5, 0.9), (0.98, 0.999), (0.99, 0.9999), (0.0, 0.99)])
def test_follows_dense_adam_with_other_betas(betas):
    lazy, optimizer, dense = run(450, betas=betas)
    optimizer.catch_up_all()
    torch.testing.assert_close(lazy.double(), dense, atol=3e-5, rtol=0)


def test_all_rows_wake_now_and_then(monkeypatch):
    monkeypatch.setattr("st_paragram.learning.training.row_lazy_adam._LONGEST_SLEEP", 100)
    lazy, optimizer, dense = run(250)
    assert optimizer.state[lazy]["moves"].shape == (4, 100)
    optimizer.catch_up_all()
    torch.testing.assert_close(lazy.double(), dense, atol=1e-5, rtol=0)


def test_a_long_sleep_stays_finite(monkeypatch):
    """After a thousand steps the decayed moments underflow to 0, where 0 / 0 would lie in wait."""
    monkeypatch.setattr("st_paragram.learning.training.row_lazy_adam._LONGEST_SLEEP", 1200)
    lazy, optimizer, _ = run(40)
    for _ in range(1400):
        lazy.grad = sparse(torch.tensor([ROWS - 1]), torch.zeros(1, DIM))
        optimizer.step()
    optimizer.catch_up_all()
    state = optimizer.state[lazy]
    assert (state["exp_avg"][:12] == 0).all() and torch.isfinite(state["exp_avg_sq"]).all()
    before = lazy.detach().clone()
    lazy.grad = sparse(torch.tensor([0]), torch.ones(1, DIM))
    optimizer.step()
    assert torch.isfinite(lazy).all() and not torch.equal(lazy, before)


def test_learning_rate_zero_moves_nothing():
    lazy, optimizer, _ = run(20, rate=lambda step: 0.0)
    optimizer.catch_up_all()
    torch.manual_seed(0)
    assert torch.equal(lazy, torch.randn(ROWS, DIM, dtype=torch.float64).float())


def test_catching_up_twice_changes_nothing():
    lazy, optimizer, _ = run(50)
    optimizer.catch_up(lazy, torch.arange(30))
    once = lazy.detach().clone()
    optimizer.catch_up(lazy, torch.arange(30).repeat(2))
    assert torch.equal(lazy, once)


def test_caught_up_is_temporary_to_the_bit():
    lazy, optimizer, dense = run(60)
    before = lazy.detach().clone()
    with optimizer.caught_up():
        torch.testing.assert_close(lazy.double(), dense, atol=2e-5, rtol=0)
    assert torch.equal(lazy, before) and not torch.allclose(lazy.double(), dense, atol=1e-3)


def test_saved_state_resumes_to_the_bit():
    whole, _, _ = run(300)
    lazy, optimizer, _ = run(170)
    file = io.BytesIO()
    torch.save(optimizer.state_dict(), file)
    file.seek(0)
    fresh = torch.nn.Parameter(torch.zeros(ROWS, DIM))
    resumed = RowLazyAdam([fresh])
    resumed.load_state_dict(torch.load(file, weights_only=True))
    for step, (rows, values) in enumerate(gradients(300)):
        if step >= 170:
            fresh.grad = sparse(rows, values.float())
            resumed.step()
    assert torch.equal(fresh, whole) and not torch.equal(lazy, whole)


def test_dense_gradients_are_refused():
    table = torch.nn.Parameter(torch.zeros(3, 2))
    table.grad = torch.ones(3, 2)
    with pytest.raises(SettingsError, match="sparse gradients"):
        RowLazyAdam([table]).step()


@pytest.mark.parametrize("bad", [{"lr": -1.0}, {"eps": 0.0}, {"betas": (1.0, 0.999)}, {"betas": (0.99, 0.9)}])
def test_settings_outside_adam_are_refused(bad):
    with pytest.raises(SettingsError):
        RowLazyAdam([torch.nn.Parameter(torch.zeros(3, 2))], **bad)


def test_a_step_without_rows_is_none():
    lazy, optimizer, _ = run(20)
    before = lazy.detach().clone()
    lazy.grad = sparse(torch.zeros(0, dtype=torch.long), torch.zeros(0, DIM))
    optimizer.step()
    assert torch.equal(lazy, before) and int(optimizer.state[lazy]["step"]) == 20


UNUSABLE = {
    "sums from now on": (lambda saved, s: s["moves_from"].fill_(151), "moves_from is 151 at step 150"),
    "sums from long ago": (lambda saved, s: s["moves_from"].fill_(-5), "moves_from is -5 at step 150"),
    "more steps than sums": (lambda saved, s: s["step"].fill_(10**7), "moves_from is 0 at step 10000000"),
    "few sums": (lambda saved, s: s.update(moves=s["moves"][:, :9]), r"moves is torch.float64 \[4, 9\]"),
    "another type": (lambda saved, s: s.update(exp_avg=s["exp_avg"].double()), "exp_avg is torch.float64"),
    "rows of another table": (lambda saved, s: s.update(last_step=s["last_step"][:-1]), r"last_step is .* \[119\]"),
    "another table": (lambda saved, s: saved.update(tables=[saved["tables"][0][:1]]), r"the table is .* \[1, 6\]"),
    "a table more": (lambda saved, s: saved.update(tables=saved["tables"] * 2), "not that of the same tables"),
    "other groups": (lambda saved, s: saved["param_groups"][0].update(params=[0, 1]), "not that of the same tables"),
    "betas": (lambda saved, s: saved["param_groups"][0].update(betas=(0.99, 0.5)), "not those of an Adam"),
}  # fmt: skip


@pytest.mark.parametrize("kind", UNUSABLE)
def test_the_state_of_another_table_is_refused(kind):
    saved, (change, message) = copy.deepcopy(run(150)[1].state_dict()), UNUSABLE[kind]
    change(saved, saved["state"][0])
    lazy, optimizer, _ = run(10)
    before = lazy.detach().clone()
    with pytest.raises(SettingsError, match=f"the optimizer's state cannot be used: .*{message}") as error:
        optimizer.load_state_dict(saved)
    assert "\n" not in str(error.value)
    assert torch.equal(lazy, before) and int(optimizer.state[lazy]["step"]) == 10


@pytest.mark.parametrize(("name", "value"), [("last_step", -(2**40)), ("moves_from", -(10**9)), ("step", 10**7)])
def test_a_state_that_was_changed_is_not_used(name, value):
    lazy, optimizer, _ = run(60)
    optimizer.state[lazy][name].view(-1)[:1] = value
    lazy.grad = sparse(torch.tensor([0, 1, 2]), torch.ones(3, DIM))
    if name == "last_step":  # such rows count as never touched
        optimizer.step()
    else:
        with pytest.raises(SettingsError, match="the optimizer's state was changed"):
            optimizer.step()
