import pickle

import h5py
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.data import write_store

from st_paragram.core.pair_store import PairStore, PairStoreWriter
from st_paragram.errors import StoreError


@pytest.fixture
def path(tmp_path, pairs, vocabulary):
    return write_store(tmp_path / "x.h5", pairs[:20], vocabulary).path


def test_round_trip(store, pairs, vocabulary):
    assert (len(store), store.languages, store.settings) == (len(pairs), ("en", "xx"), {"note": "made for tests"})
    rows = np.array([5, 0, 699, 5])
    for side, index in (("a", 0), ("b", 1)):
        assert list(store.texts(side, rows)) == [pairs[row][index] for row in rows]
    assert store.tokenizer() == vocabulary and store.tokenizers == (vocabulary, vocabulary)
    assert store.shared_tokenizer and store.tokenizer("a") is store.tokenizer("b")


@settings(max_examples=30)
@given(st.data())
def test_take_equals_slicing_one_by_one(store, data):
    rows = np.array(data.draw(st.lists(st.integers(0, len(store) - 1), max_size=20)), dtype=np.int64)
    with h5py.File(store.path) as file:
        ids, offsets = file["b/ids"][:], file["b/offsets"][:]
    expected = [ids[int(offsets[r]) : int(offsets[r + 1])] for r in rows]
    got, got_offsets = store.take("b", rows)
    assert got_offsets.tolist() == [0, *np.cumsum([len(e) for e in expected], dtype=int).tolist()]
    assert got.tolist() == [i for e in expected for i in e]


def test_appending_in_parts_equals_appending_at_once(tmp_path, store, pairs, vocabulary):
    with PairStoreWriter(tmp_path / "parts.h5", ("en", "xx"), vocabulary, 100) as writer:
        for start in range(0, len(pairs), 33):
            part = pairs[start : start + 33]
            writer.append(*vocabulary.encode([a for a, _ in part]), *vocabulary.encode([b for _, b in part]))
    rows = np.arange(len(pairs))
    parts = PairStore(tmp_path / "parts.h5")
    for side in "ab":
        for got, expected in zip(parts.take(side, rows), store.take(side, rows), strict=True):
            assert (got == expected).all()


def test_ids_take_the_smallest_type(path, vocabulary):
    with h5py.File(path) as file:
        assert file["a/ids"].dtype == (np.uint8 if len(vocabulary) <= 256 else np.uint16)


def test_an_error_leaves_nothing_behind(tmp_path, vocabulary):
    with pytest.raises(RuntimeError), PairStoreWriter(tmp_path / "x.h5", ("en", "xx"), vocabulary) as writer:
        writer.append(*vocabulary.encode(["ba"]), *vocabulary.encode(["ce"]))
        raise RuntimeError
    assert list(tmp_path.iterdir()) == []


def test_readers_travel_between_processes(store):
    store.take("a", np.array([0]))
    copy = pickle.loads(pickle.dumps(store))
    assert list(copy.texts("a", np.array([3]))) == list(store.texts("a", np.array([3])))


def _break(path, action):
    with h5py.File(path, "r+") as file:
        action(file)


@pytest.mark.parametrize(
    ("action", "message"),
    [
        (lambda f: f.attrs.__delitem__("complete"), "incomplete"),
        (lambda f: f.attrs.__setitem__("format_version", 7), "version 7"),
        (lambda f: f.attrs.__delitem__("format"), "not a pair store"),
        (lambda f: f.attrs.__setitem__("pairs", 0), "no pairs"),
        (lambda f: f.attrs.__setitem__("pairs", 19), "side a has 20 sentences, not 19"),
        (lambda f: f["b/offsets"].__setitem__(5, 0), "side b, row 4: offsets do not increase"),
        (lambda f: f["a/offsets"].__setitem__(20, 10**6), "side a: offsets run"),
        (lambda f: f.__delitem__("b/ids"), "not a readable pair store"),
        (lambda f: f["sentencepiece_model"].__setitem__(slice(None), 0), "damaged tokenizer"),
    ],
)
def test_broken_stores_are_refused_by_name(path, action, message):
    _break(path, action)
    with pytest.raises(StoreError, match=message) as caught:
        PairStore(path)
    assert str(path) in str(caught.value) and "\n" not in str(caught.value)


def test_ids_out_of_range_are_refused_with_their_row(tmp_path, vocabulary):
    path = tmp_path / "x.h5"
    with PairStoreWriter(path, ("en", "xx"), vocabulary) as writer:
        wrong = np.array([1, 2, len(vocabulary), 3]), np.array([0, 2, 4])
        writer.append(*wrong, *vocabulary.encode(["ba", "ce"]))
    with pytest.raises(StoreError, match=rf"side a, row 1: id {len(vocabulary)} is outside"):
        PairStore(path)


def test_an_empty_store_is_refused(tmp_path, vocabulary):
    with PairStoreWriter(tmp_path / "x.h5", ("en", "xx"), vocabulary):
        pass
    with pytest.raises(StoreError, match="holds no pairs"):
        PairStore(tmp_path / "x.h5")


def test_missing_truncated_and_foreign_files(tmp_path, path):
    with pytest.raises(StoreError, match="no such pair store"):
        PairStore(tmp_path / "none.h5")
    path.write_bytes(path.read_bytes()[:-3000])
    with pytest.raises(StoreError, match=r"not a readable pair store|truncated"):
        PairStore(path)
    path.write_text("hello")
    with pytest.raises(StoreError, match="not a readable pair store"):
        PairStore(path)
