import gzip
import json

import numpy as np
import pytest

from st_paragram.core.text.parallel import TextSource
from st_paragram.errors import EvaluationError, TextError
from st_paragram.tools.evaluation.bucc import read_comparable_texts
from st_paragram.tools.evaluation.files import (
    GradedPairs,
    Translations,
    read_graded_pairs,
    read_translations,
)
from st_paragram.tools.evaluation.retrieval_sets import read_retrieval_set
from st_paragram.tools.evaluation.sts_sets import read_senteval_pairs

# --- graded pairs

GRADED = [("3.5", "a cat", "one cat"), ("-1", "a dog", "42"), ("0", "7", "8")]


@pytest.mark.parametrize("order", [(0, 1, 2), (1, 0, 2), (1, 2, 0)])
@pytest.mark.parametrize("header", [(), [("similarity", "first", "second")]])
def test_the_column_of_scores_is_found(tmp_path, write, caplog, order, header):
    path = write(
        tmp_path / "graded.tsv", [[row[column] for column in order] for row in [*header, *GRADED]]
    )
    pairs = read_graded_pairs(path)
    assert pairs == GradedPairs(
        "graded", ["a cat", "a dog", "7"], ["one cat", "42", "8"], [3.5, -1, 0]
    )
    assert ("treated as a header" in caplog.text) is bool(header)


def test_rows_end_at_line_feeds_alone(tmp_path, write):
    path = write(tmp_path / "dev.tsv", "4.5\tone\u2028line\tother\n0\ta\tb\r\n")
    assert read_graded_pairs(path) == GradedPairs(
        "dev", ["one\u2028line", "a"], ["other", "b"], [4.5, 0.0]
    )


def test_columns_of_a_table_are_named(tmp_path, write):
    table = write(tmp_path / "graded.csv", 'id,s1,s2,score\n1,"a, b",c,0.5\n2,d,e,1\n')
    assert read_graded_pairs(table, ("score", "s1", "s2")) == GradedPairs(
        "graded", ["a, b", "d"], ["c", "e"], [0.5, 1]
    )
    lines = write(
        tmp_path / "graded.jsonl", '{"a": "x", "s": 1, "b": "y"}\n{"a": "z", "s": true, "b": "w"}\n'
    )
    with pytest.raises(TextError, match=r"graded\.jsonl: row 2: column 1 has True, not a score"):
        read_graded_pairs(lines, ("s", "a", "b"))


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([*GRADED, ("good", "a", "b")], r"row 4: column 1 has 'good', not a score"),
        ([*GRADED, ("nan", "a", "b")], r"row 4: column 1 has 'nan'"),
        ([("1", "a", "b"), ("2", " ", "b")], r"row 2: an empty sentence"),
        ([("1", "a", "b"), ("1.0", "c", "d")], r"2 pairs with a single score"),
        ([("1", "a", "b"), ("2", "a")], r"row 2 has 2 columns"),
        ([], "the file is empty"),
    ],
)
def test_bad_graded_files_are_refused(tmp_path, write, rows, message):
    with pytest.raises(TextError, match=rf"graded\.tsv: {message}"):
        read_graded_pairs(write(tmp_path / "graded.tsv", rows))


def test_the_tasks_own_files(tmp_path, write):
    sentences = write(tmp_path / "STS.input.belief.txt", "a\tb\nc\td\tsource\ne\tf\n")
    gold = write(tmp_path / "STS.gs.belief.txt", "5\n\n1\n")
    found = read_senteval_pairs(sentences, gold)  # rows without a grade were never graded
    assert (found.first, found.second, found.grades) == (["a", "e"], ["b", "f"], [5, 1])
    with pytest.raises(TextError, match=r"has 3 rows, .* has 2; give files of the same task"):
        read_senteval_pairs(sentences, write(gold, "1\n2\n"))


# --- translations


def test_translations_have_two_full_sides(tmp_path, write):
    source = TextSource((str(tmp_path / "spa-eng.tsv"),), ("spa", "eng"))
    write(tmp_path / "spa-eng.tsv", [("uno", "one"), ("dos", "two")])
    assert read_translations(source, "spa") == Translations("spa", ["uno", "dos"], ["one", "two"])
    write(tmp_path / "spa-eng.tsv", "uno\tone\n\ttwo\n")
    with pytest.raises(TextError, match="row 2: an empty sentence"):
        read_translations(source, "spa")


# --- retrieval sets

QUERIES = "q1\twhere is it?\nq2\twho was that?\nq3\tunjudged\n"
CORPUS = "d1\tover there\tthe paragraph\nd2\tin Rome\nd3\ta man\n"
QRELS = "q1\td1\t2\nq1\td2\t1\nq2\td3\t1\nq2\td1\t0\n"


@pytest.fixture
def files(tmp_path, write):
    def files(queries=QUERIES, corpus=CORPUS, qrels=QRELS, kind="tsv"):
        texts = {f"queries.{kind}": queries, f"corpus.{kind}": corpus, "qrels.tsv": qrels}
        return [write(tmp_path / name, text) for name, text in texts.items()]

    return files


def test_forms_of_qrels_say_the_same(files, caplog):
    trec = "q1 0 d1 2\nq1 0 d2 1\nq2 0 d3 1\nq2 0 d1 0\n"
    forms = (QRELS, f"query-id\tcorpus-id\tscore\n{QRELS}", trec, trec.replace(" ", "\t"))
    found, *others = [read_retrieval_set(*files(qrels=text)) for text in forms]
    assert all(other == found for other in others)
    assert found.queries == {"q1": "where is it?", "q2": "who was that?"}
    assert found.relevant == [{0: 2, 1: 1}, {2: 1}] and found.contexts == ["the paragraph", "", ""]
    assert "1 of 3 queries have no relevant document and are left out" in caplog.text
    assert read_retrieval_set(*files(qrels="q1\td1\nq2\td3\n")).relevant == [{0: 1}, {2: 1}]


def test_json_lines_of_beir(files):
    corpus = [
        {"_id": "d1", "title": "Rome", "text": "A city."},
        {"_id": "d2", "title": "", "text": ""},
    ]
    lines = "".join(json.dumps(row) + "\n" for row in corpus)
    found = read_retrieval_set(
        *files('{"_id": "q1", "text": "where?", "metadata": {}}\n', lines, "q1\td1\t1\n", "jsonl")
    )
    assert (found.queries, found.corpus) == ({"q1": "where?"}, {"d1": "Rome A city.", "d2": ""})


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"qrels": "q1\td9\t1\n"}, r"qrels\.tsv: row 1: id 'd9' is not in .*corpus\.tsv"),
        ({"qrels": "q1\td1\t1\nq8\td1\t1\n"}, r"row 2: id 'q8' is not in .*queries\.tsv"),
        ({"qrels": "q1\td1\t1\nq1\td1\t2\n"}, r"row 2 repeats the pair 'q1', 'd1'"),
        ({"qrels": "q1\td1\tgood\n"}, r"row 1: the grade is 'good'"),
        ({"qrels": "q1\td1\t1\nq1\td2\t0.5\n"}, r"row 2: the grade is '0.5'"),
        ({"qrels": "q1\td1\tinf\n"}, r"row 1: the grade is 'inf'"),
        ({"qrels": "q1\td1\t0\n"}, r"no query has a document with grade 1 or more"),
        ({"qrels": "q1\n"}, r"row 1 is 'q1'; give query id, document id and grade"),
        ({"queries": "q1\ta\nq1\tb\n"}, r"queries\.tsv: row 2: duplicate id 'q1'"),
        ({"queries": "q1\t \n"}, r"queries\.tsv: row 1: an empty sentence or id"),
        ({"corpus": "d1\ta\n\tb\n"}, r"corpus\.tsv: row 2: an empty sentence or id"),
        ({"corpus": "d1\ta\tb\tc\n"}, r"corpus\.tsv: row 1 has 4 columns"),
        ({"queries": '{"_id": "q1"}\n', "kind": "jsonl"}, r"queries\.jsonl: .*text"),
    ],
)
def test_bad_retrieval_files_are_refused(files, changed, message):
    with pytest.raises(TextError, match=message):
        read_retrieval_set(*files(**changed))


def test_files_may_be_compressed(files):
    paths = files()
    packed = [path.with_name(f"{path.name}.gz") for path in paths]
    for path, other in zip(paths, packed, strict=True):
        other.write_bytes(gzip.compress(path.read_bytes()))
    assert read_retrieval_set(*packed, "x") == read_retrieval_set(*paths, "x")


# --- comparable texts


def test_comparable_texts_and_gold(tmp_path, write):
    texts = {
        "zh": "zh-1\t一\nzh-2\t二\u2028二\nzh-3\t三\n",
        "en": "en-1\tone\r\nen-2\ttwo\nen-3\tthree\n",
    }
    for ending, text in {**texts, "gold": "zh-1\ten-1\nzh-3\ten-3\n"}.items():
        write(tmp_path / f"zh-en.sample.{ending}", text)
    got = read_comparable_texts(tmp_path / "zh-en.sample", "zh-en")
    assert got.name == "zh-en.sample" and list(got.source.values()) == ["一", "二\u2028二", "三"]
    assert got.target == {"en-1": "one", "en-2": "two", "en-3": "three"}
    np.testing.assert_array_equal(got.gold, [[0, 0], [2, 2]])
    write(tmp_path / "zh-en.sample.gold", "zh-1\ten-1\nen-2\tzh-2\n")
    with pytest.raises(TextError, match=r"sample\.gold: row 2: id 'en-2' is not in .*sample\.zh"):
        read_comparable_texts(tmp_path / "zh-en.sample", "zh-en")
    with pytest.raises(EvaluationError, match=r"none\.zh: no such file"):
        read_comparable_texts(tmp_path / "none", "zh-en")
