"""Files of tasks other than translation, and their rows as ids in the cache."""

from __future__ import annotations

import gzip
import itertools
import lzma

import numpy as np
import pytest
from support.dual_encoder import tiny, write_bitext, write_data

from st_paragram.errors import TextError
from st_paragram.families.muse import tasks
from st_paragram.families.muse.task_rows import all_rows, file_rows
from st_paragram.families.muse.tasks import (
    check_first_row,
    files_in,
    read_texts,
    task_files,
)

QA = (
    "Who painted?\tA zebra painted it.\tIt is red. A zebra painted it.\nWhy so?\tNobody"
    " knows.\t\nWhen?\tOn a Monday.\n"
)
NLI = (
    "neutral\tA man sits.\tHe rests.\n0\tA man sits.\tA person sits.\nContradiction\tA man"
    " sits.\tHe runs.\n"
)
# nothing is quoted
RESPONSE = '\ufeff"Hello\u2028there!\tHow\x85 are\x1c you? \r\nHow are you?\t"Fine"." \n'


def write(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


def read(path, task):
    return list(itertools.chain.from_iterable(read_texts(path, task)))


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    """A cache of the test's own."""
    monkeypatch.setenv("ST_PARAGRAM_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache" / "tasks"


# Texts.


@pytest.mark.parametrize(
    ("end", "pack"), [("", bytes), (".gz", gzip.compress), (".xz", lzma.compress)]
)
def test_rows_of_each_task(tmp_path, end, pack):
    assert read(write(tmp_path / f"qa/en.tsv{end}", pack(QA.encode())), "qa") == [
        ("Who painted?", "A zebra painted it.", "It is red. A zebra painted it.", -1),
        ("Why so?", "Nobody knows.", "", -1),
        ("When?", "On a Monday.", "", -1),
    ]
    nli = read(write(tmp_path / f"nli/en.tsv{end}", pack(NLI.encode())), "nli")
    assert [row[3] for row in nli] == [1, 0, 2] and nli[2][:3] == ("A man sits.", "He runs.", "")
    response = read(write(tmp_path / f"response/en.tsv{end}", pack(RESPONSE.encode())), "response")
    assert response == [
        ('"Hello there!', "How are you?", "", -1),
        ("How are you?", '"Fine"."', "", -1),
    ]


class Zebras:
    name, identity = "test sets of tests", "zebras"

    def __call__(self, texts):
        return np.array(["zebra" in text for text in texts], bool)


def test_empty_rows_and_those_of_test_sets_are_left_out_and_counted(tmp_path, monkeypatch, caplog):
    monkeypatch.setattr(tasks, "KnownSentences", Zebras)
    path = write(tmp_path / "en.tsv", QA + "\nonly one\t \n\t\n")
    assert [row[0] for row in read(path, "qa")] == ["Why so?", "When?"]
    assert f"{path}: 3 of 6 rows with an empty text left out" in caplog.text
    assert f"{path}: 1 of 6 rows with sentences of test sets of tests left out" in caplog.text
    with pytest.raises(
        TextError, match=r"en\.tsv: no rows `question TAB answer .*` left; give another file"
    ):
        read(write(path, "Who?\tA zebra.\n"), "qa")


@pytest.mark.parametrize(
    ("task", "content", "message"),
    [
        (
            "response",
            b"a\tb\na\tb\tc\n",
            r"row 2 has 3 columns; rows of response are `utterance TAB response`",
        ),
        (
            "nli",
            b"neutral\ta\tb\nyes\ta\tb\n",
            r"row 2 has the label 'yes'; labels are entailment, neutral, contrad",
        ),
        ("response", b"a\tb\n\xff\tb\n", r"line 2 is not UTF-8"),
    ],
)
def test_other_rows_are_refused_in_one_line(tmp_path, task, content, message):
    with pytest.raises(TextError, match=rf"en\.tsv: {message}") as caught:
        read(write(tmp_path / "en.tsv", content), task)
    assert "\n" not in str(caught.value)


def test_files_of_a_folder(tmp_path):
    for name in (
        "es.tsv.xz",
        "en.tsv",
        "zh_cn.tsv.gz",
        "README.md",
        ".de.tsv",
        "stats.json",
        "fr.txt",
        "train.tsv",
    ):
        write(tmp_path / name, "x")
    found = {language: path.name for language, path in task_files(tmp_path, "qa").items()}
    assert found == {"en": "en.tsv", "es": "es.tsv.xz", "zh_cn": "zh_cn.tsv.gz"}
    write(tmp_path / "en.tsv.gz", "x")
    with pytest.raises(TextError, match=r"en\.tsv\.gz: same language as en\.tsv; keep one"):
        task_files(tmp_path, "qa")
    with pytest.raises(
        TextError, match=r"no files LANG\.tsv \(or .gz, .xz\); add files with rows `label"
    ):
        task_files(write(tmp_path / "empty" / "x", "x").parent, "nli")
    with pytest.raises(TextError, match="nowhere: no such folder; name the folder of the files"):
        task_files(tmp_path / "nowhere", "nli")
    with pytest.raises(TextError, match="no qa file for de, en; add one, or leave the option out"):
        files_in(write(tmp_path / "fr" / "fr.tsv", "x").parent, "qa", ["de"])
    with pytest.raises(TextError, match=r"en\.tsv: row 1 has 1 column; rows of qa are"):
        check_first_row(tmp_path / "en.tsv", "qa")
    with pytest.raises(TextError, match="blank: no rows `question TAB answer"):
        check_first_row(write(tmp_path / "blank", "\n\n"), "qa")
    with pytest.raises(TextError, match="file is a file, but a folder is expected"):
        task_files(write(tmp_path / "file", "x"), "nli")


# Ids.


def texts_of(side):
    return [side[0][begin:end].tolist() for begin, end in itertools.pairwise(side[1])]


def ids(vocabulary, texts, most):
    return texts_of(vocabulary.encode(texts, most))


def test_rows_hold_what_the_tokenizer_makes_of_them(tmp_path, vocabulary, monkeypatch):
    monkeypatch.setattr(tasks, "_CHUNK", 2)
    run = tiny(max_length=9, context_length=12)
    rows = file_rows(write(tmp_path / "en.tsv", QA), "qa", "en", vocabulary, run)
    batch = rows.batch(np.array([2, 0, 0]))
    assert (rows.name, len(rows), batch.task, batch.labels) == ("qa en", 3, "qa", None)
    assert texts_of(batch.first) == ids(vocabulary, ["When?", "Who painted?", "Who painted?"], 9)
    assert texts_of(batch.second) == ids(
        vocabulary, ["On a Monday.", *["A zebra painted it."] * 2], 9
    )
    context = ids(vocabulary, ["It is red. A zebra painted it."], 12)
    assert texts_of(batch.contexts) == [[], *context * 2] and 9 < len(context[0]) <= 12
    both = zip(texts_of(batch.first), texts_of(batch.second), strict=True)
    assert rows.lengths(np.array([2, 0, 0])).tolist() == [
        len(first) + len(second) for first, second in both
    ]
    nli = file_rows(write(tmp_path / "es.tsv", NLI), "nli", "es", vocabulary, run).batch(
        np.arange(3)
    )
    assert (
        nli.labels.tolist() == [1, 0, 2] and nli.labels.dtype == np.int64 and nli.contexts is None
    )


def test_what_is_in_the_cache_is_used_and_what_has_changed_is_made(
    tmp_path, vocabulary, cache, capfd
):
    path = write(tmp_path / "en.tsv", QA)

    def made(of=path, **changes):
        before = set(cache.glob("*.arrow"))
        rows = file_rows(of, "qa", "en", vocabulary, tiny(**changes))
        return rows.digest, len(set(cache.glob("*.arrow")) - before)

    digest, number = made()
    assert number == 1 and made() == made(write(tmp_path / "other" / "en.tsv", QA)) == (digest, 0)
    assert made(max_length=8)[1] == made(context_length=7)[1] == 1
    write(path, QA + "And now?\tNothing more.\n")
    assert made()[0] != digest and made()[1] == 0
    assert {entry.suffix for entry in cache.iterdir()} <= {".arrow", ".lock"}
    assert capfd.readouterr().err == ""


# Rows of all tasks.


def test_the_rows_of_all_tasks(tmp_path, vocabulary, store, pairs):
    data = write_data(tmp_path, vocabulary, rows=60, few=3)
    rows = all_rows(data.bitext, data.more.tasks, (), tiny())
    translations = {"translation xx": 40, "translation yy": 20}
    others = {"qa en": 60, "qa xx": 3, "response en": 60, "nli en": 60, "nli xx": 3}
    assert {each.name: len(each) for each in rows} == translations | others
    assert sorted([*rows[0].numbers, *rows[1].numbers]) == list(range(60))
    of_store = rows[1].numbers[[3, 0, 7]].astype(np.int64)
    assert data.bitext.row_languages(of_store) == [("en", "yy")] * 3
    assert texts_of(rows[1].batch(np.array([3, 0, 7])).second) == texts_of(
        data.bitext.take("b", of_store)
    )
    # Languages and tasks that are not asked for are left out.
    chosen = all_rows(data.bitext, data.more.tasks, ["yy"], tiny(nli_share=0.0))
    assert [each.name for each in chosen] == ["translation yy", "qa en", "response en"]
    (tmp_path / "nli" / "en.tsv").unlink()
    with pytest.raises(
        TextError, match="nli: no nli file for en, yy; add one, or leave the option out"
    ):
        all_rows(data.bitext, data.more.tasks, ["yy"], tiny())
    (only,) = all_rows(store, {}, (), tiny())
    assert only.name == "translation xx" and only.numbers is None and len(only) == len(store)
    # both rows are of the first of two languages
    empty = write_bitext(tmp_path / "x.h5", vocabulary, pairs[:2])
    assert [each.name for each in all_rows(empty, {}, (), tiny())] == ["translation xx"]
