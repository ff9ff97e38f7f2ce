"""Which pairs and mini-batches are trained on when, which sentences are scrambled, and that all who
read them agree.
"""

from itertools import islice, pairwise, takewhile

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from support.data import make_pairs, write_store

from st_paragram.families.psp.mega_batch import (
    MegaBatch,
    MegaBatchTexts,
    mega_batches,
    scrambled,
)
from st_paragram.families.psp.mega_batch_trainer import (
    MegaBatchTrainer,
    MegaBatchTrainingArguments,
)
from st_paragram.families.psp.settings import TrainingSettings
from st_paragram.families.psp.training import new_model
from st_paragram.learning.training.batch_order import EpochPermutation
from st_paragram.learning.training.text_labels import text_labels

N = 4000
NUMBERS = np.arange(N)


@given(st.integers(1, 3000), st.integers(0, 2**32), st.integers(0, 30), st.integers(1, 500))
def test_epoch_permutation_is_a_permutation_in_any_pieces(n, seed, epoch, step):
    permutation = EpochPermutation(n, seed, epoch)
    whole = permutation[0:n]
    assert sorted(whole.tolist()) == list(range(n))
    assert (
        np.concatenate([permutation[i : i + step] for i in range(0, n, step)]).tolist()
        == whole.tolist()
    )


def test_epoch_permutation_depends_on_seed_and_epoch_and_looks_random():
    n = 20_000
    first = EpochPermutation(n, 1, 0)[0:n]
    for other in (EpochPermutation(n, 1, 1)[0:n], EpochPermutation(n, 2, 0)[0:n], np.arange(n)):
        # a random permutation agrees with another in 1 place on average
        assert (first == other).sum() < 10
        assert abs(np.corrcoef(first, other)[0, 1]) < 0.03
    assert abs(np.corrcoef(first[:-1], first[1:])[0, 1]) < 0.03


def test_m_grows_by_one_after_each_interval():
    sizes = [
        (m.start, m.stop, m.size)
        for m in islice(mega_batches(100, maximum=4, anneal_interval=6), 9)
    ]
    # 6 mini-batches at M = 1; then 7, 8 | 9, 10 | 11, 12 (12 passed) | 13-15 | 16-18 (18 passed) |
    # 19-22 ...
    assert sizes[:6] == [(i, i + 1, 1) for i in range(6)]
    assert sizes[6:] == [(6, 8, 2), (8, 10, 2), (10, 12, 2)]
    rest = [
        m.size
        for m in takewhile(lambda m: not m.epoch, mega_batches(100, maximum=4, anneal_interval=6))
    ][9:]
    assert rest == [3, 3] + [4] * 21
    assert next(mega_batches(10, maximum=7, anneal_interval=0)) == MegaBatch(0, 0, 7, 7)


@given(st.integers(1, 40), st.integers(1, 9), st.integers(0, 7), st.integers(1, 5))
def test_every_mini_batch_comes_once_and_m_survives_epochs(batches, maximum, interval, epochs):
    megas = list(takewhile(lambda m: m.epoch < epochs, mega_batches(batches, maximum, interval)))
    for epoch in range(epochs):
        covered = [i for m in megas if m.epoch == epoch for i in range(m.start, m.stop)]
        assert covered == list(range(batches))
    sizes = [m.size for m in megas]
    assert all(0 <= b - a <= 1 for a, b in pairwise(sizes)) and max(sizes) <= maximum
    assert sizes[0] == (1 if interval else maximum)


def test_text_labels_are_equal_where_ids_are():
    rows = [[1, 2], [2, 1], [1, 2], [1], [1, 1], [0], [0, 0]]
    ids = np.array([i for row in rows for i in row], dtype=np.int64)
    offsets = np.concatenate([[0], np.cumsum([len(row) for row in rows])])
    labels = text_labels(ids, offsets)
    for i, a in enumerate(rows):
        for j, b in enumerate(rows):
            assert (labels[i] == labels[j]) == (a == b)


def orders(probability, seed=1, epoch=0, sentences=NUMBERS):
    """Of 4,000 sentences of different ids, so that the order can be seen."""
    ids = np.tile(np.arange(9, dtype=np.int32), N)
    return scrambled(ids, np.arange(0, N * 9 + 1, 9), sentences, probability, seed, epoch).reshape(
        N, -1
    )


def test_each_sentence_keeps_its_ids_and_the_rate_is_the_probability():
    found = orders(0.3)
    assert (np.sort(found, axis=1) == np.arange(9)).all()
    moved = (found != np.arange(9)).any(axis=1).sum()
    assert abs(moved - 0.3 * N) < 4 * np.sqrt(N * 0.3 * 0.7)  # one order in 9! is the old one
    assert (orders(0.0) == np.arange(9)).all() and (orders(1.0) != np.arange(9)).any(
        axis=1
    ).mean() > 0.999


def test_an_order_follows_from_seed_epoch_and_sentence_alone():
    first = orders(0.5)
    assert np.array_equal(first, orders(0.5))
    assert not np.array_equal(first, orders(0.5, epoch=1)) and not np.array_equal(
        first, orders(0.5, seed=2)
    )
    backwards = orders(0.5, sentences=NUMBERS[::-1])
    assert np.array_equal(first, backwards[::-1])
    chosen, again = (orders(0.5, epoch=epoch) != np.arange(9) for epoch in (0, 1))
    # a quarter in both of two epochs
    assert 0.15 < (chosen.any(axis=1) & again.any(axis=1)).mean() < 0.35


def test_sides_are_scrambled_independently_and_labels_are_those_of_the_stored_texts(
    tmp_path, vocabulary
):
    pairs = [(a, a) for a, _ in make_pairs(200, repeat_every=10**9)]
    store = write_store(tmp_path / "same.h5", pairs, vocabulary)
    found = MegaBatchTexts.read(store, MegaBatch(0, 0, 1, 1), 200, 0, scramble=0.5)
    plain = MegaBatchTexts.read(store, MegaBatch(0, 0, 1, 1), 200, 0)
    s, t = found.labels
    assert np.array_equal(s, t) and np.array_equal(s, plain.labels[0])
    sentences = [
        found.ids[a:b].tolist() for a, b in zip(found.offsets[:-1], found.offsets[1:], strict=True)
    ]
    differ = sum(
        first != second for first, second in zip(sentences[:200], sentences[200:], strict=True)
    )
    # one of the two, or both: 3 in 4 at most, less what repeats its pieces
    assert 100 < differ < 190
    assert np.array_equal(found.offsets, plain.offsets)


def texts_of(first, second, start=0):
    """A mega-batch with these labels of s and t."""
    labels = np.array([first, second])
    n = len(first)
    return MegaBatchTexts(
        MegaBatch(0, start, start + 1, 1),
        ids=np.zeros(2 * n, np.int32),
        offsets=np.arange(2 * n + 1),
        rows=np.arange(n),
        labels=labels,
        columns=np.empty((4, 0), np.int64),
    )


@pytest.mark.parametrize("mask_duplicates", [True, False])
def test_random_negatives_are_uniform_over_the_pairs_that_share_no_text(mask_duplicates):
    # pairs 0 and 1 share s, and the t of pair 2 is the s of pair 3
    first, second = [1, 1, 2, 3, 4, 5], [11, 12, 3, 14, 15, 16]
    allowed = ~np.eye(6, dtype=bool)
    if mask_duplicates:
        allowed[[0, 1, 2, 3], [1, 0, 3, 2]] = False
    counts = np.zeros((2, 6, 6), int)
    pairs = np.arange(6)
    for start in range(500):
        texts = texts_of(first, second, start)
        labels = texts.labels if mask_duplicates else texts.labels[:0]
        s, t, of_s, of_t = texts.with_random_negatives(7, labels).columns
        assert np.array_equal(s, pairs) and np.array_equal(t, pairs + 6)
        counts[0, pairs, of_s - 6] += 1
        counts[1, pairs, of_t] += 1
    assert not counts[:, ~allowed].any()
    expected = 500 / allowed.sum(1, keepdims=True) * allowed
    assert (abs(counts - expected) < 5 * np.sqrt(expected) + 1e-9).all()


def test_random_negatives_follow_from_seed_and_place_and_may_be_missing():
    labels = np.arange(400).reshape(2, 200)
    texts = texts_of(*labels)
    columns = texts.with_random_negatives(1, texts.labels).columns
    assert np.array_equal(columns, texts.with_random_negatives(1, texts.labels).columns)
    for drawn in (
        texts.with_random_negatives(2, texts.labels),
        texts_of(*labels, start=1).with_random_negatives(1, labels),
    ):
        assert (drawn.columns[2:] == columns[2:]).mean() < 0.05
    alone = texts_of([1, 1], [2, 3])
    alone = alone.with_random_negatives(1, alone.labels)
    assert alone.columns.tolist() == [[0, 1], [2, 3], [2, 3], [0, 1]]


@pytest.mark.usefixtures("one_thread")
def test_mining_with_a_bilstm_is_brute_force_on_the_scrambled_sentences(tmp_path, store):
    model = new_model(
        store, TrainingSettings(encoder="blstm", dim=12, hidden_dim=6, dropout=0.2, device="cpu")
    )
    arguments = MegaBatchTrainingArguments(
        str(tmp_path), use_cpu=True, scramble=0.5, mining_precision="float32"
    )
    trainer = MegaBatchTrainer(model, arguments, store)
    texts = MegaBatchTexts.read(store, MegaBatch(1, 0, 3, 3), 16, trainer.args.seed, 0.5)
    found = trainer._mine(texts)
    trainer.model.eval()
    rows = [
        texts.ids[a:b].tolist() for a, b in zip(texts.offsets[:-1], texts.offsets[1:], strict=True)
    ]
    with torch.no_grad():
        parts = [
            trainer.model(trainer.model.preprocess([row]))["sentence_embedding"] for row in rows
        ]
    embeddings = torch.nn.functional.normalize(torch.cat(parts))
    first, second = embeddings.split(len(texts.rows))
    labels, others = (torch.from_numpy(side) for side in texts.labels)
    same = (labels[:, None] == labels) | (others[:, None] == others)
    of_s = (first @ second.T).masked_fill(same, -2).argmax(1) + len(texts.rows)
    of_t = (second @ first.T).masked_fill(same, -2).argmax(1)
    assert np.array_equal(found.columns[2], of_s) and np.array_equal(found.columns[3], of_t)
