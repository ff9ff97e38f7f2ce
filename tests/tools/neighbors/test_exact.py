"""Exact search by products of blocks, compared with a plain one, with and without the compiled
kernels.
"""

import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from st_paragram.core.native import kernels
from st_paragram.errors import EvaluationError, MissingExtraError, SettingsError
from st_paragram.tools.neighbors import exact, inexact
from st_paragram.tools.neighbors import vectors as vectors_module
from st_paragram.tools.neighbors.exact import (
    exact_both_ways,
    exact_within,
    nearest_neighbors,
)
from st_paragram.tools.neighbors.results import Neighbors, united
from st_paragram.tools.neighbors.settings import VectorType
from st_paragram.tools.neighbors.vectors import Rows, UnitRows, pack, sums_in_lanes

COUNTS = st.integers(1, 40)


@pytest.fixture(params=["kernels", "numpy"])
def way(request, monkeypatch):
    """Both ways to do the same."""
    if request.param == "kernels" and kernels() is None:
        pytest.skip("the compiled kernels are not installed")
    if request.param == "numpy":
        without_kernels(monkeypatch)
    return request.param


def without_kernels(monkeypatch):
    for module in (exact, vectors_module):
        monkeypatch.setattr(module, "kernels", lambda: None)


def unit(rows, dim=6, seed=0, levels=None):
    """Vectors of length 1; with few levels, many are equal."""
    rng = np.random.default_rng(seed)
    vectors = (
        rng.normal(size=(rows, dim))
        if levels is None
        else rng.integers(0, levels, (rows, dim)) + 0.5
    )
    return (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)


def plain(queries, corpus, k):
    """By all cosines, of equally near rows the earlier."""
    near = sums_in_lanes(queries[:, None], corpus[None]).astype(np.float32)
    order = np.argsort(-near, axis=1, kind="stable")[:, :k]
    return Neighbors(np.take_along_axis(near, order, 1), order)


def same(one, other):
    return (
        one.similarities.tobytes() == other.similarities.tobytes()
        and one.indices.tolist() == other.indices.tolist()
    )


@pytest.mark.parametrize("levels", [None, 2])
@pytest.mark.parametrize(("side", "part_rows"), [(4, 7), (5, 1000), (11, 1)])
def test_blocks_and_parts_find_what_a_plain_search_finds(way, monkeypatch, side, part_rows, levels):
    monkeypatch.setattr(exact, "_SIDE", side)
    monkeypatch.setattr(exact, "_NUMBERS", part_rows * 6)
    monkeypatch.setattr(exact, "SPARE", 60)  # more than there are equal ones
    queries, corpus = unit(23, levels=levels), unit(50, seed=1, levels=levels)
    expected, back = plain(queries, corpus, 5), plain(corpus, queries, 5)
    assert same(exact.exact(queries, UnitRows(corpus), 5), expected)
    found = exact_both_ways(queries, UnitRows(corpus), 5)
    assert same(found[0], expected) and same(found[1], back)


@pytest.mark.parametrize("levels", [None, 2])
@pytest.mark.parametrize(("shard", "side"), [(50, 2048), (16, 4), (7, 5), (1, 4)])
def test_a_corpus_among_itself_is_searched_once(way, monkeypatch, shard, side, levels):
    monkeypatch.setattr(exact, "_SIDE", side)
    monkeypatch.setattr(exact, "_NUMBERS", 11 * 6)
    monkeypatch.setattr(exact, "SPARE", 60)
    vectors, parts = unit(50, levels=levels), []
    for begin in range(0, 50, shard):
        end = min(begin + shard, 50)
        found, back = exact_within(UnitRows(vectors), begin, end, 5)
        assert len(found.indices) == end - begin and len(back.indices) == 50 - end
        parts += [(begin, found), (end, back)]
    assert same(united(parts, 50, 5), plain(vectors, vectors, 5))


@given(
    COUNTS,
    st.integers(1, 40),
    st.sampled_from(["float32", "float16", "int8"]),
    st.integers(1, 9),
    st.integers(0, 9),
)
def test_cosines_are_the_same_bit_by_bit_without_kernels(count, dim, kind, size, seed):
    rng = np.random.default_rng(seed)
    stored = (rng.normal(size=(count, dim)) * 30).astype(kind)
    lengths = rng.uniform(1, 9, count).astype(np.float32)
    shards = [stored[begin : begin + size] for begin in range(0, count, size)]
    rows, queries, corpus = rng.integers(-1, count, (7, 5)), unit(7, dim, seed), Rows(shards)
    corpus.lengths = lengths
    found = corpus.cosines(queries, rows)
    with pytest.MonkeyPatch.context() as patch:
        without_kernels(patch)
        assert corpus.cosines(queries, rows).tobytes() == found.tobytes()
    vectors = stored.astype(np.float32) / lengths[:, None]
    expected = np.einsum("nd,nkd->nk", queries.astype(float), vectors[rows].astype(float))
    np.testing.assert_allclose(found, np.where(rows < 0, -1, expected), rtol=1e-5, atol=1e-5)


@given(st.integers(1, 40), st.integers(1, 9), st.sampled_from(VectorType), st.integers(0, 5))
def test_stored_vectors_are_the_vectors(count, size, kind, seed):
    rng = np.random.default_rng(seed)
    vectors = rng.normal(size=(count, 8)).astype(np.float32) * 7
    units = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    stored, picks = pack(units, kind), rng.integers(0, count, 20)
    read = Rows([stored[begin : begin + size] for begin in range(0, count, size)])
    assert (len(read), read.dim) == (count, 8)
    whole, begin = read.rows(0, count), count // 3
    np.testing.assert_allclose(whole, units, atol=0.001 if kind is VectorType.FLOAT16 else 0.01)
    np.testing.assert_allclose(np.linalg.norm(whole, axis=1), 1, atol=1e-6)
    np.testing.assert_array_equal(read.take(picks), whole[picks])
    np.testing.assert_array_equal(read.rows(begin, count), whole[begin:])
    rows, queries = rng.integers(-1, count, (7, 5)), unit(7, 8, seed)
    assert read.cosines(queries, rows).tobytes() == UnitRows(whole).cosines(queries, rows).tobytes()


@pytest.mark.parametrize("kind", list(VectorType))
def test_rows_of_zeros_are_left_out(rng, kind):
    vectors = unit(23, 8, 0)
    vectors[[0, 7, 8, 22]] = 0
    stored = pack(vectors, kind)
    rows = Rows([stored[:10], stored[10:20], stored[20:]])
    rows.leave_out_zeros()
    kept = np.flatnonzero(vectors.any(axis=1))
    plain = Rows([stored[kept]])
    assert len(rows) == len(kept) == 19
    np.testing.assert_array_equal(rows.rows(2, 15), plain.rows(2, 15))
    np.testing.assert_array_equal(rows.take(np.array([18, 0, 5])), plain.take(np.array([18, 0, 5])))
    candidates = rng.integers(-1, 19, (4, 6))
    np.testing.assert_array_equal(
        rows.cosines(unit(4, 8, 1), candidates), plain.cosines(unit(4, 8, 1), candidates)
    )
    np.testing.assert_array_equal(
        rows.stored_numbers(np.array([-1, 0, 18])), [-1, kept[0], kept[18]]
    )


def test_a_sentence_is_not_its_own_neighbor():
    neighbors = Neighbors(
        np.array([[1, 1, 0.5], [1, 0.9, 0.8]], np.float32), np.array([[3, 7, 1], [5, 6, 4]])
    )
    rest = neighbors.without_self(np.array([3, 4]))
    assert rest.indices.tolist() == [[7, 1], [5, 6]]  # row 4 was found last
    assert rest.similarities.tolist() == [[1, 0.5], pytest.approx([1, 0.9])]


def test_what_cannot_be_searched_is_refused():
    three, broken = unit(3, 4), unit(3, 4)
    broken[1, 2] = np.nan
    for queries, corpus, k, error, message in (
        (unit(0, 4), three, 1, EvaluationError, r"queries: vectors of shape \(0, 4\)"),
        (three, unit(3, 5), 1, EvaluationError, "queries have 4 dimensions, the corpus has 5"),
        (three, broken, 1, EvaluationError, "corpus: vector 2 of 3 has length nan"),
        (three, three, 4, SettingsError, "4 neighbors requested in a corpus of 3"),
    ):
        with pytest.raises(error, match=message):
            nearest_neighbors(queries, corpus, k)


def test_an_exact_search_needs_no_faiss(monkeypatch):
    monkeypatch.setitem(sys.modules, "faiss", None)
    vectors = unit(9, 4)
    assert nearest_neighbors(vectors, vectors, 1).indices[:, 0].tolist() == list(range(9))
    with pytest.raises(MissingExtraError, match=r'pip install "st_paragram\[mining\]"'):
        inexact._faiss()
