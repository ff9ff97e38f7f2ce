"""How hard an inexact index must look: recall against a plain search, on rows whose clusters are known."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from st_paragram.tools.search import effort as module
from st_paragram.tools.search import indexes
from st_paragram.tools.search.effort import describe_recall, find_effort, recall
from st_paragram.tools.search.neighbours import Neighbours
from st_paragram.tools.search.settings import SearchSettings
from st_paragram.tools.search.vectors import StoredVectors, VectorType, pack

pytest.importorskip("faiss")


def stored(path, vectors):
    np.save(path, pack(vectors.astype(np.float32), VectorType.FLOAT16, "x"))
    return StoredVectors((path,))


@pytest.fixture
def corpus(tmp_path, rng):
    return stored(tmp_path / "corpus.npy", rng.normal(size=(600, 8)))


@pytest.fixture
def queries(tmp_path, rng):
    return stored(tmp_path / "queries.npy", rng.normal(size=(300, 8)))


def plain_recalls(queries, corpus, index, effort, k, own):
    """Shares of the nearest row and of the k nearest that lie in the lists looked at, query by query."""
    indexes.set_effort(index, effort)
    nearest, all_k = 0, 0
    for row in range(len(queries)):
        query = queries.rows(row, row + 1)
        cosines = (corpus.rows(0, len(corpus)).astype(float) @ query[0]).tolist()
        order = [other for other in np.argsort(cosines)[::-1] if not (own and other == row)][:k]
        found = set(indexes.search(index, query, len(corpus))[0].tolist())
        nearest += order[0] in found
        all_k += sum(other in found for other in order)
    return nearest / len(queries), all_k / k / len(queries)


@pytest.mark.parametrize("own", [False, True])
def test_recalls_are_those_of_a_plain_search(corpus, queries, own):
    queries = corpus if own else queries
    index = indexes.build("IVF32,Flat", corpus, 0, len(corpus), seed=0)
    found = find_effort(queries, corpus, [(0, index)], 5, SearchSettings(recall=0.8), 100, own)
    assert list(found.tried)[-1] == str(found.effort) and found.tried[str(found.effort)][0] >= 0.8
    for effort, recalls in found.tried.items():
        expected = plain_recalls(queries, corpus, index, int(effort), 5, own)
        assert recalls == pytest.approx(expected, abs=0.01)  # places that are not found are filled by others
    tried = list(found.tried.values())
    assert all(one[0] < 0.8 for one in tried[:-1]) and (found.recall, found.recall_at_k) == tried[-1]
    assert found.recall > found.recall_at_k and found.k == 5


def test_it_ends_where_nothing_more_can_be_found(corpus, queries):
    index = indexes.build("IVF8,PQ2x4", corpus, 0, len(corpus), seed=0)  # codes so coarse that they lose rows
    found = find_effort(queries, corpus, [(0, index)], 1, SearchSettings(recall=1.0), 100)
    assert list(found.tried) == ["4", "8"] and found.effort == 8 and found.recall < 1


def test_the_sample_is_limited_and_of_the_seed(corpus, queries, monkeypatch):
    monkeypatch.setattr(module, "_SAMPLE", 50)
    index = indexes.build("IVF32,Flat", corpus, 0, len(corpus), seed=0)

    def tried(seed):
        return find_effort(queries, corpus, [(0, index)], 5, SearchSettings(recall=1.0, seed=seed), 100).tried

    assert tried(0) == tried(0) != tried(1)
    assert all((50 * nearest).is_integer() for nearest, _ in tried(0).values())


def test_fewer_rows_than_neighbours(tmp_path):
    one = stored(tmp_path / "one.npy", np.ones((1, 4)))
    three = stored(tmp_path / "three.npy", np.eye(4)[:3] + 0.1)
    index = indexes.build("HNSW4", one, 0, 1, seed=0)
    alone = find_effort(one, one, [(0, index)], 10, SearchSettings(), 100, own=True)
    assert (alone.recall, alone.recall_at_k, alone.k) == (1, 1, 0)
    index = indexes.build("HNSW4", three, 0, 3, seed=0)
    found = find_effort(three, three, [(0, index)], 10, SearchSettings(), 100, own=True)
    assert (found.recall, found.recall_at_k, found.k) == (1, 1, 2)


@given(st.lists(st.lists(st.integers(0, 5), min_size=3, max_size=3), min_size=1, max_size=20))
def test_equally_near_rows_stand_for_each_other(rows):
    true = Neighbours(np.sort(-np.array(rows, np.float32)) * -1, np.zeros((len(rows), 3), np.int64))
    other_rows = Neighbours(true.similarities, true.indices + 7)
    assert recall(other_rows, true) == 1
    worse = Neighbours(true.similarities - np.array([0, 0, 9], np.float32), true.indices)
    assert recall(worse, true) == pytest.approx(2 / 3)


def test_recalls_in_words():
    words = "the nearest neighbor of 95.1 % of a sample, and 84.0 % of its nearest 4"
    assert describe_recall(0.951, 0.84, 4) == words
