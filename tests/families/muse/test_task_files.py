"""Files of tasks beside translation, and the stores made of them."""

from __future__ import annotations

import gzip
import itertools
import logging
import lzma

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from st_paragram.errors import SettingsError, TextError
from st_paragram.families.muse.tasks.task_files import (
    COLUMNS,
    BadRow,
    TaskFileCounts,
    TaskRow,
    is_language_code,
    read_task_file,
    task_files,
)
from st_paragram.families.muse.tasks.task_stores import build_task_stores
from st_paragram.tools.cleaning import languages

QA = (
    "Who painted?\tA zebra painted it.\tIt is red. A zebra painted it.\nWhy so?\tNobody knows.\t\nWhen?\tOn a Monday.\n"
)
NLI = "neutral\tA man sits.\tHe rests.\n0\tA man sits.\tA person sits.\ncontradiction\tA man sits.\tHe runs.\n"
RESPONSE = "Hello there!\tHow are you?\nHow are you?\tFine.\n"


def write(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


def read(path, task, **options):
    counts = TaskFileCounts()
    return list(read_task_file(path, task, counts, **options)), counts


# ---- rows


@pytest.mark.parametrize(("end", "pack"), [("", lambda data: data), (".gz", gzip.compress), (".xz", lzma.compress)])
def test_rows_of_each_task(tmp_path, end, pack):
    rows, counts = read(write(tmp_path / f"qa{end}", pack(QA.encode())), "qa")
    assert rows == [
        TaskRow("Who painted?", "A zebra painted it.", "It is red. A zebra painted it."),
        TaskRow("Why so?", "Nobody knows."),
        TaskRow("When?", "On a Monday."),
    ]
    assert (counts.rows, counts.bad_rows) == (3, 0)
    rows, _ = read(write(tmp_path / f"nli{end}", pack(NLI.encode())), "nli")
    assert [row.label for row in rows] == [1, 0, 2] and rows[1][:2] == ("A man sits.", "A person sits.")
    rows, _ = read(write(tmp_path / f"response{end}", pack(RESPONSE.encode())), "response")
    assert rows == [TaskRow("Hello there!", "How are you?"), TaskRow("How are you?", "Fine.")]


def test_rows_end_at_newlines_alone_and_white_space_is_squeezed(tmp_path):
    path = write(tmp_path / "x", "\ufeffa\u2028b\x85c\t d \x1c  e\r\nf\tg")
    assert read(path, "response")[0] == [TaskRow("a b c", "d e"), TaskRow("f", "g")]


def test_bad_rows_are_counted_by_kind_with_the_first_of_each(tmp_path):
    bad = b"neutral\ta\n\nyes\ta\tb\nneutral\t \tb\n1\ta\t\n\xff\ta\tb\n1\ta\0\tb\nno\ta\tb\n"
    rows, counts = read(write(tmp_path / "en.tsv", bad + NLI.encode() * 40), "nli")
    assert len(rows) == 120 and counts.rows == 128
    assert counts.bad == {
        BadRow.COLUMNS: 2,
        BadRow.LABEL: 2,
        BadRow.EMPTY: 2,
        BadRow.ENCODING: 1,
        BadRow.NUL: 1,
    }
    assert counts.first == {BadRow.COLUMNS: 1, BadRow.LABEL: 3, BadRow.EMPTY: 4, BadRow.ENCODING: 6, BadRow.NUL: 7}
    assert counts.lines("nli/en.tsv")[0] == (
        "nli/en.tsv: 2 rows with a wrong number of columns left out, the first is row 1"
    )
    assert counts.lines("x")[-1].startswith("x: 1 row with a NUL byte")


def test_a_tenth_of_bad_rows_is_the_limit(tmp_path):
    nine = RESPONSE.encode() * 4 + b"a\tb\n"
    path = write(tmp_path / "en.tsv", nine + b"c\n")
    assert len(read(path, "response")[0]) == 9
    with pytest.raises(TextError, match=r"en\.tsv: 1 of 10 rows are bad, the first is row 10, with a wrong number"):
        read(path, "response", most_bad=0.09)
    with pytest.raises(TextError, match=r"2 of 11 rows .*row 10.*`utterance TAB next utterance`: correct the file"):
        read(write(path, nine + b"c\nd\n"), "response")
    assert len(read(path, "response", most_bad=0.2)[0]) == 9


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "empty; give a file of rows"),
        (b"\n", "1 of 1 rows are bad, the first is row 1, with a wrong number of columns"),
        (lzma.compress(RESPONSE.encode()), "looks like a packed file"),
    ],
)
def test_files_without_rows_are_refused(tmp_path, content, message):
    with pytest.raises(TextError, match=rf"en\.tsv: .*{message}"):
        read(write(tmp_path / "en.tsv", content), "response", most_bad=1)


@given(st.binary(max_size=200), st.sampled_from(sorted(COLUMNS)))
def test_any_bytes_are_read_or_refused(tmp_path_factory, content, task):
    path = write(tmp_path_factory.mktemp("any") / "en.tsv", content)
    counts = TaskFileCounts()
    rows = []
    try:
        rows.extend(read_task_file(path, task, counts, most_bad=0.5))
    except TextError as error:
        assert "\n" not in str(error)
    assert len(rows) + counts.bad_rows == counts.rows
    assert all(row.first.strip() and row.second.strip() and "\t" not in row.second for row in rows)


# ---- folders


def test_files_of_a_folder(tmp_path):
    for name in ("es.tsv.xz", "en.tsv", "zh_cn.tsv.gz", "README.md", ".de.tsv", "stats.json", "fr.txt"):
        write(tmp_path / name, "x")
    found = task_files(tmp_path, "qa")
    assert {language: path.name for language, path in found.items()} == {
        "en": "en.tsv",
        "es": "es.tsv.xz",
        "zh_cn": "zh_cn.tsv.gz",
    }
    write(tmp_path / "en.tsv.gz", "x")
    with pytest.raises(TextError, match=r"en\.tsv\.gz: same language as en\.tsv; keep one"):
        task_files(tmp_path, "qa")


@pytest.mark.parametrize("name", ["train.tsv", "dev.tsv.xz", "xx.tsv", "EN.tsv"])
def test_names_that_are_no_languages_are_refused(tmp_path, name):
    write(tmp_path / name, "x")
    with pytest.raises(TextError, match=rf"{name}: unknown language code '{name.partition('.')[0]}'"):
        task_files(tmp_path, "nli")


def test_missing_and_empty_folders(tmp_path):
    message = r"nowhere: no such folder of the task qa; put LANG\.tsv \(or .gz, .xz\) with rows `question TAB"
    with pytest.raises(TextError, match=message):
        task_files(tmp_path / "nowhere", "qa")
    with pytest.raises(TextError, match="no file of the task nli; put"):
        task_files(tmp_path, "nli")
    with pytest.raises(SettingsError, match="no files of the task 'translation'; choose of qa, response, nli"):
        task_files(tmp_path, "translation")


def test_every_language_that_filters_know_has_a_code():
    codes = [line.split()[0] for line in languages._TABLE.splitlines()]
    assert len(codes) > 100 and [code for code in codes if not is_language_code(code)] == []
    assert is_language_code("zh-Hant") and not is_language_code("zh.") and not is_language_code("e")


# ---- stores


@pytest.fixture
def folders(tmp_path):
    for task, text in (("qa", QA), ("response", RESPONSE), ("nli", NLI)):
        write(tmp_path / task / "en.tsv", text)
    write(tmp_path / "nli" / "es.tsv.xz", lzma.compress(NLI.encode()))
    return {task: tmp_path / task for task in ("qa", "response", "nli")}


def sides(store, side):
    return [store.take(side, np.array([row]))[0].tolist() for row in range(len(store))]


def test_stores_hold_what_the_tokenizer_makes_of_the_rows(folders, tmp_path, vocabulary):
    stores = build_task_stores(folders, vocabulary, tmp_path / "out", max_length=9, context_length=20)
    assert [(each.task, each.language) for each in stores] == [
        ("qa", "en"),
        ("response", "en"),
        ("nli", "en"),
        ("nli", "es"),
    ]

    def ids(texts, most):
        flat, offsets = vocabulary.encode(texts, most)
        return [flat[a:b].tolist() for a, b in itertools.pairwise(offsets)]

    qa, nli = stores[0], stores[3]
    answers = ["A zebra painted it.", "Nobody knows.", "On a Monday."]
    assert sides(qa.store, "a") == ids(["Who painted?", "Why so?", "When?"], 9)
    assert sides(qa.store, "b") == sides(qa.contexts, "a") == ids(answers, 9)
    contexts = [*ids(["It is red. A zebra painted it."], 20), *ids(answers[1:], 9)]  # the answer stands in
    assert sides(qa.contexts, "b") == contexts
    assert qa.store.labels(np.arange(3)) is None and stores[1].contexts is None
    assert nli.store.labels(np.arange(3)).tolist() == [1, 0, 2] and nli.store.labels(np.arange(1)).dtype == np.int8
    assert nli.store.languages == ("es", "es") and (nli.counts.rows, nli.counts.bad) == (3, {})
    assert qa.store.tokenizer() == vocabulary and all(each.counts.seconds > 0 for each in stores)


def test_more_rows_than_a_chunk_keep_their_order(tmp_path, vocabulary, monkeypatch):
    monkeypatch.setattr("st_paragram.families.muse.tasks.store_files._CHUNK", 3)
    write(tmp_path / "r" / "de.tsv", "".join(f"row number {i}\tanswer number {i}\n" for i in range(10)))
    (made,) = build_task_stores({"response": tmp_path / "r"}, vocabulary, tmp_path / "out", 50)
    whole, offsets = vocabulary.encode([f"row number {i}" for i in range(10)], 50)
    assert len(made.store) == 10 and sides(made.store, "a") == [
        part.tolist() for part in np.split(whole, offsets[1:-1])
    ]


def test_what_is_there_is_used_again_and_what_has_changed_is_made(folders, tmp_path, vocabulary):
    def build(length=9, **options):
        stores = build_task_stores(folders, vocabulary, tmp_path / "out", length, **options)
        return {each.store.path for each in stores if each.counts.seconds}, stores

    made, first = build()
    assert len(made) == 4 and build()[0] == set()
    assert build()[1][2].counts.rows == 3
    assert len(build(length=8)[0]) == 4 and len(build(context_length=7)[0]) == 4
    write(folders["qa"] / "en.tsv", QA + "And now?\tNothing more.\n")
    again, stores = build()
    assert again == {stores[0].store.path} and len(stores[0].contexts) == len(stores[0].store) == 4
    assert not list((tmp_path / "out").rglob("*.part"))
    assert first[1].store.digest == stores[1].store.digest


@pytest.mark.parametrize("which", ["store", "contexts"])
def test_a_damaged_store_is_made_again(folders, tmp_path, vocabulary, which, caplog):
    def build():
        return build_task_stores({"qa": folders["qa"]}, vocabulary, tmp_path / "out", 9)[0]

    before = build()
    path, digest = getattr(before, which).path, getattr(before, which).digest
    content = bytearray(path.read_bytes())
    place = content.rindex(np.asarray(sides(getattr(before, which), "b")[0], np.min_scalar_type(len(vocabulary) - 1)))
    content[place] ^= 1
    path.write_bytes(content)
    with caplog.at_level(logging.WARNING):
        assert getattr(build(), which).digest == digest
    assert "made again" in caplog.text and path.name in caplog.text
    path.unlink()
    assert getattr(build(), which).digest == digest


class Known:
    name, identity = "test sets of tests", "1"

    def __call__(self, texts):
        return np.array(["zebra" in text or "runs" in text for text in texts], bool)


def test_rows_of_test_sets_are_left_out(folders, tmp_path, vocabulary, caplog):
    with caplog.at_level(logging.WARNING):
        stores = build_task_stores(
            folders, vocabulary, tmp_path / "out", 9, known=Known(), keep=lambda code: code == "en"
        )
    assert [len(each.store) for each in stores] == [2, 2, 2] and len(stores[0].contexts) == 2
    assert [each.counts.test_rows for each in stores] == [1, 0, 1]
    assert "en.tsv: 1 row has sentences of test sets of tests, left out" in caplog.text
    plain = build_task_stores(folders, vocabulary, tmp_path / "out", 9)
    assert [len(each.store) for each in plain] == [3, 2, 3, 3]
    write(folders["qa"] / "en.tsv", "Who?\tA zebra.\n")
    with pytest.raises(TextError, match=r"en\.tsv: no row is left, all 1 are test sentences"):
        build_task_stores(folders, vocabulary, tmp_path / "out", 9, known=Known())


def test_refusals_leave_nothing_behind(folders, tmp_path, vocabulary, caplog):
    write(folders["response"] / "fr.tsv", RESPONSE + "alone\n")
    with pytest.raises(TextError, match=r"fr\.tsv: 1 of 3 rows are bad"):
        build_task_stores({"response": folders["response"]}, vocabulary, tmp_path / "out", 9)
    left = {path.name[:3] for path in (tmp_path / "out").rglob("*.*")}
    assert left - {"in-"} == {"en-"}  # old versions of filelock remove the lock when it is released
    with pytest.raises(SettingsError, match="context_length is 0; it must be at least 1"):
        build_task_stores(folders, vocabulary, tmp_path / "out", 9, 0)
    write(folders["response"] / "fr.tsv", RESPONSE * 10 + "alone\n")
    with caplog.at_level(logging.WARNING):
        stores = build_task_stores({"response": folders["response"]}, vocabulary, tmp_path / "out", 9)
    assert stores[1].counts.bad == {"columns": 1} and "fr.tsv: 1 row with a wrong number of columns" in caplog.text
