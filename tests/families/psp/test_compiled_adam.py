"""The compiled training step against torch and dense Adam: same rows, same losses, to float32
rounding.
"""

import itertools
from types import SimpleNamespace

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st

from st_paragram.core import native
from st_paragram.core.native import kernels
from st_paragram.errors import SettingsError
from st_paragram.families.psp.compiled_adam import CompiledAdam
from st_paragram.families.psp.margin_hard_negative import MarginHardNegativeLoss, margin_loss

pytestmark = pytest.mark.skipif(kernels() is None, reason="the compiled kernels are not installed")

ROWS, PAIRS = 90, 12


def batch_of(generator, pairs=PAIRS, rows=ROWS, longest=9, batch=5):
    """Ids and offsets of sentences; s, t, a negative from the other side, and one from either."""
    counts = generator.integers(1, longest, 2 * pairs)
    ids = np.minimum(generator.zipf(1.3, counts.sum()), rows) - 1
    offsets = np.concatenate([[0], np.cumsum(counts)])
    s = generator.integers(0, pairs, batch)
    negatives = generator.integers(pairs, 2 * pairs, batch), generator.integers(0, 2 * pairs, batch)
    return ids.astype(np.int32), offsets.astype(np.int64), np.stack([s, s + pairs, *negatives])


def torch_step(optimizer, table, batch, margin, dropout=0.0, seed=0, step=0):
    ids, offsets, columns = batch
    sentences = [
        torch.from_numpy(ids[offsets[i] : offsets[i + 1]]).long() for i in columns.reshape(-1)
    ]
    tokens = F.embedding(torch.cat(sentences), table)
    if dropout:
        masks = kernels().dropout_mask(seed, step, len(tokens), table.shape[1], dropout)
        tokens = tokens * torch.from_numpy(masks) / (1 - dropout)
    means = torch.stack(
        [part.mean(0) for part in tokens.split([len(sentence) for sentence in sentences])]
    )
    loss = margin_loss(*means.view(4, -1, table.shape[1]), margin)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss.item()


def both(dim, steps, rate=lambda step: 1e-2, margin=0.4, seed=0, threads=1, start=1.0, dropout=0.0):
    """Train one table with torch's dense Adam and one compiled; losses, tables and optimizers of
    each.
    """
    torch.set_num_threads(threads)
    generator = np.random.default_rng(seed)
    first = torch.randn(ROWS, dim, generator=torch.Generator().manual_seed(seed)) * start
    tables = [torch.nn.Parameter(first.clone()) for _ in range(2)]
    dense, compiled = torch.optim.Adam([tables[0]]), CompiledAdam(tables[1])
    losses = ([], [])
    for step in range(steps):
        batch = batch_of(generator)
        for optimizer in (dense, compiled):
            optimizer.param_groups[0]["lr"] = rate(step)
        losses[0].append(torch_step(dense, tables[0], batch, margin, dropout, seed, step))
        losses[1].append(compiled.make_step(*batch, margin, dropout, seed))
    torch.set_num_threads(1)
    return losses, tables, (dense, compiled)


def assert_same(losses, tables, compiled, atol=5e-5):
    np.testing.assert_allclose(losses[1], losses[0], atol=3e-5)
    compiled.catch_up()
    torch.testing.assert_close(tables[1], tables[0], atol=atol, rtol=0)


@pytest.mark.parametrize("dim", [3, 64, 130])
@pytest.mark.parametrize("threads", [1, 2])
def test_equals_dense_adam(dim, threads):
    losses, tables, (_, compiled) = both(dim, 80, threads=threads)
    np.testing.assert_allclose(losses[1], losses[0], atol=3e-5)
    last = compiled.state[tables[1]]["last_step"]
    assert 0 < ((last > 0) & (last < 80)).sum() < ROWS, "nothing slept, or everything"
    before = tables[1].detach().clone()
    with compiled.caught_up():
        torch.testing.assert_close(tables[1], tables[0], atol=5e-5, rtol=0)
        looked_at = tables[1].detach().clone()
    assert torch.equal(tables[1], before)
    compiled.catch_up()
    assert torch.equal(tables[1], looked_at) and not torch.equal(tables[1], before)


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("dim", [33, 128])
@pytest.mark.parametrize("dropout", [0.1, 0.9])
def test_dropout_equals_torch_on_masked_tokens(dim, threads, dropout):
    """With p a multiple of 2^-16, to which the compiled step rounds it."""
    losses, tables, (_, compiled) = both(
        dim, 25, threads=threads, dropout=round(dropout * 65536) / 65536, seed=7
    )
    assert_same(losses, tables, compiled, atol=2e-4)


@given(
    seed=st.integers(0, 10_000),
    margin=st.floats(0.05, 2.0),
    start=st.sampled_from([1e-3, 1.0, 30.0]),
    dropout=st.sampled_from([0.0, 0.25, 0.875]),
)
@settings(max_examples=40)
def test_any_batch_has_torchs_loss_and_gradient(seed, margin, start, dropout):
    """One step: the first moments are the gradients, which Adam has not yet scaled up to steps."""
    losses, tables, (dense, compiled) = both(
        20, 1, margin=margin, seed=seed, start=start, dropout=dropout
    )
    np.testing.assert_allclose(losses[1], losses[0], atol=2e-6)
    gradients = [
        each.state[table]["exp_avg"] * 10
        for each, table in zip((dense, compiled), tables, strict=True)
    ]
    torch.testing.assert_close(gradients[1], gradients[0], atol=3e-6 / start, rtol=1e-4)


def test_dropout_does_not_depend_on_the_threads():
    assert torch.equal(*(both(50, 20, threads=threads, dropout=0.3)[1][1] for threads in (1, 2)))


def test_follows_a_schedule_and_a_rate_of_zero():
    losses, tables, (_, compiled) = both(16, 120, rate=lambda step: 1e-2 * max(0.0, 1 - step / 100))
    assert_same(losses, tables, compiled)


def test_all_rows_wake_now_and_then(monkeypatch):
    monkeypatch.setattr("st_paragram.families.psp.compiled_adam._LONGEST_SLEEP", 40)
    losses, tables, (_, compiled) = both(16, 170)
    assert int(compiled.state[tables[1]]["moves_from"]) == 160
    assert_same(losses, tables, compiled)


def test_a_long_sleep_stays_finite():
    """The moments of a row asleep for thousands of steps underflow to 0, where 0 / 0 would lie in
    wait.
    """
    torch.manual_seed(0)
    table = torch.nn.Parameter(torch.randn(40, 8))
    compiled, columns = CompiledAdam(table), np.array([[0], [1], [2], [3]])
    sleepers = np.arange(4, 12, dtype=np.int32), np.arange(0, 9, 2), columns
    awake = np.arange(4, dtype=np.int32), np.arange(5), columns
    for _ in range(40):
        compiled.make_step(*sleepers, 0.4)
    for _ in range(5000):
        compiled.make_step(*awake, 0.4)
    before = table.detach().clone()
    assert np.isfinite(compiled.make_step(*sleepers, 0.4))
    assert torch.isfinite(table).all() and not torch.equal(table[4:12], before[4:12])


def test_a_saved_state_is_taken_over_to_the_bit():
    generator = np.random.default_rng(4)
    batches = [batch_of(generator) for _ in range(60)]
    start = torch.randn(ROWS, 8, generator=torch.Generator().manual_seed(4))
    whole, first = (CompiledAdam(torch.nn.Parameter(start.clone())) for _ in range(2))
    losses = [whole.make_step(*batch, 0.4) for batch in batches]
    for batch in batches[:40]:
        first.make_step(*batch, 0.4)
    again = CompiledAdam(torch.nn.Parameter(torch.zeros_like(start)))
    again.load_state_dict(first.state_dict())
    assert [again.make_step(*batch, 0.4) for batch in batches[40:]] == losses[40:]
    assert torch.equal(again.table, whole.table)
    with pytest.raises(SettingsError, match="belongs to another table"):
        CompiledAdam(torch.nn.Parameter(torch.zeros(ROWS, 9))).load_state_dict(first.state_dict())


def test_embeddings_are_dense_adams():
    _, tables, (_, compiled) = both(16, 60)
    ids, offsets, _ = batch_of(np.random.default_rng(5))
    embeddings = compiled.embed(ids, offsets)
    expected = [
        tables[0][torch.from_numpy(ids[a:b]).long()].mean(0) for a, b in itertools.pairwise(offsets)
    ]
    torch.testing.assert_close(embeddings, torch.stack(expected).detach(), atol=2e-5, rtol=0)


def test_rates_that_do_not_converge_are_refused():
    for wrong in ({"lr": -1.0}, {"betas": (1.0, 0.9)}, {"betas": (0.9, 0.5)}, {"eps": 0.0}):
        with pytest.raises(SettingsError, match="Adam does not converge with these"):
            CompiledAdam(torch.nn.Parameter(torch.zeros(2, 2)), **wrong)


def test_what_would_read_outside_the_arrays_is_refused_and_changes_nothing():
    (ids, offsets, columns), table = (
        batch_of(np.random.default_rng(6)),
        torch.nn.Parameter(torch.ones(ROWS, 4)),
    )
    compiled = CompiledAdam(table)
    for wrong, message in (
        ((ids + ROWS, offsets, columns), "is not a row of the table"),
        ((ids, offsets, columns - 1000), "names no sentence"),
        ((ids[:3], offsets, columns), "offsets that do not grow"),
        ((ids, offsets, columns[:3]), "another shape"),
        ((ids, offsets, columns[:, :0]), "without pairs"),
    ):
        with pytest.raises(ValueError, match=message):
            compiled.make_step(*wrong, 0.4)
    assert torch.equal(table, torch.ones(ROWS, 4))
    assert np.isfinite(compiled.make_step(ids, offsets, columns, 0.4))


def test_says_why_it_cannot_be_used(vocabulary, monkeypatch):
    from st_paragram import SentencePieceEmbedding, pipeline

    def obstacle(decay=0.0, clip=0.0, loss=MarginHardNegativeLoss):
        model = pipeline(SentencePieceEmbedding(vocabulary, 4, dropout=0.1), device="cpu")
        return CompiledAdam.obstacle(
            model, loss(model), SimpleNamespace(weight_decay=decay, max_grad_norm=clip)
        )

    class Other(MarginHardNegativeLoss):
        pass

    found = obstacle(), obstacle(decay=0.1), obstacle(clip=1.0), obstacle(loss=Other)
    assert found == (None, "weight decay", "clipping", "the loss Other")
    monkeypatch.setattr(native, "kernels", native.kernels.__wrapped__)
    monkeypatch.setenv(native.SWITCH, "0")
    assert obstacle() == "the compiled kernels are switched off: ST_PARAGRAM_NATIVE=0"
