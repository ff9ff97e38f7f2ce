"""Exact searches with the vectors in memory, against searches of the table."""

import itertools

import pytest

from st_paragram import SearchIndex
from st_paragram.tools.search import memory

WORDS = ["station", "train", "house", "green", "river", "night", "music", "bread"]
TEXTS = [f"{first} {second}" for first in WORDS for second in WORDS]
QUERIES = ["green river", "night train", "music", "bread", "house"]


@pytest.fixture
def indexes(tmp_path):
    """The same index without and with vectors in memory."""
    fields = [{"number": number} for number in range(len(TEXTS))]
    plain = SearchIndex.build(TEXTS, tmp_path / "i", "p-sp-mini", fields)
    plain = SearchIndex(plain.folder, memory=0)
    kept = SearchIndex(plain.folder)
    kept.search("train")  # the second search keeps the vectors
    return plain, kept


def results(index):
    """Hits of searches with conditions, one query or several, and few hits or all."""
    found = [index.search("train", threshold=0.6), index.search(QUERIES, 7, where="number < 0")]
    for where in (None, "number < 3", "number >= 3"):
        for queries in (QUERIES, QUERIES[:1]):
            for k in (1, 7, 1000):
                found.append(index.search(queries, k, where=where))
    return found


def check_equal(plain, kept):
    assert results(kept) == results(plain)


def test_vectors_in_memory_give_the_same_hits_after_all_changes(indexes):
    plain, kept = indexes
    check_equal(plain, kept)
    assert kept._memory._snapshot is not None and plain._memory._snapshot is None
    plain.add(["a bridge", "green river"], {"number": 1})
    check_equal(plain, kept)
    plain.delete("number = 5")
    check_equal(plain, kept)
    plain.compact()
    check_equal(plain, kept)
    plain.delete("true")
    check_equal(plain, kept)
    plain.add(["the only one", "green river"], {"number": 1})
    check_equal(plain, kept)
    SearchIndex.build(TEXTS[::-1], plain.folder, "p-sp-mini", {"number": 2}, overwrite=True)
    plain = SearchIndex(plain.folder, memory=0)
    check_equal(plain, kept)


# Each makes searches in memory take another way.
WAYS = [
    {"_MANY": 1},  # products with all vectors
    {"_MOST_ROWS": 2, "_BLOCK": 5},
    {"_SPARE": 0},  # further sentences may be as near
    {"_PART": 1},
    {"_PART": 1000},
    {"_PART": 1000, "_MANY": 1},
]


def test_all_ways_to_search_in_memory_give_the_same_hits(indexes, monkeypatch):
    plain, kept = indexes
    monkeypatch.setattr(memory, "_SHARD", 24)

    def check_all_ways():
        expected = results(plain)
        for numbers in WAYS:
            with monkeypatch.context() as patch:
                for name, number in numbers.items():
                    patch.setattr(memory, name, number)
                assert results(kept) == expected, numbers

    plain.add([f"{text} again" for text in TEXTS], {"number": 2})
    check_all_ways()
    plain.delete("number between 5 and 9")
    check_all_ways()
    snapshot = kept._memory._snapshot
    assert len(snapshot.vectors.shards) == 6
    plain.add(["a bridge", "green rivers"], {"number": 1})
    check_all_ways()
    assert kept._memory._snapshot.vectors.indexes[0] is snapshot.vectors.indexes[0]


def test_equally_near_sentences_are_in_the_order_of_lines(tmp_path):
    texts = [" ".join(order) for order in itertools.permutations(WORDS[:5])]
    plain = SearchIndex(SearchIndex.build(texts, tmp_path / "i", "p-sp-mini").folder, memory=0)
    kept = SearchIndex(plain.folder)
    kept.search("train")
    for k in (1, 5, 100, 119):
        hits = kept.search([texts[0], "train"], k)
        assert hits == plain.search([texts[0], "train"], k)
        assert [hit.line for hit in hits[0]] == list(range(1, k + 1))


def test_a_search_in_memory_has_a_time_limit(indexes):
    _, kept = indexes
    with pytest.raises(TimeoutError):
        kept.search_vectors(kept.encoder.encode(["train"]), seconds=0)
