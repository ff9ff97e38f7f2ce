"""Retrieval sets in folders, and sets made of pairs of equivalent sentences."""

import gzip
import lzma

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from st_paragram.errors import EvaluationError, SettingsError, TextError
from st_paragram.tools.evaluation.retrieval_files import (
    answer_folders,
    read_retrieval_set,
    read_semantic_sets,
    retrieval_folders,
    semantic_folders,
    write_retrieval_set,
)
from st_paragram.tools.evaluation.retrieval_groups import (
    groups_of,
    read_askubuntu,
    read_pairs_of_sentences,
    retrieval_set,
)

QUERIES, CORPUS, QRELS = "q1\twho\nq2\twhere\n", "s1\tda\tda ba\ns2\tba\ts3\nx\tlo\t\n", "q2\tx\nq1\ts2\nq2\ts1\n"


def write(folder, queries=QUERIES, corpus=CORPUS, qrels=QRELS):
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in (("queries", queries), ("corpus", corpus), ("qrels", qrels)):
        (folder / f"{name}.tsv").write_text(text, encoding="utf-8", newline="\n")
    return folder


def rows(found):
    return [row.tolist() for row in found.relevant]


def test_a_set_is_read(tmp_path):
    found = read_retrieval_set(write(tmp_path / "set"))
    assert found.name == "set" and found.queries == {"q1": "who", "q2": "where"}
    assert found.corpus == {"s1": "da", "s2": "ba", "x": "lo"} and found.contexts == ("da ba", "s3", "")
    assert rows(found) == [[1], [0, 2]]
    first = found.first(1)
    assert first.queries == {"q1": "who"} and rows(first) == [[1]] and first.corpus == found.corpus
    assert rows(found.first(None)) == rows(found)


@pytest.mark.parametrize(("ending", "opened"), [("xz", lzma.open), ("gz", gzip.open)])
def test_files_may_be_compressed(tmp_path, ending, opened):
    write(tmp_path)
    for name in ("queries", "corpus", "qrels"):
        plain = tmp_path / f"{name}.tsv"
        with opened(f"{plain}.{ending}", "wb") as file:
            file.write(plain.read_bytes())
        plain.unlink()
    assert rows(read_retrieval_set(tmp_path)) == [[1], [0, 2]]


def test_a_set_is_written_as_it_is_read(tmp_path):
    found = read_retrieval_set(write(tmp_path / "a"), "name")
    again = read_retrieval_set(write_retrieval_set(found, tmp_path / "b" / "c"), "name")
    assert rows(again) == rows(found)
    assert (again.queries, again.corpus, again.contexts) == (found.queries, found.corpus, found.contexts)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"queries": "q1\twho\nq1\twhere\n"}, r"queries.tsv: row 2: id 'q1' was there before"),
        ({"queries": "q1\twho\nq2\n"}, r"queries.tsv: row 2 has 1 column, 'q2', where 2 are expected"),
        ({"queries": "q1\twho\tda\n"}, r"queries.tsv: row 1 has 3 columns, where 2 are expected"),
        ({"queries": "q1\t \n"}, r"queries.tsv: row 1: an empty text"),
        ({"queries": ""}, r"queries.tsv: empty"),
        ({"corpus": "s1\tda\n\ns2\tba\nx\tlo\n"}, r"corpus.tsv: row 2 has 1 column"),
        ({"corpus": "\tda\n"}, r"corpus.tsv: row 1: an empty id"),
        ({"corpus": "s1\ta\tb\tc\n"}, r"corpus.tsv: row 1 has 4 columns, where 2 to 3 are expected"),
        ({"qrels": "q1\ts2\nq3\ts1\n"}, r"qrels.tsv: row 2: id 'q3' is not in queries.tsv"),
        ({"qrels": "q1\ts2\nq2\ts9\n"}, r"qrels.tsv: row 2: id 's9' is not in corpus.tsv"),
        ({"qrels": "q1\ts2\nq2\tx\nq1\ts2\n"}, r"qrels.tsv: row 3: 'q1' and 's2' were there before"),
        ({"qrels": "q1\ts2\n"}, r"qrels.tsv: no row for query 'q2'"),
    ],
)
def test_wrong_rows_are_refused_by_file_and_number(tmp_path, changed, message):
    with pytest.raises(TextError, match=message) as refused:
        read_retrieval_set(write(tmp_path, **changed))
    assert "\n" not in str(refused.value)


def test_a_file_that_is_missing_is_named(tmp_path):
    write(tmp_path)
    (tmp_path / "qrels.tsv").unlink()
    with pytest.raises(EvaluationError, match=r"no qrels.tsv; a retrieval set has queries.tsv"):
        read_retrieval_set(tmp_path)


def test_sets_are_found_and_told_apart(tmp_path):
    write(tmp_path / "xquad" / "es")
    write(tmp_path / "squad")
    write(tmp_path / "quora", "a\tda\nb\tba\n", "a\tda\nc\tlo\nb\tba\n", "a\tb\nb\ta\n")
    # ids are shared, but they are those of other texts
    write(tmp_path / "numbers", "1\tda\n", "1\tlo\n2\tba\n", "1\t2\n")
    (tmp_path / "other").mkdir()
    assert list(retrieval_folders(tmp_path)) == ["numbers", "quora", "squad", "xquad/es"]
    assert list(semantic_folders(tmp_path)) == ["quora"]
    assert list(answer_folders(tmp_path)) == ["numbers", "squad", "xquad/es"]
    assert retrieval_folders(tmp_path / "quora") == {"quora": tmp_path / "quora"}
    (found,) = read_semantic_sets(tmp_path, 1)
    assert found.name == "quora" and list(found.queries) == ["a"]
    with pytest.raises(SettingsError, match="a limit of 0 queries"):
        read_semantic_sets(tmp_path, 0)
    with pytest.raises(EvaluationError, match="no sets of sentences that look for each other"):
        read_semantic_sets(tmp_path / "squad")


def test_groups_are_the_closure_of_pairs():
    assert groups_of(7, [(0, 2), (4, 2), (5, 1), (3, 3)]) == [[0, 2, 4], [1, 5]]
    assert groups_of(2, []) == groups_of(0, []) == []


@given(st.lists(st.tuples(st.integers(0, 8), st.integers(0, 8)), max_size=12))
def test_groups_are_those_of_reachable_nodes(pairs):
    reach = np.eye(9, dtype=bool)
    for first, second in pairs:
        reach[first, second] = reach[second, first] = True
    for _ in range(4):
        reach = reach @ reach
    expected = {tuple(np.flatnonzero(row).tolist()) for row in reach if row.sum() > 1}
    assert sorted(map(tuple, groups_of(9, pairs))) == sorted(expected)


def test_pairs_of_sentences_make_a_set(tmp_path):
    path = tmp_path / "quora.dev.tsv"
    path.write_text("a\tb\nnobody\nc\td\nb\te\na\ta\n")
    found = read_pairs_of_sentences(path)
    assert found.name == "quora" and list(found.corpus.values()) == ["a", "b", "nobody", "c", "d", "e"]
    assert list(found.queries.values()) == ["a", "b", "c", "d", "e"]
    assert rows(found) == [[1, 5], [0, 5], [4], [3], [0, 1]]
    path.write_text("a\tb\nc\t\n")
    with pytest.raises(TextError, match=r"quora.dev.tsv: row 2: an empty sentence"):
        read_pairs_of_sentences(path)
    with pytest.raises(EvaluationError, match="no pairs of different sentences"):
        retrieval_set("alone", {"a": "da"}, [("a", "a")])


def test_askubuntu_is_read_as_its_authors_give_it(tmp_path):
    texts, dev, test = tmp_path / "text_tokenized.txt.gz", tmp_path / "dev.txt", tmp_path / "test.txt"
    rows_of_texts = ["1\tinstall ?\tbody", "2\thow to install\t", "3\tsound", "4\tno sound\tb", "5\tsound\tb", "6\tx\t"]
    with gzip.open(texts, "wt") as file:
        file.write("".join(f"{row}\n" for row in rows_of_texts))
    dev.write_text("1\t2\t3 2\t0.5 0.2\n")
    test.write_text("4\t5\n")
    found = read_askubuntu(texts, [dev, test])
    # 3 and 5 have one title, and 6 is in no list
    assert found.corpus == {"1": "install ?", "2": "how to install", "3": "sound", "4": "no sound"}
    assert list(found.queries) == ["1", "2", "3", "4"] and rows(found) == [[1], [0], [3], [2]]
    test.write_text("4\t5\n5\t7\n")
    with pytest.raises(TextError, match=r"test.txt: row 2: no title of question '7'"):
        read_askubuntu(texts, [dev, test])
