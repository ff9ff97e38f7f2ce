"""Hybrid search: reciprocal rank fusion by hand, words in several scripts, filters, changes."""

import random
import shutil

import pytest

from st_paragram import SearchIndex
from st_paragram.errors import SettingsError
from st_paragram.tools.search import hybrid, table
from st_paragram.tools.search import recall as recalls
from st_paragram.tools.search.nearest import Request
from st_paragram.tools.search.text_search import Hit

NOUNS = ["station", "train", "house", "river", "night", "music", "bread", "stone"]


@pytest.fixture(scope="module")
def original(tmp_path_factory):
    """An index of 300 sentences of two nouns and a number; every 50th is rare."""
    rng = random.Random(0)
    texts = [f"the {' and the '.join(rng.choices(NOUNS, k=2))} {100 + n}" for n in range(300)]
    fields = [{"rare": number % 50 == 0} for number in range(300)]
    index = SearchIndex.build(texts, tmp_path_factory.mktemp("i") / "i", "p-sp-mini", fields)
    index.index_words()
    return index.folder


@pytest.fixture
def index(tmp_path, original):
    return SearchIndex(shutil.copytree(original, tmp_path / "i"))


def lines(hits):
    return [hit.line for hit in hits]


def words_of(index, text, k):
    vector = index.encoder.encode([text], normalize_embeddings=True)
    return hybrid.find_words(index.table, text, vector, Request(k, threshold=-1))


def test_rankings_are_joined_by_reciprocal_ranks():
    a, b, c, d = (Hit(score, line, "", {}) for line, score in enumerate((0.9, 0.5, 0.4, 0.3), 1))
    # a: 1/61, b: 1/62 + 1/62, c: 1/63 + 1/61, d: 1/63
    assert hybrid.fused([a, b, c], [c, b, d]) == [c, b, a, d]
    assert hybrid.fused([a, b], [b, a]) == [a, b]  # the nearer of equal sums
    assert hybrid.fused([], [d]) == [d]


def test_hits_are_those_of_both_rankings(index):
    query = "music 217"
    nearest = index.search(query, 100)
    (number,) = [hit for hit in index.search(query, 300) if "217" in hit.sentence]
    assert number.line == 118
    words = words_of(index, query, 100)
    assert words[0].line == 118 and all("music" in hit.sentence for hit in words[1:])
    assert set(lines(words)) - set(lines(nearest))
    hits = index.search(query, 100, hybrid=True)
    assert lines(hits) == lines(hybrid.fused(nearest, words))[:100]
    assert hits[0].line == 118 and hits[0].score == pytest.approx(number.score, abs=1e-6)
    assert index.search(query, 5, hybrid=True) == hits[:5]
    assert index.search([query, "bread"], 5, hybrid=True)[0] == hits[:5]
    floor = nearest[20].score
    assert all(hit.score >= floor for hit in index.search(query, 50, floor, hybrid=True))


def test_conditions_select_before_both_rankings(index):
    hits = index.search("music 217 150", 10, where="rare = true", hybrid=True)
    assert sorted(lines(hits)) == [1, 51, 101, 151, 201, 251] and hits[0].line == 51


def test_added_sentences_are_found_before_and_after_compaction(index):
    assert index.add(["a brochure, E-1042", "the café in München"]) == 2
    for _ in range(2):
        assert lines(index.search(["E-1042", "CAFE munchen"], 1, hybrid=True)[0]) == [301]
        assert lines(index.search("CAFE munchen", 1, hybrid=True)) == [302]
        index.compact()
    assert index.table.index_stats("text_idx").num_unindexed_rows == 0
    index.delete(lines=[301])
    assert 301 not in lines(index.search("E-1042", 300, hybrid=True))
    assert table.describe_index(index.folder)["hybrid"] is True
    assert table.describe_index(index.folder)["search"] == "exact"


def test_words_without_spaces(tmp_path):
    texts = ["公共汽车又晚点了", "die Straßenbahn", "we like the cheeses"]
    index = SearchIndex.build(texts, tmp_path / "i", "p-sp-mini")
    index.index_words()
    for text, line in (("晚点", 1), ("STRASSENBAHN", 2), ("CHEESES!", 3), ("The", 3)):
        assert lines(words_of(index, text, 9)) == [line]
    assert not words_of(index, "cheese", 9)  # no stems
    assert len(index.search("?!?!", hybrid=True)) == 3  # no words


def test_approximate_indexes(index, monkeypatch):
    monkeypatch.setattr(recalls, "SMALLEST", 1)
    index.approximate()
    assert lines(index.search("217", 1, hybrid=True, recall=0.5)) == [118]
    monkeypatch.setattr(recalls, "SMALLEST", 1000)
    index.approximate()  # exact again
    assert lines(index.search("217", 1, hybrid=True)) == [118]


def test_an_index_without_words_says_what_to_do(tmp_path):
    index = SearchIndex.build(["where is the station"], tmp_path / "i", "p-sp-mini")
    with pytest.raises(SettingsError, match="--compact INDEX --hybrid"):
        index.search("station", hybrid=True)
    assert lines(index.search("station")) == [1]
