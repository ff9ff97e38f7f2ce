import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from st_paragram.errors import EvaluationError, MissingExtraError, SettingsError
from st_paragram.tools.neighbors import inexact
from st_paragram.tools.neighbors.exact import nearest_neighbors


def unit(rows, dim, seed=0):
    vectors = np.random.default_rng(seed).normal(size=(rows, dim)).astype(np.float32)
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


@settings(max_examples=25)
@given(st.integers(1, 60), st.integers(1, 60), st.integers(2, 20), st.integers(1, 5), st.integers(0, 9))
def test_neighbors_are_those_of_brute_force(n, m, dim, k, seed):
    queries, corpus, k = unit(n, dim, seed), unit(m, dim, seed + 100), min(k, m)
    got = nearest_neighbors(queries, corpus, k)
    cosines = queries.astype(np.float64) @ corpus.T
    assert got.similarities.dtype == np.float32 and got.indices.dtype == np.int64
    assert got.similarities.shape == got.indices.shape == (n, k)
    np.testing.assert_allclose(got.similarities, -np.sort(-cosines, axis=1)[:, :k], atol=2e-6)
    np.testing.assert_allclose(np.take_along_axis(cosines, got.indices, 1), got.similarities, atol=2e-6)
    assert all(len(set(row)) == k for row in got.indices.tolist())
    np.testing.assert_allclose(got.means, got.similarities.astype(float).mean(1))


def test_equally_near_rows_come_in_their_order():
    corpus = np.array([[0, 1], [1, 0], [0.6, 0.8], [1, 0], [1, 0]], dtype=np.float32)
    got = nearest_neighbors(np.array([[1, 0]], dtype=np.float32), corpus, 5)
    assert got.indices.tolist() == [[1, 3, 4, 2, 0]]


def test_equal_vectors_have_equal_cosines_wherever_they_stand_and_either_way():
    queries, corpus = unit(130, 37), unit(500, 37, seed=1)
    corpus[[100, 333, 499]] = corpus[7]
    got, back = nearest_neighbors(queries, corpus, 100), nearest_neighbors(corpus, queries, 130)
    row = [np.flatnonzero(found == 7) for found in got.indices]
    assert sum(map(len, row)) > 10
    for query, place in enumerate(row):
        if len(place) and place[0] <= 96:
            chosen = slice(place[0], place[0] + 4)
            assert got.indices[query, chosen].tolist() == [7, 100, 333, 499]
            assert len(set(got.similarities[query, chosen].tolist())) == 1
            assert got.similarities[query, place[0]] == back.similarities[7, back.indices[7] == query]


def test_what_cannot_be_searched_is_refused():
    broken, long = unit(3, 4), unit(3, 4)
    broken[1, 2] = np.nan
    long[2] *= 2
    for queries, corpus, error, message in (
        (unit(0, 4), unit(3, 4), EvaluationError, r"queries: vectors of shape \(0, 4\)"),
        (unit(3, 4), unit(0, 4), EvaluationError, "corpus: vectors of shape"),
        (unit(3, 4)[0], unit(3, 4), EvaluationError, r"queries: vectors of shape \(4,\)"),
        (unit(3, 4), unit(3, 5), EvaluationError, "queries have 4 components, the corpus has 5"),
        (unit(3, 4), broken, EvaluationError, "corpus: vector 2 of 3 has length nan"),
        (long, unit(3, 4), EvaluationError, "queries: vector 3 of 3 has length 2, not 1"),
        (np.zeros((1, 4), np.float32), unit(3, 4), EvaluationError, "length 0, not 1"),
    ):
        with pytest.raises(error, match=message):
            nearest_neighbors(queries, corpus, 1)
    for k in (4, 0):
        with pytest.raises(SettingsError, match=f"{k} neighbors requested in a corpus of 3"):
            nearest_neighbors(unit(2, 4), unit(3, 4), k)


def test_an_exact_search_needs_no_faiss(monkeypatch):
    monkeypatch.setitem(sys.modules, "faiss", None)
    vectors = unit(9, 4)
    assert nearest_neighbors(vectors, vectors, 1).indices[:, 0].tolist() == list(range(9))
    with pytest.raises(MissingExtraError, match=r'pip install "st_paragram\[mining\]"'):
        inexact._faiss()
