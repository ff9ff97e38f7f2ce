import gzip
import json

import numpy as np
import pytest

from st_paragram.core.text.parallel import TextSource
from st_paragram.errors import EvaluationError, TextError
from st_paragram.tools.evaluation.files import (
    GradedPairs,
    Translations,
    read_comparable_texts,
    read_graded_pairs,
    read_retrieval_set,
    read_senteval_pairs,
    read_translations,
)

GRADED = [("3.5", "a cat", "one cat"), ("-1", "a dog", "42"), ("0", "7", "8")]


def written(folder, rows, name="graded.tsv"):
    path = folder / name
    path.write_text("".join("\t".join(row) + "\n" for row in rows), encoding="utf-8")
    return path


# --- graded pairs


@pytest.mark.parametrize("order", [(0, 1, 2), (1, 0, 2), (1, 2, 0)])
@pytest.mark.parametrize("header", [(), [("similarity", "first", "second")]])
def test_the_column_of_scores_is_found(tmp_path, caplog, order, header):
    path = written(tmp_path, [[row[column] for column in order] for row in [*header, *GRADED]])
    pairs = read_graded_pairs(path)
    assert pairs == GradedPairs("graded", ["a cat", "a dog", "7"], ["one cat", "42", "8"], [3.5, -1, 0])
    assert ("counts as a header" in caplog.text) is bool(header)


def test_rows_end_at_line_feeds_alone(tmp_path):
    path = tmp_path / "dev.tsv"
    path.write_text("4.5\tone\u2028line\tother\n0\ta\tb\r\n", encoding="utf-8", newline="\n")
    assert read_graded_pairs(path) == GradedPairs("dev", ["one\u2028line", "a"], ["other", "b"], [4.5, 0.0])


def test_columns_of_a_table_are_named(tmp_path):
    (tmp_path / "graded.csv").write_text('id,s1,s2,score\n1,"a, b",c,0.5\n2,d,e,1\n')
    pairs = read_graded_pairs(tmp_path / "graded.csv", ("score", "s1", "s2"))
    assert (pairs.grades, pairs.first, pairs.second) == ([0.5, 1], ["a, b", "d"], ["c", "e"])
    lines = tmp_path / "graded.jsonl"
    lines.write_text('{"a": "x", "s": 1, "b": "y"}\n{"a": "z", "s": true, "b": "w"}\n')
    with pytest.raises(TextError, match=r"graded\.jsonl: row 2: column 1 has True, not a score"):
        read_graded_pairs(lines, ("s", "a", "b"))


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([*GRADED, ("good", "a", "b")], r"row 4: column 1 has 'good', not a score"),
        ([*GRADED, ("nan", "a", "b")], r"row 4: column 1 has 'nan'"),
        ([("1", "a", "b"), ("2", " ", "b")], r"row 2: an empty sentence"),
        ([("1", "a", "b"), ("1.0", "c", "d")], r"2 pairs of one score"),
        ([("1", "a", "b"), ("2", "a")], r"row 2 has 2 columns"),
        ([], "empty"),
    ],
)
def test_bad_graded_files_are_refused(tmp_path, rows, message):
    with pytest.raises(TextError, match=rf"graded\.tsv: {message}"):
        read_graded_pairs(written(tmp_path, rows))


def test_the_tasks_own_files(tmp_path):
    sentences, gold = tmp_path / "STS.input.belief.txt", tmp_path / "STS.gs.belief.txt"
    sentences.write_text("a\tb\nc\td\tsource\ne\tf\n")
    gold.write_text("5\n\n1\n")
    found = read_senteval_pairs(sentences, gold)  # rows without a grade were never graded
    assert (found.first, found.second, found.grades) == (["a", "e"], ["b", "f"], [5, 1])
    gold.write_text("1\n2\n")
    with pytest.raises(TextError, match=r"has 3 rows, .* has 2; they must belong together"):
        read_senteval_pairs(sentences, gold)
    sentences.write_text("a b\nc\td\n")
    with pytest.raises(TextError, match="row 1: expected `sentence TAB sentence`"):
        read_senteval_pairs(sentences, gold)


# --- translations


def test_translations_have_two_full_sides(tmp_path):
    path = written(tmp_path, [("uno", "one"), ("dos", "two")], "spa-eng.tsv")
    assert read_translations(TextSource((str(path),), ("spa", "eng")), "spa") == Translations(
        "spa", ["uno", "dos"], ["one", "two"]
    )
    for text, message in (
        ("uno\tone\n\ttwo\n", "row 2: an empty sentence"),
        ("uno\tone\tx\n", "row 1 has 3 columns"),
        ("", "empty"),
    ):
        path.write_text(text)
        with pytest.raises(TextError, match=message):
            read_translations(TextSource((str(path),), ("spa", "eng")), "spa")


# --- retrieval sets

QUERIES = "q1\twhere is it?\nq2\twho was that?\nq3\tunjudged\n"
CORPUS = "d1\tover there\tthe paragraph\nd2\tin Rome\nd3\ta man\n"
QRELS = "q1\td1\t2\nq1\td2\t1\nq2\td3\t1\nq2\td1\t0\n"


def files(folder, queries=QUERIES, corpus=CORPUS, qrels=QRELS, kind="tsv"):
    paths = [folder / f"{name}.{end}" for name, end in (("queries", kind), ("corpus", kind), ("qrels", "tsv"))]
    for path, text in zip(paths, (queries, corpus, qrels), strict=True):
        path.write_text(text, encoding="utf-8")
    return paths


def test_forms_of_qrels_say_the_same(tmp_path, caplog):
    trec = "q1 0 d1 2\nq1 0 d2 1\nq2 0 d3 1\nq2 0 d1 0\n"
    forms = (QRELS, f"query-id\tcorpus-id\tscore\n{QRELS}", trec, trec.replace(" ", "\t"))
    found, *others = [read_retrieval_set(*files(tmp_path, qrels=text)) for text in forms]
    assert all(other == found for other in others)
    assert found.queries == {"q1": "where is it?", "q2": "who was that?"}
    assert found.relevant == [{0: 2, 1: 1}, {2: 1}] and found.contexts == ["the paragraph", "", ""]
    assert "1 of 3 queries have no relevant document and are left out" in caplog.text
    assert read_retrieval_set(*files(tmp_path, qrels="q1\td1\nq2\td3\n")).relevant == [{0: 1}, {2: 1}]


def test_json_lines_of_beir(tmp_path):
    queries = '{"_id": "q1", "text": "where?", "metadata": {}}\n'
    corpus = [{"_id": "d1", "title": "Rome", "text": "A city."}, {"_id": "d2", "title": "", "text": ""}]
    lines = "".join(json.dumps(row) + "\n" for row in corpus)
    found = read_retrieval_set(*files(tmp_path, queries, lines, "q1\td1\t1\n", kind="jsonl"))
    assert (found.queries, found.corpus) == ({"q1": "where?"}, {"d1": "Rome A city.", "d2": ""})


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"qrels": "q1\td9\t1\n"}, r"qrels\.tsv: row 1: id 'd9' is not in .*corpus\.tsv"),
        ({"qrels": "q1\td1\t1\nq8\td1\t1\n"}, r"row 2: id 'q8' is not in .*queries\.tsv"),
        ({"qrels": "q1\td1\t1\nq1\td1\t2\n"}, r"row 2: 'q1' and 'd1' were there before"),
        ({"qrels": "q1\td1\tgood\n"}, r"row 1: the grade is 'good'"),
        ({"qrels": "q1\td1\t1\nq1\td2\t0.5\n"}, r"row 2: the grade is '0.5'"),
        ({"qrels": "q1\td1\t0\n"}, r"no query has a document of grade 1 or more"),
        ({"qrels": "q1\n"}, r"row 1: 'q1'; give query id, document id and grade"),
        ({"queries": "q1\ta\nq1\tb\n"}, r"queries\.tsv: row 2: id 'q1' was there before"),
        ({"queries": "q1\t \n"}, r"queries\.tsv: row 1: an empty sentence or id"),
        ({"corpus": "d1\ta\n\tb\n"}, r"corpus\.tsv: row 2: an empty sentence or id"),
        ({"corpus": "d1\ta\tb\tc\n"}, r"corpus\.tsv: row 1 has 4 columns"),
        ({"queries": '{"_id": "q1"}\n', "kind": "jsonl"}, r"queries\.jsonl: .*text"),
    ],
)
def test_bad_retrieval_files_are_refused(tmp_path, changed, message):
    with pytest.raises(TextError, match=message):
        read_retrieval_set(*files(tmp_path, **changed))


def test_files_may_be_compressed(tmp_path):
    paths = files(tmp_path)
    for path in paths:
        with gzip.open(f"{path}.gz", "wb") as file:
            file.write(path.read_bytes())
    packed = [path.with_name(f"{path.name}.gz") for path in paths]
    assert read_retrieval_set(*packed, "x") == read_retrieval_set(*paths, "x")


# --- comparable texts

ZH = "zh-1\t一\nzh-2\t二\u2028二\nzh-3\t三\n"
EN = "en-1\tone\r\nen-2\ttwo\nen-3\tthree\nen-4\tfour\n"
GOLD = "zh-1\ten-1\nzh-3\ten-3\n"


def write_bucc(folder, zh=ZH, en=EN, gold=GOLD):
    for ending, text in (("zh", zh), ("en", en), ("gold", gold)):
        (folder / f"zh-en.sample.{ending}").write_bytes(text if isinstance(text, bytes) else text.encode())
    return folder / "zh-en.sample"


def test_texts_and_gold_are_read(tmp_path):
    got = read_comparable_texts(write_bucc(tmp_path), "zh-en")
    assert got.name == "zh-en.sample" and list(got.source.values()) == ["一", "二\u2028二", "三"]
    assert list(got.target) == ["en-1", "en-2", "en-3", "en-4"] and got.target["en-1"] == "one"
    np.testing.assert_array_equal(got.gold, [[0, 0], [2, 2]])


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"en": "en-1\tone\nen-2 two\n"}, r"sample\.en: row 2 has 1 column"),
        ({"en": b"en-1\t\xff\n"}, r"sample\.en: line 1 is not UTF-8"),
        ({"gold": "zh-1\ten-1\nen-2\tzh-2\n"}, r"sample\.gold: row 2: id 'en-2' is not in .*sample\.zh"),
        ({"gold": GOLD + "zh-1\ten-1\n"}, r"sample\.gold: row 3: 'zh-1' and 'en-1' were there before"),
    ],
)
def test_bad_comparable_texts_are_refused(tmp_path, changed, message):
    with pytest.raises(TextError, match=message):
        read_comparable_texts(write_bucc(tmp_path, **changed), "zh-en")
    with pytest.raises(EvaluationError, match=r"none\.zh: no such file"):
        read_comparable_texts(tmp_path / "none", "zh-en")
