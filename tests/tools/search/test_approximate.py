"""Approximate search indexes: their measured recall, filters, ties, and indexes of earlier
versions.
"""

import itertools
import random
import shutil

import numpy as np
import pytest
from lancedb.index import IvfFlat

from st_paragram import Encoder, SearchIndex
from st_paragram.errors import SettingsError
from st_paragram.tools.search import approximation, nearest, table
from st_paragram.tools.search import recall as recalls

WORDS = [
    "station",
    "train",
    "house",
    "green",
    "river",
    "night",
    "music",
    "bread",
    "stone",
    "cloud",
    "letter",
    "winter",
]
QUERIES = ["station", "green river", "the night train", "winter music and bread in the house"]


def sentences_of(rng, count):
    return [" ".join(rng.choices(WORDS, k=3)) for _ in range(count)]


@pytest.fixture(scope="module")
def texts():
    """3,000 sentences of three words and a number."""
    return [f"{text} {number}" for number, text in enumerate(sentences_of(random.Random(1), 3000))]


@pytest.fixture(scope="module")
def exact_folder(tmp_path_factory, texts):
    """An index of the sentences; every 300th is rare."""
    fields = [{"rare": number % 300 == 0, "number": number} for number in range(len(texts))]
    return SearchIndex.build(
        texts, tmp_path_factory.mktemp("exact") / "i", "p-sp-mini", fields
    ).folder


@pytest.fixture
def copy(tmp_path, exact_folder, monkeypatch):
    """A copy of the index, which may become approximate."""
    monkeypatch.setattr(recalls, "SMALLEST", 1)
    return SearchIndex(shutil.copytree(exact_folder, tmp_path / "i"))


@pytest.fixture
def approximate(copy):
    """An approximate copy of the index, with its measurement."""
    return copy, copy.approximate(0.9)


def first_lines(index, **options):
    return [hits[0].line for hits in index.search(QUERIES, **options)]


def test_searches_find_the_share_that_was_measured(approximate, exact_folder, texts):
    index, measurement = approximate
    assert (measurement.wanted, measurement.sentences, measurement.lists) == (0.9, 3000, 6)
    assert list(measurement.shares) == [1, 2, 3, 4, 6]
    # sentences of four words have no other parts
    assert list(measurement.shares[6]) == ["two words", "one word"]
    assert measurement.recall(1) < measurement.recall(3) < measurement.recall(6) > 0.9
    queries = [*texts[:200:4], *WORDS, *QUERIES]
    nearest = [{hit.line for hit in hits} for hits in SearchIndex(exact_folder).search(queries)]

    def share(**options):
        pairs = zip(index.search(queries, **options), nearest, strict=True)
        return np.mean([len({hit.line for hit in hits} & lines) / 10 for hits, lines in pairs])

    assert share() > 0.9
    assert (
        share(recall=measurement.recall(1))
        < share(recall=measurement.recall(3))
        < share(recall=1)
        == 1
    )


def test_the_recall_is_measured_with_as_many_candidates_as_searches_have(
    copy, exact_folder, monkeypatch
):
    monkeypatch.setattr(approximation, "MIN_CANDIDATES", 30)
    monkeypatch.setattr(nearest, "MIN_CANDIDATES", 30)
    monkeypatch.setattr(nearest, "CANDIDATES_PER_HIT", 1)
    measurement = copy.approximate(0.9)
    sample = np.random.default_rng(0).permutation(3000)[: recalls.SAMPLE]
    rows = copy.table.take_offsets(np.sort(sample).tolist()).select(["text"]).to_arrow()
    for kind, queries in recalls.held_out_queries(rows["text"].to_pylist()).items():
        kinds = np.repeat([kind], len(queries))
        best = scores_of(SearchIndex(exact_folder), queries)
        for lists in measurement.shares:
            scores = scores_of(copy, queries, recall=measurement.recall(lists))
            shares = recalls.found_shares(scores, best, kinds)[kind]
            assert measurement.shares[lists][kind] == pytest.approx(shares, abs=0.02)
    assert measurement.recall(6) < 0.99


def scores_of(index, queries, **options):
    return np.array([[hit.score for hit in hits] for hits in index.search(queries, **options)])


def test_where_the_recall_is_not_reached_all_sentences_are_compared(approximate, exact_folder):
    index, _ = approximate
    measurement = recalls.Measurement(
        0.9, 3000, 6, {1: {"one word": (0.5, 0.4)}, 6: {"one word": (0.97, 0.92)}}
    )
    assert [measurement.visited(wanted) for wanted in (None, 0.1, 0.4, 0.92, 0.93, 1)] == [
        6,
        1,
        1,
        6,
        None,
        None,
    ]
    text = measurement.to_json()
    assert str(recalls.Measurement.from_json(text)) == str(measurement)
    assert str(measurement).startswith(
        "searches visit 6 of 6 lists"
    ) and "97.0% / 92.0% for one word" in str(measurement)
    everything = SearchIndex(exact_folder).search(QUERIES)
    assert index.search(QUERIES, recall=1) == everything
    with table.changing(index.folder) as lance_table:
        table.write_note(lance_table, "vector", "recall", text)
    assert index.search(QUERIES, recall=0.93) == everything


def test_a_recall_that_is_not_reached_is_reported(copy, exact_folder, monkeypatch, caplog):
    monkeypatch.setattr(approximation, "MIN_CANDIDATES", 10)
    monkeypatch.setattr(nearest, "MIN_CANDIDATES", 10)
    monkeypatch.setattr(nearest, "CANDIDATES_PER_HIT", 0)
    measurement = copy.approximate(0.999)
    assert measurement.visited() is None and str(measurement).startswith(
        "searches compare all sentences"
    )
    assert "recall 0.999 is not reached with all lists, but 0." in caplog.text
    assert copy.search(QUERIES) == SearchIndex(exact_folder).search(QUERIES)


def test_a_small_index_stays_exact(approximate, exact_folder, monkeypatch):
    index, _ = approximate
    monkeypatch.setattr(recalls, "SMALLEST", 3001)
    assert table.describe_index(index.folder)[
        "search"
    ] == "approximate" and "recall" in table.describe_index(index.folder)
    assert index.approximate() is None
    assert table.describe_index(index.folder)[
        "search"
    ] == "exact" and "recall" not in table.describe_index(index.folder)
    assert index.search(QUERIES) == SearchIndex(exact_folder).search(QUERIES)


def test_with_a_filter_all_lists_are_searched(approximate, exact_folder):
    index, measurement = approximate
    nearest = SearchIndex(exact_folder).search(QUERIES, 1, where="rare")
    for recall in (None, measurement.recall(1), 1):
        assert index.search(QUERIES, 1, where="rare", recall=recall) == nearest
        assert [len(hits) for hits in index.search(QUERIES, 10, where="rare", recall=recall)] == [
            10
        ] * 4


def test_later_sentences_are_found(approximate):
    index, _ = approximate
    index.add(["a sentence that came later"], {"rare": True, "number": 0.5})
    assert (
        index.fields["number"] == "double"
        and table.describe_index(index.folder)["search"] == "approximate"
    )
    for change in (lambda: None, index.compact):
        change()
        for where in (None, "rare", "number = 0.5"):
            assert index.search(["a sentence that came later"], 1, where=where)[0][0].line == 3001


@pytest.mark.parametrize("where", [None, "rare", "not rare"])
def test_the_first_hits_do_not_depend_on_how_many_are_wanted(approximate, exact_folder, where):
    index, measurement = approximate
    exact = SearchIndex(exact_folder)
    for source, recall in [
        (exact, None),
        (index, None),
        (index, measurement.recall(1)),
        (index, 1),
    ]:
        longest = source.search(QUERIES, 40, where=where, recall=recall)
        for k in (1, 2, 3, 7, 10, 39):
            hits = source.search(QUERIES, k, where=where, recall=recall)
            assert hits == [of_query[:k] for of_query in longest]


def test_more_sentences_than_in_the_lists_are_found(approximate):
    index, measurement = approximate
    recall = measurement.recall(1)
    assert [len(hits) for hits in index.search(QUERIES, 5000, recall=recall)] == [3000] * 4
    together = index.search([*WORDS, *QUERIES], recall=recall)
    assert together == [index.search([query], recall=recall)[0] for query in [*WORDS, *QUERIES]]


def test_equal_scores_are_cut_in_the_order_of_lines(tmp_path, approximate):
    rng = random.Random(0)
    # 120 sentences with equal embeddings
    orders = [" ".join(order) for order in itertools.permutations(WORDS[:5])]
    exact = SearchIndex.build(
        [*rng.sample(orders, 60), *sentences_of(rng, 100), *rng.sample(orders, 120)],
        tmp_path / "j",
        "p-sp-mini",
    )
    index, _ = approximate
    index.add(rng.sample(orders, 120))
    for source in (exact, index):
        lines = sorted(hit.line for hit in source.search([orders[0]], 120)[0])
        for k in (1, 5, 50, 119):
            assert [hit.line for hit in source.search([orders[0]], k)[0]] == lines[:k]


def test_an_index_without_a_measured_recall_is_searched_exactly(copy, exact_folder):
    with table.changing(copy.folder) as lance_table:
        lance_table.create_index(
            "vector", config=IvfFlat("dot", num_partitions=54, max_iterations=10, sample_rate=64)
        )
    exact = SearchIndex(exact_folder)
    assert copy.search(QUERIES) == copy.search(QUERIES, recall=0.9) == exact.search(QUERIES)
    copy.approximate()
    assert first_lines(SearchIndex(copy.folder)) == first_lines(exact)


def test_dimensions_without_codes_are_searched_in_lists_of_vectors(tmp_path, texts, monkeypatch):
    monkeypatch.setattr(recalls, "SMALLEST", 1)
    Encoder("p-sp-mini").save(tmp_path / "m", truncate_dim=100)
    index = SearchIndex.build(texts, tmp_path / "i", tmp_path / "m")
    exact = index.search(QUERIES)
    measurement = index.approximate()
    assert measurement.recall(6) == 1 > measurement.recall(1)
    assert index.search(QUERIES) == index.search(QUERIES, recall=1) == exact


@pytest.mark.parametrize("recall", [0, -0.5, 1.5, float("nan"), "0.9", True])
def test_a_recall_that_is_not_a_share_is_refused(exact_folder, recall):
    index = SearchIndex(exact_folder)
    for call in (
        lambda: index.search(["station"], recall=recall),
        lambda: index.approximate(recall),
    ):
        with pytest.raises(
            SettingsError, match=r"recall is .*; give a share above 0 and at most 1"
        ):
            call()


def test_held_out_queries_are_parts_of_sentences():
    sentences = [
        f"The green house number {number} is near the old station." for number in range(50)
    ]
    queries = recalls.held_out_queries(sentences)
    assert queries == recalls.held_out_queries(sentences)
    lengths = {kind: len(some[0].split()) for kind, some in queries.items()}
    assert lengths == {"sentences": 10, "halves": 5, "phrases": 4, "two words": 2, "one word": 1}
    assert set(queries["one word"]) <= {"green", "house", "number", "near", "station"}
    chinese = recalls.held_out_queries(
        ["今天天气很好我们去公园散步吧大家一起来", "火车站在哪里请问您知道怎么走吗"] * 3
    )
    assert set(map(len, chinese["one word"])) == {2} and set(map(len, chinese["phrases"])) <= {7, 8}
    assert recalls.held_out_queries(["one", "two"]) == {"sentences": ["one", "two"]}
