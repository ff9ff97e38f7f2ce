import contextlib
import json
from math import log2

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from st_paragram.errors import TextError
from st_paragram.tools.evaluation.own import vectors
from st_paragram.tools.evaluation.own.retrieval import measures, score_retrieval
from st_paragram.tools.evaluation.own.retrieval_files import read_judged

QUERIES = "q1\twhere is it?\nq2\twho was that?\nq3\tunjudged\n"
CORPUS = "d1\tover there\nd2\tin Rome\nd3\ta man\n"
QRELS = "q1\td1\t2\nq1\td2\t1\nq2\td3\t1\nq2\td1\t0\n"


def files(folder, queries=QUERIES, corpus=CORPUS, qrels=QRELS, kind="tsv"):
    paths = [folder / f"{name}.{end}" for name, end in (("queries", kind), ("corpus", kind), ("qrels", "tsv"))]
    for path, text in zip(paths, (queries, corpus, qrels), strict=True):
        path.write_text(text, encoding="utf-8")
    return paths


def test_hand_computed_measures():
    relevant = {7: 2, 8: 1, 9: 1}
    ranked = [0, 7, 1, 8, *range(20, 120)]
    gained = 2 / log2(3) + 1 / log2(5)
    best = 2 / log2(2) + 1 / log2(3) + 1 / log2(4)
    assert measures(ranked, relevant) == pytest.approx((gained / best, 2 / 3, 2 / 3, 1 / 2))
    assert measures([*range(20, 30), 9], relevant) == pytest.approx((0, 0, 1 / 3, 0))
    assert measures([7, 9, 8], relevant) == (1, 1, 1, 1)
    many = dict.fromkeys(range(20), 1)  # the best order has ten in ten
    assert measures(list(range(20)), many) == pytest.approx((1, 0.5, 1, 1))


def test_forms_of_qrels_say_the_same(tmp_path):
    expected = None
    trec = "q1 0 d1 2\nq1 0 d2 1\nq2 0 d3 1\nq2 0 d1 0\n"
    for text in (QRELS, f"query-id\tcorpus-id\tscore\n{QRELS}", trec, trec.replace(" ", "\t")):
        found = read_judged(*files(tmp_path, qrels=text))
        expected = expected or found
        assert found == expected
    assert found.queries == {"q1": "where is it?", "q2": "who was that?"}
    assert found.relevant == [{0: 2, 1: 1}, {2: 1}] and "1 of 3 queries have no relevant document" in found.notes[0]
    assert read_judged(*files(tmp_path, qrels="q1\td1\nq2\td3\n")).relevant == [{0: 1}, {2: 1}]


def test_json_lines_of_beir(tmp_path):
    queries = '{"_id": "q1", "text": "where?", "metadata": {}}\n'
    corpus = [{"_id": "d1", "title": "Rome", "text": "A city."}, {"_id": "d2", "title": "", "text": ""}]
    lines = "".join(json.dumps(row) + "\n" for row in corpus)
    found = read_judged(*files(tmp_path, queries, lines, "q1\td1\t1\n", kind="jsonl"))
    assert (found.queries, found.documents) == ({"q1": "where?"}, {"d1": "Rome A city.", "d2": ""})
    assert found.notes[0].endswith("1 document without text")


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"qrels": "q1\td9\t1\n"}, r"qrels\.tsv: row 1: id 'd9' is not in .*corpus\.tsv"),
        ({"qrels": "q1\td1\t1\nq8\td1\t1\n"}, r"row 2: id 'q8' is not in .*queries\.tsv"),
        ({"qrels": "q1\td1\t1\nq1\td1\t2\n"}, r"row 2: 'q1' and 'd1' were there before"),
        ({"qrels": "q1\td1\tgood\n"}, r"row 1: the grade is 'good'"),
        ({"qrels": "q1\td1\t1\nq1\td2\t0.5\n"}, r"row 2: the grade is '0.5'"),
        ({"qrels": f"q1\td1\t{'9' * 400}\n"}, r"row 1: the grade is"),
        ({"qrels": f"q1\td1\t{'9' * 5000}\n"}, r"row 1: the grade is"),
        ({"qrels": "q1\td1\t0\n"}, r"no query has a document of grade 1 or more"),
        ({"qrels": "q1\n"}, r"row 1: 'q1'; give query id, document id and grade"),
        ({"queries": "q1\ta\nq1\tb\n"}, r"queries\.tsv: row 2: id 'q1' was there before"),
        ({"queries": "q1\t \n"}, r"queries\.tsv: row 1: an empty text"),
        ({"corpus": "d1\ta\n\tb\n"}, r"corpus\.tsv: row 2: an empty id"),
        ({"corpus": "d1\ta\tb\n"}, r"corpus\.tsv: row 1 has 3 columns"),
        ({"queries": '{"_id": "q1"}\n', "kind": "jsonl"}, r"queries\.jsonl: .*text"),
    ],
)
def test_bad_files_are_refused(tmp_path, changed, message):
    with pytest.raises(TextError, match=message):
        read_judged(*files(tmp_path, **changed))


@given(st.sampled_from(["queries", "corpus", "qrels"]), st.sampled_from(["tsv", "jsonl"]), st.text(max_size=60))
def test_files_of_any_content_are_read_or_refused(tmp_path_factory, name, kind, text):
    folder = tmp_path_factory.mktemp("any")
    paths = dict(zip(("queries", "corpus", "qrels"), files(folder, kind="tsv"), strict=True))
    paths[name] = folder / f"any.{kind if name != 'qrels' else 'tsv'}"
    paths[name].write_text(text, encoding="utf-8", errors="replace", newline="")
    with contextlib.suppress(TextError):
        assert read_judged(*paths.values()).relevant


class Towers:
    """Queries and documents have angles."""

    def encode_query(self, texts, **_):
        return self._rows(texts, {"one": 0.0, "two": 2.0, "three": 1.1})

    def encode_document(self, texts, **_):
        return self._rows(texts, {"one": 0.1, "B": 0.3, "C": 2.1, "D": 1.0})

    def _rows(self, texts, table):
        return np.array([[np.cos(table[text]), np.sin(table[text])] for text in texts], np.float32)


def test_towers_are_used_and_a_query_is_not_its_own_document(tmp_path, monkeypatch):
    monkeypatch.setattr(vectors, "batch_size", lambda model: 8)
    corpus = "q1\tone\nb\tB\nc\tC\nq3\tD\n"  # q1 is the first query itself, q3 has another text
    data = read_judged(*files(tmp_path, "q1\tone\nq2\ttwo\nq3\tthree\n", corpus, "q1\tb\t1\nq2\tb\t1\nq3\tq3\t1\n"))
    scores = score_retrieval(Towers(), data)
    # B is the nearest of the first query but for itself, the third of the second (after C and D).
    np.testing.assert_allclose(scores[:, 3], [1, 1 / 3, 1])
    np.testing.assert_allclose(scores[:, 0], [1, 1 / log2(4), 1])
    np.testing.assert_allclose(scores[:, 1:3], 1)
