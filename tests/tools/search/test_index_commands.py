"""`st-paragram index` on an index that is there, fields from tables, `search` with filters and at a prompt."""

import io
import json
import sys

import pytest

from st_paragram import SearchIndex
from st_paragram.cli.main import main
from st_paragram.errors import SettingsError
from st_paragram.tools.search.prompt import Prompt
from st_paragram.tools.search.tagged_texts import constant_tags, tagged_table


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder with texts, and an index of three sentences."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "lines.txt").write_text("where is the station\nthe train is late\nwe like cheese\n\n")
    (tmp_path / "more.txt").write_text("the bus is late\nwe like cheese\n")
    rows = [("a red house", "en", 2020), ("una casa roja", "es", 2021), ("ein rotes Haus", "de", None)]
    lines = [{"text": text, "lang": lang} | ({"year": year} if year else {}) for text, lang, year in rows]
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
    assert "i: 1 sentence added of 2 lines (1 there already" in said and "4 sentences now, in 2 segments" in said
    assert run("search", "i", "the bus is late", "-k", "1") == 0
    assert rows(capsys)[0][1:] == ["5", "the bus is late"]
    assert run("index", "more.txt", "--delete-from", "i") == 0
    assert "i: 2 sentences deleted" in capsys.readouterr().err
    assert run("index", "--delete-from", "i", "--lines", "2-3", "900") == 0
    assert "1 sentence deleted; 2 lines asked for are not in it" in capsys.readouterr().err
    assert run("index", "--compact", "i") == 0
    assert "1 sentence in one segment, searched by Flat" in capsys.readouterr().err
    assert run("search", "i", "the bus is late") == 0
    assert [row[1:] for row in rows(capsys)] == [["1", "where is the station"]]


@pytest.mark.parametrize("table", ["table.jsonl", "table.csv", "table.parquet"])
def test_fields_come_from_tables_and_tags_and_are_filtered(folder, capsys, table):
    if table.endswith("parquet"):
        arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
        values = [json.loads(line) for line in (folder / "table.jsonl").read_text().splitlines()]
        parquet.write_table(arrow.Table.from_pylist([{"year": None, **value} for value in values]), folder / table)
    words = [table, "--columns", "text", "--metadata", "lang", "year", "--tag", "source=web", "--tag", "ok=true"]
    assert run("index", *words, "--output", "j") == 0
    assert run("index", *words, "--add-to", "i") == 0
    built, added = SearchIndex("j"), SearchIndex("i")
    assert {name: kind.value for name, kind in added.fields.items()} == {
        "lang": "text", "ok": "boolean", "source": "text", "year": "integer",
    }  # fmt: skip
    capsys.readouterr()
    assert run("search", "i", "casa", "--where", "lang=es,de", "--where", "year>=2000", "--show-metadata") == 0
    (row,) = rows(capsys)
    assert row[1:3] == ["6", "una casa roja"]
    assert json.loads(row[3]) == {"lang": "es", "ok": True, "source": "web", "year": 2021}
    assert built.search(["casa"], where="lang=es")[0][0].metadata == json.loads(row[3])
    assert run("index", "--delete-from", "i", "--where", "year!=2021") == 0
    assert len(SearchIndex("i")) == 1


def test_values_of_a_csv_stay_text_where_the_index_has_text(folder):
    SearchIndex.build(["one two"], "j", "p-sp-mini", metadata={"year": "unknown"})
    assert run("index", "table.csv", "--columns", "text", "--metadata", "year", "--add-to", "j") == 0
    assert SearchIndex("j").search(["una casa roja"], 1)[0][0].metadata == {"year": "2021"}


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["index", "--output", "j"], "--output needs a text"),
        (["index", "--add-to", "i"], "--add-to needs a text"),
        (["index", "more.txt", "--add-to", "i", "--recall", "0.5"], "--recall does not apply to --add-to"),
        (["index", "more.txt", "--add-to", "i", "--precision", "int8"], "--precision does not apply"),
        (["index", "more.txt", "--add-to", "i", "--overwrite"], "--overwrite does not apply to --add-to"),
        (["index", "more.txt", "--add-to", "i", "--where", "a=1"], "--where does not apply to --add-to"),
        (["index", "more.txt", "--add-to", "j"], "no such index folder"),
        (["index", "more.txt", "--add-to", "i", "--tag", "a"], "write FIELD=VALUE"),
        (["index", "more.txt", "--add-to", "i", "--metadata", "lang"], "also name the text column with --columns"),
        (["index", "table.csv", "--columns", "text", "--metadata", "lnag", "--add-to", "i"], "no column 'lnag'"),
        (["index", "table.jsonl", "--columns", "text", "--metadata", "lnag", "--add-to", "i"], "column 'lnag'"),
        (["index", "table.csv", "--columns", "text", "--metadata", "a=b", "--add-to", "i"], "may not be empty"),
        (["index", "missing.txt", "--add-to", "i"], "missing.txt"),
        (["index", "--delete-from", "i"], "needs one of these"),
        (["index", "more.txt", "--delete-from", "i", "--lines", "3"], "needs one of these"),
        (["index", "--delete-from", "i", "--lines", "3-1"], "--lines 3-1: give numbers"),
        (["index", "--delete-from", "i", "--lines", "x"], "--lines x: give numbers"),
        (["index", "--delete-from", "i", "--where", "a=1"], "no field a; fields are not kept"),
        (["index", "more.txt", "--compact", "i"], "a file does not apply to --compact"),
        (["search", "i", "x", "--where", "a"], "write FIELD=VALUE"),
    ],
)
def test_bad_commands_are_refused_in_a_line(folder, capsys, words, message):
    before = sorted(folder.rglob("*"))
    capsys.readouterr()
    assert run(*words) == 1
    said = capsys.readouterr().err
    assert message in said and said.count("\n") == 1
    assert sorted(folder.rglob("*")) == before


def test_output_minus_is_standard_output(folder, capsys):
    capsys.readouterr()
    assert run("search", "i", "cheese", "-k", "1", "--output", "-") == 0
    assert rows(capsys)[0][2] == "we like cheese" and not (folder / "-").exists()


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_queries_are_asked_for_at_a_terminal(folder, capsys, monkeypatch):
    capsys.readouterr()
    monkeypatch.setattr(sys, "stdin", Terminal("we like cheese\n\n:k 0\n"))
    assert run("search", "i", "-k", "1") == 0
    said = capsys.readouterr().out
    assert (
        "3 sentences; write a query" in said and "1.000000\t3\twe like cheese" in said and ":k 0: give a number" in said
    )
    monkeypatch.setattr(sys, "stdin", io.StringIO(""))
    assert run("search", "i") == 1
    assert "give queries either" in capsys.readouterr().err


def test_the_prompt_takes_commands_and_survives_errors(folder, monkeypatch):
    assert run("index", "table.jsonl", "--columns", "text", "--metadata", "lang", "year", "--add-to", "i") == 0
    written, index = [], SearchIndex("i")
    prompt = Prompt(index, written.append)
    lines = iter([":where lang=es", "casa", ":where lagn=es", ":where", ":k 2", "casa", ":threshold 0.9", "casa",
                  ":threshold x", ":nonsense", ":help", ":reload", KeyboardInterrupt, EOFError])  # fmt: skip

    def read(_):
        line = next(lines)
        if isinstance(line, str):
            return line
        raise line

    prompt.run(read)
    text = "\n".join(written)
    assert written[1].split("\t")[1:] == ["6", "una casa roja", '{"lang": "es", "year": 2021}']
    assert "did you mean lang?" in text and "nothing found" in text and "no command :nonsense" in text
    assert ":threshold x: give a cosine" in text and "Ctrl-D ends" in text and "nothing has changed" in text
    assert prompt.k == 2 and prompt.where == []


def test_dates_and_decimals_of_a_table_are_kept(tmp_path):
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    from datetime import date
    from decimal import Decimal

    table = {
        "text": ["one two", "three four"],
        "day": [date(2020, 1, 2), date(2021, 1, 2)],
        "price": [Decimal("1.5"), None],
    }
    parquet.write_table(arrow.table(table), tmp_path / "t.parquet")
    texts = tagged_table(str(tmp_path / "t.parquet"), "text", ["day", "price"], {"source": "x"})
    index = SearchIndex.build(texts, tmp_path / "i", "p-sp-mini")
    (hit,) = index.search(["one"], where="day<2020-06-01")[0]
    assert hit.metadata == {"day": "2020-01-02", "price": 1.5, "source": "x"}


def test_a_nested_value_is_refused_with_its_line(tmp_path):
    (tmp_path / "t.jsonl").write_text('{"text": "one two", "a": 1}\n{"text": "three four", "a": [1]}\n')
    with pytest.raises(SettingsError, match=r"line 2, field a: \[1\] is not text"):
        SearchIndex.build(tagged_table(str(tmp_path / "t.jsonl"), "text", ["a"], {}), tmp_path / "i", "p-sp-mini")
    with pytest.raises(SettingsError, match="field a is given twice"):
        tagged_table(str(tmp_path / "t.jsonl"), "text", ["a"], {"a": 1})
    assert not (tmp_path / "i").exists()


def test_tags_are_read_as_what_they_look_like():
    words = ["a=1", "b=1.5", "c=true", "d=007", "e=x=y"]
    assert constant_tags(words) == {"a": 1, "b": 1.5, "c": True, "d": "007", "e": "x=y"}
    for word in ("a", "a=", "=1", "a b=1"):
        with pytest.raises(SettingsError):
            constant_tags([word])
