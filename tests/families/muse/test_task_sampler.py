"""Which rows a step of a dual encoder trains on: shares, epochs, buckets, batches of likes; and sources of stores."""

import itertools
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.dual_encoder import tiny, write_bitext, write_data, write_rows

from st_paragram.errors import SettingsError
from st_paragram.families.muse.task_data import TaskRows, all_rows, sources, unit_means
from st_paragram.families.muse.task_sampler import Source, TaskSampler
from st_paragram.families.muse.training_data import OtherTasks


def source(rows, weight=1.0, lengths=None, vectors=None, name="x"):
    """A source whose rows have lengths and vectors of their own."""
    lengths = np.arange(rows) % 17 if lengths is None else lengths
    vectors = np.ones((rows, 2), np.float32) if vectors is None else vectors
    return Source(name, rows, weight, lambda chosen: lengths[chosen], lambda chosen: vectors[chosen])


def taken(sampler, steps):
    return [sampler.at(step) for step in range(steps)]


def test_sources_are_drawn_by_their_weights():
    """Within three standard deviations, and the shares are parts of all weights."""
    weights = [0.5, 2.0, 1.0, 1.5]
    sampler = TaskSampler([source(9, weight) for weight in weights], 4, 2, 2, seed=5)
    np.testing.assert_allclose(sampler.shares, np.array(weights) / 5)
    steps = 5000
    drawn = Counter(number for number, _ in taken(sampler, steps))
    for number, share in enumerate(sampler.shares):
        assert abs(drawn[number] - steps * share) < 3 * np.sqrt(steps * share * (1 - share))


def test_a_source_without_a_share_is_never_drawn():
    sampler = TaskSampler([source(9, 0.0), source(9, 1.0)], 4, 1, 1, seed=0)
    assert {number for number, _ in taken(sampler, 1000)} == {1}


@settings(max_examples=40)
@given(st.integers(1, 90), st.integers(1, 9), st.integers(1, 4), st.integers(1, 4), st.integers(0, 10**6))
def test_an_epoch_has_each_row_once(rows, size, buckets, similar, seed):
    """But for less than a batch; every batch is full, unless there are not as many rows."""
    vectors = np.random.default_rng(seed).standard_normal((rows, 3)).astype(np.float32)
    sampler = TaskSampler([source(rows, vectors=vectors)], size, buckets, similar, seed)
    batches = max(1, rows // size)
    epochs = [[rows for _, rows in taken(sampler, 3 * batches)][n * batches : (n + 1) * batches] for n in range(3)]
    for epoch in epochs:
        assert {len(batch) for batch in epoch} == {min(size, rows)}
        seen = np.concatenate(epoch)
        assert len(set(seen.tolist())) == len(seen) == min(rows, batches * size)
        assert seen.dtype == np.int64 and seen.min() >= 0 and seen.max() < rows
    if rows > 40 and batches > 3:
        assert not np.array_equal(np.concatenate(epochs[0]), np.concatenate(epochs[1]))


def test_a_step_follows_from_its_number_and_the_seed_alone():
    vectors = np.random.default_rng(0).standard_normal((70, 3)).astype(np.float32)
    made = [source(70, 2.0, vectors=vectors), source(5), source(33, vectors=vectors)]
    steps = [*range(60), 4095, 4096, 9000]
    expected = {step: TaskSampler(made, 6, 2, 3, seed=7).at(step) for step in steps}
    sampler = TaskSampler(made, 6, 2, 3, seed=7)
    for step in np.random.default_rng(1).permutation(np.repeat(steps, 2)).tolist():
        number, rows = sampler.at(step)
        assert number == expected[step][0] and rows.tolist() == expected[step][1].tolist()
    other = TaskSampler(made, 6, 2, 3, seed=8)
    assert [other.at(step)[1].tolist() for step in steps] != [expected[step][1].tolist() for step in steps]


def test_draws_go_on_over_the_blocks_they_are_made_in(monkeypatch):
    monkeypatch.setattr("st_paragram.families.muse.task_sampler._DRAWS", 10)
    sampler = TaskSampler([source(40), source(24)], 4, 1, 1, seed=0)
    seen = {0: [], 1: []}
    for number, rows in taken(sampler, 60):
        seen[number].append(rows)
    for number, rows in ((0, 40), (1, 24)):
        batches = rows // 4
        assert len(seen[number]) > batches
        assert sorted(np.concatenate(seen[number][:batches]).tolist()) == list(range(rows))


def test_batches_have_like_lengths():
    """Of a pool of four buckets every bucket has a quarter of the lengths."""
    lengths = np.random.default_rng(0).permutation(64)
    sampler = TaskSampler([source(64, lengths=lengths)], 8, 4, 2, seed=0)
    quarters = [lengths[rows] // 16 for _, rows in taken(sampler, 8)]
    assert sorted(quarter[0] for quarter in quarters) == [0, 0, 1, 1, 2, 2, 3, 3]
    assert all(len(set(quarter)) == 1 for quarter in quarters)
    assert [quarter[0] for quarter in quarters] != sorted(quarter[0] for quarter in quarters)  # in random order
    plain = TaskSampler([source(64, lengths=lengths)], 8, 1, 1, seed=0)
    assert any(len(set(lengths[rows] // 16)) > 1 for _, rows in taken(plain, 8))


def cosine_within(batches, vectors):
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.mean([(unit[rows] @ unit[rows].T)[~np.eye(len(rows), dtype=bool)].mean() for rows in batches])


def test_similar_batches_are_of_likes():
    """Sixteen clusters of eight: batches of eight at random have cosines about 0."""
    random = np.random.default_rng(0)
    centres = random.standard_normal((16, 12))
    vectors = (np.repeat(centres, 8, 0) + 0.2 * random.standard_normal((128, 12))).astype(np.float32)
    found = {}
    for similar in (1, 16):
        sampler = TaskSampler([source(128, vectors=vectors, lengths=np.zeros(128, int))], 8, 1, similar, seed=0)
        found[similar] = cosine_within([rows for _, rows in taken(sampler, 16)], vectors)
    assert abs(found[1]) < 0.1 and found[16] > 0.4


def test_two_clusters_are_told_apart_wholly():
    vectors = np.zeros((32, 4), np.float32)
    vectors[::2, 1], vectors[1::2, 3] = 1.0, 1.0
    sampler = TaskSampler([source(32, vectors=vectors, lengths=np.zeros(32, int))], 8, 1, 4, seed=2)
    assert all(len(set((rows % 2).tolist())) == 1 for _, rows in taken(sampler, 4))


def test_rows_that_are_all_alike_are_cut_up_too():
    sampler = TaskSampler([source(32, vectors=np.zeros((32, 4), np.float32))], 8, 1, 4, seed=2)
    assert sorted(np.concatenate([rows for _, rows in taken(sampler, 4)]).tolist()) == list(range(32))


@pytest.mark.parametrize("rows", [1, 2, 7])
def test_a_source_of_fewer_rows_than_a_batch_has_them_all_each_time(rows):
    sampler = TaskSampler([source(rows), source(40)], 8, 4, 8, seed=0)
    small = [chosen.tolist() for number, chosen in taken(sampler, 30) if number == 0]
    assert len(small) > 5 and all(sorted(chosen) == list(range(rows)) for chosen in small)


# Sources of stores.


@pytest.fixture(scope="module")
def data(tmp_path_factory, vocabulary):
    return write_data(tmp_path_factory.mktemp("tasks"), vocabulary, rows=60, few=3)


@pytest.fixture
def table(vocabulary, rng):
    return rng.standard_normal((len(vocabulary), 5)).astype(np.float32)


def test_the_rows_of_all_tasks(data):
    rows = all_rows(data.bitext, data.tasks)
    assert {each.name: len(each) for each in rows} == {
        "translation xx": 40,
        "translation yy": 20,
        "qa en": 60,
        "qa xx": 3,
        "response en": 60,
        "nli en": 60,
        "nli xx": 3,
    }
    first, second = rows[:2]
    assert sorted([*first.numbers, *second.numbers]) == list(range(60)) and first.numbers.dtype == np.uint32
    chosen = np.array([3, 0, 7])
    assert data.bitext.row_languages(second.of_store(chosen)) == [("en", "yy")] * 3
    ids, offsets = second.take("b", chosen)
    expected = data.bitext.take("b", second.numbers[chosen].astype(np.int64))
    assert ids.tolist() == expected[0].tolist() and offsets.tolist() == expected[1].tolist()
    qa = rows[2]
    assert qa.take("context", chosen)[0].tolist() == data.tasks.stores[0].contexts.take("b", chosen)[0].tolist()


def test_languages_that_are_not_asked_for_are_left_out(data):
    rows = all_rows(data.bitext, OtherTasks((), ("yy",)))
    assert [(each.name, len(each)) for each in rows] == [("translation yy", 20)]


def test_translations_into_one_language_need_no_numbers(store):
    (only,) = all_rows(store, OtherTasks())
    assert only.name == "translation xx" and only.numbers is None and len(only) == len(store)
    assert only.of_store(np.array([4, 2])).tolist() == [4, 2]


@pytest.mark.parametrize("power", [0.0, 0.5, 1.0])
def test_tasks_by_their_shares_and_languages_by_their_sizes(data, table, power):
    run = tiny(translation_share=0.5, qa_share=0.2, response_share=0.3, nli_share=0.0, language_power=power)
    used, made = sources(all_rows(data.bitext, data.tasks), run, table)
    assert [each.name for each in used] == [each.name for each in made]
    weights = {each.name: each.weight for each in made}
    assert weights.keys() == {"translation xx", "translation yy", "qa en", "qa xx", "response en"}
    assert weights["translation xx"] + weights["translation yy"] == pytest.approx(0.5)
    assert weights["translation xx"] / weights["translation yy"] == pytest.approx(2**power)
    assert weights["qa en"] / weights["qa xx"] == pytest.approx(20**power)
    assert weights["qa en"] + weights["qa xx"] == pytest.approx(0.2) and weights["response en"] == pytest.approx(0.3)


def test_what_is_not_there_leaves_its_share_to_the_others(store, table):
    _, made = sources(all_rows(store, OtherTasks()), tiny(translation_share=0.6), table)
    assert TaskSampler(made, 8, 1, 1, 0).shares.tolist() == [1.0]


def test_nothing_to_train_on_is_refused(store, table):
    with pytest.raises(SettingsError, match="no task has both data and a share of the steps") as caught:
        sources(all_rows(store, OtherTasks()), tiny(translation_share=0.0), table)
    assert "\n" not in str(caught.value)


def test_lengths_and_vectors_of_sources(data, table):
    used, made = sources(all_rows(data.bitext, data.tasks), tiny(), table)
    chosen = np.array([5, 1, 8])
    for rows, each in zip(used[:3], made[:3], strict=True):
        sides = [rows.take(side, chosen) for side in "ab"]
        assert each.lengths(chosen).tolist() == [
            sum(int(offsets[i + 1] - offsets[i]) for _, offsets in sides) for i in range(3)
        ]
        expected = np.zeros((3, 5))
        for ids, offsets in sides:
            for i, (begin, end) in enumerate(itertools.pairwise(offsets)):
                mean = table[ids[begin:end]].mean(0)
                expected[i] += mean / np.linalg.norm(mean)
        np.testing.assert_allclose(each.vectors(chosen), expected, atol=1e-5)


def test_unit_means_of_nothing_are_zero():
    table = np.array([[0.0, 0.0], [3.0, 4.0]], np.float32)
    found = unit_means(table, np.array([0, 1, 0], np.int32), np.array([0, 1, 3]))
    np.testing.assert_allclose(found, [[0, 0], [0.6, 0.8]], atol=1e-6)


def test_a_language_without_rows_is_none(tmp_path, vocabulary, pairs):
    store = write_bitext(tmp_path / "x.h5", vocabulary, pairs[:2])  # both rows are of the first language
    assert [each.name for each in all_rows(store, OtherTasks())] == ["translation xx"]


def test_rows_without_contexts_have_none(tmp_path, vocabulary, pairs):
    rows = TaskRows("qa", "en", write_rows(tmp_path / "x.h5", vocabulary, pairs[:5]))
    with pytest.raises(AssertionError):
        rows.take("context", np.arange(2))
