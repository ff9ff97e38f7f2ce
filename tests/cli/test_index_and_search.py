"""`st-paragram index` and `search`: indexes that are built, changed and exported, texts that are
searched directly.
"""

import json
import os
import sys

import pytest

from st_paragram import SearchIndex
from st_paragram.cli.main import main
from st_paragram.tools.search import recall


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder with texts, and an index of three sentences."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "lines.txt").write_text(
        "where is the station\nthe train is late\nwe like cheese\n\n"
    )
    (tmp_path / "more.txt").write_text("the bus is late\nwe like cheese\n")
    rows = [
        ("a red house", "en", 2020),
        ("una casa roja", "es", 2021),
        ("ein rotes Haus", "de", None),
    ]
    lines = [
        {"text": text, "lang": lang} | ({"year": year} if year else {}) for text, lang, year in rows
    ]
    (tmp_path / "table.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    cells = [f"{text},{lang},{year or ''}" for text, lang, year in rows]
    (tmp_path / "table.csv").write_text("\n".join(["text,lang,year", *cells, ""]))
    assert run("index", "lines.txt", "--output", "i") == 0
    return tmp_path


def run(*words):
    return main([*words, "--model", "p-sp-mini"])


def rows(capsys):
    return [line.split("\t") for line in capsys.readouterr().out.splitlines()]


def test_sentences_are_added_deleted_and_the_index_compacted(folder, capsys):
    capsys.readouterr()
    assert run("index", "more.txt", "--add-to", "i") == 0
    said = capsys.readouterr().err
    assert (
        "i: 1 sentence added of 2 lines (1 known, 0 repeated" in said
        and "i: 4 sentences now" in said
    )
    assert run("search", "i", "the bus is late", "-k", "1") == 0
    assert rows(capsys) == [["1.000000", "5", "the bus is late"]]
    assert run("index", "more.txt", "--delete-from", "i") == 0
    assert "i: 2 sentences deleted" in capsys.readouterr().err
    assert run("index", "--delete-from", "i", "--where", "line between 2 and 3") == 0
    assert "i: 1 sentence deleted" in capsys.readouterr().err
    assert run("index", "--compact", "i", "--approximate") == 0
    assert run("search", "i", "the bus is late") == 0
    assert [row[1:] for row in rows(capsys)] == [["1", "where is the station"]]
    assert (
        run("index", "--export", "i", "--output", "o.parquet") == 0
        and (folder / "o.parquet").exists()
    )


def test_hybrid_searches_need_an_index_of_words(folder, capsys):
    assert run("search", "i", "cheese", "--hybrid") == 1
    assert "st-paragram index --compact INDEX --hybrid" in capsys.readouterr().err
    assert run("search", "lines.txt", "cheese", "--hybrid") == 1
    assert "--hybrid needs an index" in capsys.readouterr().err
    assert run("index", "--compact", "i", "--hybrid") == 0
    assert run("index", "lines.txt", "--output", "j", "--hybrid") == 0
    capsys.readouterr()
    for name in ("i", "j"):
        assert run("search", name, "Cheese!", "--hybrid", "-k", "1") == 0
        assert [row[1:] for row in rows(capsys)] == [["3", "we like cheese"]]


def test_an_index_becomes_approximate_if_it_is_large(folder, capsys, monkeypatch):
    lines = [
        f"the {color} house number {number} is old"
        for number in range(40)
        for color in ("red", "green", "blue")
    ]
    (folder / "houses.txt").write_text("\n".join(lines))
    capsys.readouterr()
    assert run("index", "houses.txt", "--output", "j", "--approximate") == 0
    said = (
        "j: exact search of 120 sentences is fast enough; searches stay exact below 200,000"
        " sentences"
    )
    assert said in capsys.readouterr().err
    assert run("info", "j") == 0 and "recall" not in capsys.readouterr().out
    monkeypatch.setattr(recall, "SMALLEST", 100)
    assert run("index", "--compact", "j", "--approximate", "--recall", "0.9") == 0
    said = capsys.readouterr().err
    assert (
        "j: searches visit 1 of 1 lists; nearest sentence and ten nearest found: " in said
        and "% for one word" in said
    )
    assert run("info", "j") == 0 and "searches visit 1 of 1 lists" in capsys.readouterr().out
    for words in ([], ["--recall", "1"], ["--recall", "0.5"]):
        assert run("search", "j", "the green house number 7 is old", "-k", "1", *words) == 0
        assert [row[2] for row in rows(capsys)] == ["the green house number 7 is old"]


@pytest.mark.parametrize("table", ["table.jsonl", "table.csv"])
def test_fields_come_from_tables_and_tags_and_are_filtered(folder, capsys, table):
    words = [
        table,
        "--columns",
        "text",
        "--metadata",
        "lang",
        "year",
        "--tag",
        "source=web",
        "--tag",
        "ok=true",
    ]
    assert run("index", *words, "--add-to", "i") == 0
    assert SearchIndex("i").fields == {
        "source": "string",
        "ok": "bool",
        "lang": "string",
        "year": "int64",
    }
    capsys.readouterr()
    assert (
        run(
            "search",
            "i",
            "casa",
            "--where",
            "lang in ('es', 'de') and year >= 2000",
            "--show-metadata",
        )
        == 0
    )
    (row,) = rows(capsys)
    assert row[1:3] == ["6", "una casa roja"]
    assert json.loads(row[3]) == {"lang": "es", "ok": True, "source": "web", "year": 2021}
    assert run("index", "--delete-from", "i", "--where", "year is null or year != 2021") == 0
    assert len(SearchIndex("i")) == 1


def test_a_text_is_searched_without_an_index_or_lancedb(folder, capsys, monkeypatch):
    capsys.readouterr()
    monkeypatch.setitem(sys.modules, "lancedb", None)
    for name in ("index", "table"):
        monkeypatch.delitem(sys.modules, f"st_paragram.tools.search.{name}", raising=False)
    assert run("search", "lines.txt", "-k", "1", "cheese", "train", "--threshold", "0.1") == 0
    assert [(row[0], *row[2:]) for row in rows(capsys)] == [
        ("cheese", "3", "we like cheese"), ("train", "2", "the train is late")
    ]  # fmt: skip
    assert run("search", "i", "cheese") == 1
    said = capsys.readouterr().err
    assert "a search index needs lancedb" in said


def test_queries_come_from_a_file_and_rows_go_to_one(folder, capsys):
    (folder / "queries").write_text("cheese\n\nthe  late train\n")
    assert run("search", "i", "--queries", "queries", "-k", "1", "--output", "out.tsv") == 0
    found = [line.split("\t") for line in (folder / "out.tsv").read_text().splitlines()]
    assert [(row[0], row[2]) for row in found] == [("cheese", "3"), ("the late train", "2")]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["index", "lines.txt"], "no index; give --output to build one"),
        (
            ["index", "lines.txt", "--output", "j", "--recall", "0.9"],
            "--recall needs --approximate; give both",
        ),
        (
            ["index", "more.txt", "--add-to", "i", "--recall", "0"],
            "--recall does not apply to --add-to",
        ),
        (
            ["index", "--compact", "i", "--approximate", "--recall", "0"],
            "recall is 0.0; give a share above 0",
        ),
        (["search", "i", "cheese", "--recall", "1.1"], "recall is 1.1; give a share above 0"),
        (
            ["search", "lines.txt", "cheese", "--recall", "0.9"],
            "--recall needs an index, but lines.txt is a text",
        ),
        (
            ["index", "more.txt", "--add-to", "i", "--output", "j"],
            "--output does not apply to --add-to",
        ),
        (["index", "more.txt", "--add-to", "j"], "j: no such file or folder; build an index with"),
        (["search", "j", "cheese"], "j: no such file or folder; build an index with `st-paragram"),
        (["search", "i"], "no query for i; give queries as arguments or in a file (--queries)"),
        (["search", "i", "a", "--queries", "more.txt"], "queries as arguments and in more.txt"),
        (["search", os.devnull, "a"], f"{os.devnull}: no sentences; give a text with one sentence"),
        (["index", "more.txt", "--add-to", "i", "--tag", "a"], "write FIELD=VALUE"),
        (
            ["index", "table.csv", "--columns", "text", "--metadata", "lnag", "--add-to", "i"],
            "no column 'lnag'",
        ),
        (
            ["index", "--delete-from", "i", "--where", "a = 1"],
            "filter 'a = 1': unknown field 'a' at character 1; fields are text, line",
        ),
        (["search", "i", " "], "the model knows no token in it"),
        (["search", "lines.txt", "x", "--where", "a = 1"], "lines.txt is a text; index it first"),
    ],
)
def test_bad_commands_are_refused_in_a_line(folder, capsys, words, message):
    before = sorted(path for path in folder.iterdir())
    capsys.readouterr()
    assert run(*words) == 1
    said = capsys.readouterr().err
    assert message in said and said.count("\n") == 1
    assert sorted(path for path in folder.iterdir()) == before and len(SearchIndex("i")) == 3
