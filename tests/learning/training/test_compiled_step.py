"""The compiled training step against torch: same rows, same moments, same losses, to float32 rounding."""

import itertools

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st

from st_paragram.core import native
from st_paragram.core.native import kernels
from st_paragram.errors import SettingsError
from st_paragram.learning.losses.margin_hard_negative import MarginHardNegativeLoss, margin_loss
from st_paragram.learning.modules.flat_features import flat_features
from st_paragram.learning.modules.mean_pool import _SparseMean
from st_paragram.learning.training.mega_batch.compiled_step import CompiledStep
from st_paragram.learning.training.mega_batch.mega_batch import MegaBatchTexts
from st_paragram.learning.training.mega_batch.schedule import MegaBatch
from st_paragram.learning.training.row_lazy_adam import RowLazyAdam

pytestmark = pytest.mark.skipif(kernels() is None, reason="the compiled kernels are not installed")

ROWS, PAIRS = 90, 12


def texts_of(generator, pairs=PAIRS, rows=ROWS, longest=9):
    counts = generator.integers(1, longest, 2 * pairs)
    ids = np.minimum(generator.zipf(1.3, counts.sum()), rows) - 1
    offsets = np.concatenate([[0], np.cumsum(counts)])
    return MegaBatchTexts(MegaBatch(0, 0, 1, 1), ids.astype(np.int32), offsets.astype(np.int64))


def columns_of(generator, pairs=PAIRS, batch=5):
    """s, t, a negative from the other side, and one from either."""
    s = generator.integers(0, pairs, batch)
    return np.stack(
        [s, s + pairs, generator.integers(pairs, 2 * pairs, batch), generator.integers(0, 2 * pairs, batch)]
    )


def torch_step(optimizer, table, texts, columns, margin, dropout=0.0, seed=0, dims=()):
    features = flat_features(*texts.take(columns.reshape(-1)))
    ids, offsets = features["input_ids"].view(-1), features["cu_seq_lens_q"]
    optimizer.catch_up(table, ids)
    optimizer.zero_grad()
    if dropout:
        step, dim = int(optimizer.state_of(table)["step"]), table.shape[1]
        masks = torch.from_numpy(kernels().dropout_mask(seed, step, len(ids), dim, dropout))
        tokens = F.embedding(ids, table, sparse=True) * masks / (1 - dropout)
        means = torch.stack([sentence.mean(0) for sentence in tokens.split(offsets.diff().tolist())])
    else:
        means = _SparseMean.apply(table, ids, offsets)
    embeddings = means.view(4, -1, table.shape[1])
    loss = margin_loss(*embeddings, margin, dims)
    loss.backward()
    optimizer.step()
    return loss.item()


def both(dim, steps, rate=lambda step: 1e-2, margin=0.4, seed=0, threads=1, start=1.0, dropout=0.0, dims=()):
    """Train one table with torch and one with the compiled step; return losses, tables and optimisers of each."""
    torch.set_num_threads(threads)
    generator = np.random.default_rng(seed)
    first = torch.randn(ROWS, dim, generator=torch.Generator().manual_seed(seed)) * start
    tables = [torch.nn.Parameter(first.clone()) for _ in range(2)]
    optimizers = [RowLazyAdam([table]) for table in tables]
    compiled = CompiledStep(optimizers[1], tables[1], margin, dropout, seed, matryoshka_dims=dims)
    losses = ([], [])
    for step in range(steps):
        texts = texts_of(generator)
        columns = columns_of(generator)
        for optimizer in optimizers:
            optimizer.param_groups[0]["lr"] = rate(step)
        losses[0].append(torch_step(optimizers[0], tables[0], texts, columns, margin, dropout, seed, dims))
        losses[1].append(compiled.train(texts, columns))
    torch.set_num_threads(1)
    return losses, tables, optimizers


@pytest.mark.parametrize("dim", [3, 16, 64, 130])
@pytest.mark.parametrize("threads", [1, 2])
def test_equals_torch(dim, threads):
    losses, tables, optimizers = both(dim, 80, threads=threads)
    np.testing.assert_allclose(losses[1], losses[0], atol=3e-5)
    states = [optimizer.state[table] for optimizer, table in zip(optimizers, tables, strict=True)]
    assert torch.equal(states[0]["last_step"], states[1]["last_step"])
    assert 0 < (states[0]["last_step"] < 80).sum() < ROWS, "nothing slept, or everything"
    torch.testing.assert_close(states[1]["moves"], states[0]["moves"], rtol=1e-9, atol=1e-300)
    for optimizer in optimizers:
        optimizer.catch_up_all()
    torch.testing.assert_close(tables[1], tables[0], atol=5e-5, rtol=0)
    torch.testing.assert_close(states[1]["exp_avg"], states[0]["exp_avg"], atol=1e-6, rtol=1e-4)
    torch.testing.assert_close(states[1]["exp_avg_sq"], states[0]["exp_avg_sq"], atol=1e-8, rtol=1e-4)


@pytest.mark.parametrize(("dim", "dims"), [(3, (1, 2)), (130, (16, 100)), (64, tuple(range(4, 64, 4)))])
@pytest.mark.parametrize("dropout", [0.0, 0.25])
def test_the_first_components_have_torchs_loss_and_gradient(dim, dims, dropout):
    """One step each, as rounding errors of single components grow in Adam."""
    for seed in range(8):
        losses, tables, optimizers = both(dim, 1, dropout=dropout, dims=dims, seed=seed)
        np.testing.assert_allclose(losses[1], losses[0], atol=2e-6)
        pairs = zip(optimizers, tables, strict=True)
        gradients = [optimizer.state[table]["exp_avg"] * 10 for optimizer, table in pairs]
        torch.testing.assert_close(gradients[1], gradients[0], atol=3e-6, rtol=1e-4)
    assert losses[1] != both(dim, 1, dropout=dropout, seed=seed)[0][1], "all components alone have another loss"


@pytest.mark.parametrize("dims", [(2, 2), (3, 1), (0, 2), (-1, 3), (4,), tuple(range(1, 5)), (1 << 40, 4)])
def test_components_that_a_table_lacks_are_refused(dims):
    generator = np.random.default_rng(5)
    table = torch.nn.Parameter(torch.randn(ROWS, 4))
    before = table.detach().clone()
    with pytest.raises(ValueError, match="dims that do not rise to the table's"):
        CompiledStep(RowLazyAdam([table]), table, 0.4, matryoshka_dims=dims).train(
            texts_of(generator), columns_of(generator)
        )
    assert torch.equal(table, before)


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("dim", [33, 100, 128, 200])
@pytest.mark.parametrize("dropout", [0.1, 0.3, 0.9])
def test_dropout_equals_torch_on_masked_tokens(dim, threads, dropout):
    """With p a multiple of 2^-16, to which the compiled step rounds it."""
    dropout = round(dropout * 65536) / 65536
    losses, tables, optimizers = both(dim, 25, threads=threads, dropout=dropout, seed=7)
    np.testing.assert_allclose(losses[1], losses[0], atol=3e-5)
    states = [optimizer.state[table] for optimizer, table in zip(optimizers, tables, strict=True)]
    for optimizer in optimizers:
        optimizer.catch_up_all()
    assert torch.equal(states[0]["last_step"], states[1]["last_step"])
    torch.testing.assert_close(tables[1], tables[0], atol=5e-5, rtol=0)
    torch.testing.assert_close(states[1]["exp_avg"], states[0]["exp_avg"], atol=2e-6, rtol=2e-4)
    torch.testing.assert_close(states[1]["exp_avg_sq"], states[0]["exp_avg_sq"], atol=1e-7, rtol=2e-4)


@pytest.mark.parametrize("dim", [1, 5, 20, 65])
@pytest.mark.parametrize("dropout", [0.1, 0.3, 0.9])
def test_dropout_has_torchs_loss_and_gradient(dim, dropout):
    """One step each, with sentences of which nothing is left among them: Adam would blow up their rounding errors."""
    dropout = round(dropout * 65536) / 65536
    for seed in range(8):
        losses, tables, optimizers = both(dim, 1, dropout=dropout, seed=seed)
        np.testing.assert_allclose(losses[1], losses[0], atol=2e-6)
        pairs = zip(optimizers, tables, strict=True)
        gradients = [optimizer.state[table]["exp_avg"] * 10 for optimizer, table in pairs]
        torch.testing.assert_close(gradients[1], gradients[0], atol=3e-6, rtol=1e-4)


def test_dropout_does_not_depend_on_the_threads():
    results = [both(50, 20, threads=threads, dropout=0.3)[1][1] for threads in (1, 2)]
    assert torch.equal(*results)


def test_dropout_follows_seed_step_and_probability():
    generator = np.random.default_rng(8)
    texts, columns = texts_of(generator), columns_of(generator)
    table = torch.randn(ROWS, 40, generator=torch.Generator().manual_seed(8))

    def loss(dropout, seed, step):
        parameter = torch.nn.Parameter(table.clone())
        optimizer = RowLazyAdam([parameter])
        optimizer.state_of(parameter)["step"].fill_(step)
        return CompiledStep(optimizer, parameter, 0.4, dropout, seed).train(texts, columns)

    assert loss(0.2, 1, 5) == loss(0.2, 1, 5)
    assert len({loss(0.2, 1, 5), loss(0.2, 2, 5), loss(0.2, 1, 6), loss(0.3, 1, 5), loss(0.0, 1, 5)}) == 5
    assert loss(0.0, 1, 5) == loss(0.0, 2, 6) == loss(1e-6, 1, 5), "less than half of 2^-16 is no dropout"
    assert np.isfinite(loss(0.2, -1, 5))


@pytest.mark.parametrize("dropout", [-0.1, 1.0, float("nan")])
def test_dropout_is_a_probability(dropout):
    generator = np.random.default_rng(9)
    table = torch.nn.Parameter(torch.zeros(ROWS, 4))
    with pytest.raises(ValueError, match="dropout is not in"):
        CompiledStep(RowLazyAdam([table]), table, 0.4, dropout).train(texts_of(generator), columns_of(generator))


@given(seed=st.integers(0, 10_000), margin=st.floats(0.05, 2.0), start=st.sampled_from([1e-3, 1.0, 30.0]))
@settings(max_examples=30)
def test_any_batch_has_torchs_loss_and_gradient(seed, margin, start):
    """One step: the first moments are the gradients, which Adam has not yet scaled up to steps."""
    losses, tables, optimizers = both(20, 1, margin=margin, seed=seed, start=start)
    np.testing.assert_allclose(losses[1], losses[0], atol=2e-6)
    gradients = [optimizer.state[table]["exp_avg"] * 10 for optimizer, table in zip(optimizers, tables, strict=True)]
    torch.testing.assert_close(gradients[1], gradients[0], atol=3e-6 / start, rtol=1e-4)


def test_follows_a_schedule_and_a_rate_of_zero():
    losses, tables, _ = both(16, 120, rate=lambda step: 1e-2 * max(0.0, 1 - step / 100))
    np.testing.assert_allclose(losses[1], losses[0], atol=3e-5)
    torch.testing.assert_close(tables[1], tables[0], atol=5e-5, rtol=0)


def test_all_rows_wake_now_and_then(monkeypatch):
    monkeypatch.setattr("st_paragram.learning.training.row_lazy_adam._LONGEST_SLEEP", 40)
    losses, tables, optimizers = both(16, 170)
    assert int(optimizers[1].state[tables[1]]["moves_from"]) == 160
    np.testing.assert_allclose(losses[1], losses[0], atol=3e-5)
    for optimizer in optimizers:
        optimizer.catch_up_all()
    torch.testing.assert_close(tables[1], tables[0], atol=5e-5, rtol=0)


def test_a_long_sleep_stays_finite():
    """The moments of a row asleep for thousands of steps underflow to 0, where 0 / 0 would lie in wait."""
    torch.manual_seed(0)
    table = torch.nn.Parameter(torch.randn(40, 8))
    optimizer = RowLazyAdam([table])
    compiled = CompiledStep(optimizer, table, 0.4)
    sleepers = MegaBatchTexts(MegaBatch(0, 0, 1, 1), np.arange(4, 12, dtype=np.int32), np.arange(0, 9, 2))
    awake = MegaBatchTexts(MegaBatch(0, 0, 1, 1), np.arange(4, dtype=np.int32), np.arange(5))
    columns = np.array([[0], [1], [2], [3]])
    for _ in range(40):
        compiled.train(sleepers, columns)
    for _ in range(5000):
        compiled.train(awake, columns)
    before = table.detach().clone()
    assert np.isfinite(compiled.train(sleepers, columns))
    assert torch.isfinite(table).all() and not torch.equal(table[4:12], before[4:12])


def test_goes_on_where_torch_stopped():
    """One state serves both: half the steps by torch and half compiled give what either gives alone."""
    generator = np.random.default_rng(3)
    steps = [(texts_of(generator), columns_of(generator)) for _ in range(80)]
    start = torch.randn(ROWS, 12, generator=torch.Generator().manual_seed(3))
    results = []
    for switch in (80, 40):
        table = torch.nn.Parameter(start.clone())
        optimizer = RowLazyAdam([table])
        compiled = CompiledStep(optimizer, table, 0.4)
        for step, (texts, columns) in enumerate(steps):
            if step < switch:
                torch_step(optimizer, table, texts, columns, 0.4)
            else:
                compiled.train(texts, columns)
        optimizer.catch_up_all()
        results.append(table.detach())
    torch.testing.assert_close(results[1], results[0], atol=2e-5, rtol=0)


def test_takes_over_a_loaded_state():
    """Loading a checkpoint puts other tensors into the optimiser: the step must not write to the old ones."""
    generator = np.random.default_rng(4)
    texts, columns = texts_of(generator), columns_of(generator)
    table = torch.nn.Parameter(torch.randn(ROWS, 8, generator=torch.Generator().manual_seed(4)))
    optimizer = RowLazyAdam([table])
    compiled = CompiledStep(optimizer, table, 0.4)
    compiled.train(texts, columns)
    saved = {key: value for key, value in optimizer.state_dict().items()}
    saved["tables"] = [table.detach().clone()]
    saved["state"] = {0: {key: value.clone() for key, value in saved["state"][0].items()}}
    second = compiled.train(texts, columns)
    optimizer.load_state_dict(saved)
    assert compiled.train(texts, columns) == second
    assert int(optimizer.state[table]["step"]) == 2


def test_embeddings_are_dense_adams():
    generator = np.random.default_rng(5)
    _, tables, optimizers = both(16, 60)
    texts = texts_of(generator)
    embeddings = CompiledStep(optimizers[1], tables[1], 0.4).embed(texts)
    optimizers[0].catch_up_all()
    expected = torch.stack(
        [tables[0][torch.from_numpy(texts.ids[a:b]).long()].mean(0) for a, b in itertools.pairwise(texts.offsets)]
    )
    torch.testing.assert_close(embeddings, expected.detach(), atol=1e-5, rtol=0)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda ids, offsets, columns: (ids + ROWS, offsets, columns), "is not a row of the table"),
        (lambda ids, offsets, columns: (ids - ROWS, offsets, columns), "is not a row of the table"),
        (lambda ids, offsets, columns: (ids, offsets, columns + 1000), "names no sentence"),
        (lambda ids, offsets, columns: (ids, offsets, columns - 1000), "names no sentence"),
        (lambda ids, offsets, columns: (ids[:3], offsets, columns), "offsets that do not grow"),
        (lambda ids, offsets, columns: (ids, offsets * 0, columns), "offsets that do not grow"),
        (lambda ids, offsets, columns: (ids, offsets, columns[:3].copy()), "another shape"),
        (lambda ids, offsets, columns: (ids, offsets, columns[:, :0].copy()), "without pairs"),
    ],
)
def test_what_would_read_outside_the_arrays_is_refused(change, message):
    generator = np.random.default_rng(6)
    texts, columns = texts_of(generator), columns_of(generator)
    table = torch.nn.Parameter(torch.zeros(ROWS, 4))
    optimizer = RowLazyAdam([table])
    compiled = CompiledStep(optimizer, table, 0.4)
    ids, offsets, columns = change(texts.ids, texts.offsets, columns)
    with pytest.raises(ValueError, match=message):
        compiled.train(MegaBatchTexts(texts.mega, ids, offsets), columns)
    assert np.isfinite(compiled.train(texts, columns_of(generator)))  # and the next step is none the worse


def test_says_why_it_cannot_be_used(vocabulary):
    from st_paragram.learning.models.encoder import pipeline
    from st_paragram.learning.modules.token_embedding import SentencePieceEmbedding

    def obstacle(dropout=0.0, clip=0.0, loss=MarginHardNegativeLoss, **kwargs):
        model = pipeline(SentencePieceEmbedding(vocabulary, 4, dropout=dropout), device="cpu")
        return CompiledStep.obstacle(model, loss(model), clip)

    class Other(MarginHardNegativeLoss):
        pass

    assert obstacle() is None
    assert obstacle(dropout=0.1) is None
    assert obstacle(clip=1.0) == "clipping"
    assert obstacle(loss=Other) == "the loss Other"


def hostile_step(seed=0, **damage):
    """A compiled step on arrays of which some were made otherwise, and those arrays."""
    rng = np.random.default_rng(seed)
    table, moment, square = rng.random((3, 20, 4)).astype(np.float32)
    arrays = {"table": table, "exp_avg": moment, "exp_avg_sq": square, "last_step": rng.integers(10, 51, 20)}
    arrays |= {"step": np.array(50), "moves": rng.random((4, 60)), "moves_from": np.array(10)}
    arrays |= {name: change(arrays[name]) for name, change in damage.items()}
    arrays = {name: array if array.base is not None else array.copy() for name, array in arrays.items()}
    return kernels().TrainingStep(*arrays.values(), 0.9, 0.999, 1e-8, 264), arrays


def read_only(array):
    array = array.copy()
    array.flags.writeable = False
    return array[...]


@pytest.mark.parametrize(
    ("name", "change", "error", "message"),
    [
        ("step", lambda step: step * 0 + 10**7, SettingsError, "step 10000000, moves_from 10, 60 columns"),
        ("step", lambda step: step * 0 - 1, SettingsError, "step -1"),
        ("step", lambda step: step * 0 + 2**62, SettingsError, "step 4611686018427387904"),
        ("step", lambda step: step[None], ValueError, "step has another shape"),
        ("moves_from", lambda begin: begin * 0 - 10**9, SettingsError, "moves_from -1000000000"),
        ("moves_from", lambda begin: begin * 0 + 51, SettingsError, "moves_from 51"),
        ("moves", lambda moves: moves[:, :9].copy(), SettingsError, "9 columns of moves"),
        ("moves", lambda moves: moves[:3].copy(), ValueError, "moves has another shape"),
        ("last_step", lambda last: last * 0 + 1, SettingsError, "last_step 1 of row 0 at step 50, moves_from 10"),
        ("last_step", lambda last: last - 100, SettingsError, "last_step -"),
        ("last_step", lambda last: last + 2**40, SettingsError, "last_step 10995"),
        ("last_step", lambda last: last[:-1].copy(), ValueError, "last_step has another shape"),
        ("exp_avg", lambda moment: moment[:, :-1].copy(), ValueError, "exp_avg has another shape"),
        ("exp_avg_sq", read_only, ValueError, "exp_avg_sq is read-only"),
    ],
)
def test_a_state_that_leads_outside_its_arrays_is_refused(name, change, error, message):
    with pytest.raises(error, match=message) as raised:
        hostile_step(**{name: lambda array: np.asarray(change(array))})
    assert "\n" not in str(raised.value)


BATCH = (np.arange(8, dtype=np.int32), np.arange(9), np.arange(8).reshape(4, 2), 0.4, 1e-3, 1)


@pytest.mark.parametrize(("name", "value"), [("step", 10**7), ("moves_from", -(10**9)), ("moves_from", 2**62)])
def test_counters_that_are_changed_later_are_refused(name, value):
    step, arrays = hostile_step()
    step.train(*BATCH)
    arrays[name][...] = value
    for call in (lambda: step.train(*BATCH), lambda: step.catch_up(BATCH[0], 1)):
        with pytest.raises(SettingsError, match="the optimiser's state is damaged"):
            call()


@pytest.mark.parametrize("value", [1, -(2**62), 2**62])
def test_rows_that_are_changed_later_lead_nowhere(value):
    step, arrays = hostile_step()
    arrays["step"][...] = 60
    arrays["last_step"][:] = value
    if value == 1:
        with pytest.raises(SettingsError, match="last_step 1 of row"):
            step.train(*BATCH)
    else:
        step.train(*BATCH)


@pytest.mark.parametrize("name", ["table", "last_step", "moves", "step"])
def test_a_state_that_shares_its_memory_is_refused(name):
    memory = np.zeros(20 * 20, np.float64)
    shapes = {
        "table": ((20, 4), np.float32),
        "last_step": (20, np.int64),
        "moves": ((4, 60), float),
        "step": ((), np.int64),
    }
    shape, dtype = shapes[name]

    def part(*_):
        return np.ndarray(shape, dtype, buffer=memory)

    def square(*_):
        return np.ndarray((20, 4), np.float32, buffer=memory)

    with pytest.raises(ValueError, match=r"shares its memory|table is not"):
        hostile_step(**{name: part, "exp_avg_sq": square})


def test_a_batch_in_the_memory_of_the_state_is_refused():
    step, arrays = hostile_step()
    with pytest.raises(ValueError, match="a batch shares its memory with the state"):
        step.train(arrays["last_step"].view(np.int32)[:8], *BATCH[1:])


def test_a_refused_step_leaves_everything_as_it_was():
    step, arrays = hostile_step()
    before = {name: array.copy() for name, array in arrays.items()}
    with pytest.raises(ValueError, match="is not a row of the table"):
        step.train(np.array([0, 1, 2, 3, 4, 5, 6, 99], np.int32), *BATCH[1:])
    assert all(np.array_equal(arrays[name], array) for name, array in before.items())
    again, others = hostile_step()
    assert step.train(*BATCH) == again.train(*BATCH)
    assert all(np.array_equal(arrays[name], array) for name, array in others.items())


def test_another_state_in_place_of_the_loaded_one_is_checked():
    table = torch.nn.Parameter(torch.randn(ROWS, 4))
    optimizer, generator = RowLazyAdam([table]), np.random.default_rng(0)
    compiled = CompiledStep(optimizer, table, 0.4)
    compiled.train(texts_of(generator), columns_of(generator))
    optimizer.state[table]["moves_from"] = torch.tensor(-(10**9))
    with pytest.raises(SettingsError, match=r"step 1, moves_from -1000000000, .*; resume from another checkpoint"):
        compiled.train(texts_of(generator), columns_of(generator))


def test_a_training_without_kernels_says_whether_they_are_switched_off(monkeypatch):
    monkeypatch.setattr(native, "kernels", native.kernels.__wrapped__)
    monkeypatch.setenv(native.SWITCH, "0")
    said = CompiledStep.obstacle(None, None, 0.0)
    assert said == "the compiled kernels are switched off: ST_PARAGRAM_NATIVE=0"
