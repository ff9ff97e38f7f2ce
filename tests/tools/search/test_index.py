"""The search index, against a plain index in memory; two writers and a reader; a killed writer;
answers.
"""

import random
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import date
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pyarrow.parquet as parquet
import pytest

from st_paragram import Encoder, SearchIndex
from st_paragram.errors import (
    MiningError,
    ModelDirectoryError,
    ParagramError,
    SettingsError,
    TextError,
)
from st_paragram.tools.search import additions, table
from st_paragram.tools.search import index as module
from st_paragram.tools.search import recall as recalls
from st_paragram.tools.search.rows import table_rows, tags_of
from st_paragram.tools.search.text_search import TextSearch

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
UNKNOWN = "ⵣⵣⵣⵣ ⵣⵣ"  # no letter of it is in the vocabulary


def built(folder, texts, metadata=None):
    return SearchIndex.build(texts, folder / "i", "p-sp-mini", metadata)


def sentences_of(rng, count):
    return [" ".join(rng.choices(WORDS, k=3)) for _ in range(count)]


class Plain:
    """An index that does the same with dictionaries."""

    def __init__(self):
        self.rows, self.lines = {}, 0  # sentence: (line, fields)

    def add(self, texts, tags):
        before = len(self.rows)
        for text, fields in zip(texts, tags, strict=True):
            self.lines += 1
            if len(text) > 1:
                line, known = self.rows.pop(text, (self.lines, {}))
                self.rows[text] = (
                    line,
                    known | {name: value for name, value in fields.items() if value is not None},
                )
        return len(self.rows) - before

    def delete(self, test):
        gone = [text for text, (line, fields) in self.rows.items() if test(text, line, fields)]
        for text in gone:
            del self.rows[text]
        return len(gone)

    def hits(self, test=lambda fields: True):
        return {
            (line, text, tuple(sorted(f.items())))
            for text, (line, f) in self.rows.items()
            if test(f)
        }


def hits_of(index, where=None):
    (hits,) = index.search(["station"], 10**6, where=where)
    assert [hit.score for hit in hits] == sorted((hit.score for hit in hits), reverse=True)
    return {(hit.line, hit.sentence, tuple(sorted(hit.metadata.items()))) for hit in hits}


@pytest.mark.parametrize("seed", range(4))
def test_any_changes_give_what_a_plain_index_gives(tmp_path, seed, monkeypatch):
    monkeypatch.setattr(additions, "_ROWS", 13)  # several blocks
    monkeypatch.setattr(recalls, "SMALLEST", 1)
    rng, plain = random.Random(seed), Plain()

    def some(count):
        texts = [text if rng.random() > 0.1 else "" for text in sentences_of(rng, count)]
        values = [
            {
                "lang": rng.choice(["en", "es", None]),
                "year": rng.choice([2019.0, 2020.5, 2021, None]),
            }
            for _ in texts
        ]
        return texts, values

    texts, fields = some(60)
    plain.add(texts, fields)
    index = built(tmp_path, texts, fields)
    reader = SearchIndex(tmp_path / "i")
    for step in range(10):
        kind = rng.random()
        if kind < 0.5:
            texts, fields = some(rng.randint(1, 30))
            assert index.add(texts, fields) == plain.add(texts, fields)
        elif kind < 0.65:
            lines = {rng.randint(1, plain.lines + 5) for _ in range(9)}
            assert index.delete(lines=lines) == plain.delete(
                lambda text, line, fields, lines=lines: line in lines
            )
        elif kind < 0.75:
            gone = {*list(plain.rows)[:4], "never 'seen' before"}
            assert index.delete(sentences=gone) == plain.delete(
                lambda text, line, fields, gone=gone: text in gone
            )
        elif kind < 0.85:
            wanted = plain.delete(
                lambda text, line, f: f.get("lang") == "es" and f.get("year", 0) >= 2021
            )
            assert index.delete("lang = 'es' and year >= 2021") == wanted
        elif step % 2:
            index.approximate()
        else:
            index.compact()
        assert len(reader) == len(plain.rows)
        assert hits_of(reader) == plain.hits()
        assert hits_of(reader, "lang = 'es'") == plain.hits(lambda f: f.get("lang") == "es")
        wanted = plain.hits(lambda f: f.get("lang") in ("es", "en") and f.get("year", 9999) < 2021)
        assert hits_of(reader, "lang in ('es', 'en') and year < 2021") == wanted
    index.compact()
    assert (
        index.table.stats()["num_rows"]
        == len(plain.rows)
        == sum(map(len, index.table.search().to_batches()))
    )
    assert len(list((tmp_path / "i/sentences.lance/data").iterdir())) == 1


def test_what_is_found_is_what_comparing_everything_finds(tmp_path):
    texts = list(dict.fromkeys(sentences_of(random.Random(0), 400)))
    index, encoder, queries = (
        built(tmp_path, texts),
        Encoder("p-sp-mini"),
        [*WORDS * 6, "the night train"],
    )
    rows, vectors = (encoder.encode(each, normalize_embeddings=True) for each in (queries, texts))
    cosines = rows.astype(float) @ vectors.T.astype(float)
    best = -np.sort(-cosines, axis=1)[:, :10]
    found, in_memory = index.search(queries, 10), TextSearch(texts, encoder).search(queries, 10)
    for row, expected, hits, others in zip(cosines, best, found, in_memory, strict=True):
        np.testing.assert_allclose([hit.score for hit in hits], expected, atol=2e-4)
        np.testing.assert_allclose([hit.score for hit in others], expected, atol=1e-6)
        np.testing.assert_allclose(row[[hit.line - 1 for hit in others]], expected, atol=1e-6)
        assert others == sorted(others, key=lambda hit: (-hit.score, hit.line))
        assert all(texts[hit.line - 1] == hit.sentence for hit in hits)
    assert (
        len(
            {hit.line for hits in found for hit in hits}
            - {hit.line for hits in in_memory for hit in hits}
        )
        < 5
    )
    least = found[0][3].score
    assert index.search(queries[:1], 10, threshold=least) == [
        [hit for hit in found[0] if hit.score >= least]
    ]
    scaled = index.search_vectors(rows * 7, 10)  # of any length
    for hits, others in zip(found, scaled, strict=True):
        np.testing.assert_allclose(
            [hit.score for hit in hits], [hit.score for hit in others], atol=1e-6
        )


def test_numbers_stay_with_their_sentences_and_are_never_used_again(tmp_path):
    index = built(
        tmp_path, ["one two", "three four", "", "one  two"], [{"lang": "en"}, {}, {}, {"year": 1}]
    )
    assert dict(index.counts) == {
        "lines": 4,
        "blank": 1,
        "repeated": 1,
        "known": 0,
        "added": 2,
        "unknown": 0,
    }
    assert index.add(["three four", "five six"], {"lang": "de"}) == 1
    assert index.search(["one two"], 1)[0][0][1:] == (1, "one two", {"lang": "en", "year": 1})
    assert index.search(["three four"], 1)[0][0][1:] == (2, "three four", {"lang": "de"})
    assert index.delete(lines=[6, 6, 99]) == 1 and index.add(["seven eight"]) == 1
    assert {hit.line for hit in index.search(["five six"])[0]} == {1, 2, 7}
    assert index.delete("true") == 3 and index.search(["one"]) == [[]] and len(index) == 0


def test_fields_of_all_kinds_and_what_cannot_be_kept(tmp_path):
    values = {
        "day": date(2020, 1, 2),
        "price": Decimal("1.5"),
        "ok": True,
        "n": np.int64(3),
        "no": "",
        "nan": np.nan,
    }
    index = built(tmp_path, ["one two", "three four"], [values, {"price": 2, "Größe in m": 1.5}])
    kinds = {"day": "string", "price": "double", "ok": "bool", "n": "int64", "Größe in m": "double"}
    assert index.fields == kinds
    (hit,) = index.search(["one"], where="day < '2020-06-01' and ok and price < 2 and n = 3")[0]
    assert hit.metadata == {"day": "2020-01-02", "price": 1.5, "ok": True, "n": 3}
    assert index.search(["one"], where="`Größe in m` > 1")[0][0].metadata["price"] == 2.0
    for fields, message in [
        ({"n": "x"}, "field n: a value is string, but earlier values are int64"),
        ({"ok": 1}, "field ok: a value is int64, but earlier values are bool"),
        ({"price": True}, "field price: a value is bool, but earlier values are double"),
        (
            [{"new": 1.5}, {"new": True}],
            "field new: some values are true or false and others are not",
        ),
        ([{"new": 1}, {"new": "x"}], "field new: Could not convert 'x'"),
        (
            [{"new": 1.5}, {"new": 2**60}],
            "field new: whole numbers above 9,007,199,254,740,992 cannot be mixed",
        ),
        (
            {"price": 2**60},
            "field price: whole numbers above 9,007,199,254,740,992 cannot be mixed",
        ),
        ({"n": [1]}, "field n: a value is list"),
        ({"big": 2**70}, "field big: .*too large"),
        ({"text": "x"}, "field 'text': use another name"),
        ({"a.b": 1}, r"field 'a\.b': use another name"),
        ([{"n": 1}], "sentence 2 is 'seven eight' with fields None"),
        ([{}, {}, {}], "more dicts of fields than sentences"),
    ]:
        with pytest.raises(SettingsError, match=message) as caught:
            index.add(["five six", "seven eight"], fields)
        assert (
            "\n" not in str(caught.value)
            and len(SearchIndex(index.folder)) == 2
            and index.fields == kinds
        )


@pytest.mark.parametrize(
    "parts", [[[1, 2.5]], [[2.5, 1]], [[1], [2.5], [3]], [[2.5], [1]], [[-(2**53)], [0.5]]]
)
@pytest.mark.parametrize("name", ["n", "Größe in m"])
def test_whole_numbers_and_decimals_of_a_field_become_decimals(tmp_path, parts, name):
    index = built(tmp_path, ["no number"], {"other": 1})
    numbers = {}
    for part in parts:
        added = {
            f"sentence number {len(numbers) + place}": value for place, value in enumerate(part)
        }
        assert index.add(added, [{name: value} for value in added.values()]) == len(part)
        numbers |= added
    assert index.fields == {"other": "int64", name: "double"}
    values = {hit.sentence: hit.metadata for hit in index.search(["sentence"])[0]}
    assert values == {"no number": {"other": 1}} | {
        text: {name: value} for text, value in numbers.items()
    }
    rows = [(text, {name: value}) for text, value in numbers.items()]
    assert SearchIndex.build(rows, tmp_path / "j", "p-sp-mini").fields == {name: "double"}


def test_whole_numbers_that_decimals_do_not_represent_are_refused(tmp_path):
    index = built(tmp_path, ["one two"], {"id": 2**53 + 1})
    with pytest.raises(
        SettingsError, match=r"field id: whole numbers above .* give such numbers as text"
    ):
        index.add(["three four"], {"id": 0.5})
    assert index.fields == {"id": "int64"} and index.search(["one"])[0][0].metadata == {
        "id": 2**53 + 1
    }


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({}, "by exactly one of where"),
        ({"lines": [1], "where": "a=1"}, "by exactly one of where"),
        (
            {"where": "langg = 'es'"},
            "filter \"langg = 'es'\": unknown field 'langg' .*; fields are lang, text, line",
        ),
        ({"where": "lang = 5"}, "filter 'lang = 5': field lang holds text"),
        ({"where": "lang ="}, "filter 'lang =': expected a value, not the end"),
        ({"where": "lang"}, "unexpected the end after field lang"),
        ({"where": {"lang": "es"}}, "where is {'lang': 'es'}; give a condition"),
    ],
)
def test_bad_filters_are_refused_in_a_line(tmp_path, arguments, message):
    index = built(tmp_path, ["one two three"], {"lang": "en"})
    with pytest.raises(SettingsError, match=message) as caught:
        index.delete(**arguments)
    assert "\n" not in str(caught.value) and ".rs" not in str(caught.value)
    if arguments.get("where") and "lines" not in arguments:
        with pytest.raises(SettingsError, match=message):
            index.search(["one"], where=arguments["where"])


def test_what_the_model_knows_nothing_of_is_left_out_and_no_query(tmp_path, monkeypatch):
    index = built(tmp_path, ["one two", UNKNOWN, "7"])
    assert len(index) == 1 and index.counts["unknown"] == 1 and index.counts["blank"] == 1
    for query in (UNKNOWN, "", "  "):
        with pytest.raises(SettingsError, match="the model knows no token in it"):
            index.search(["one", query])
    assert index.search([]) == [] and index.search_vectors(np.empty((0, 256))) == []
    for vectors, message in [
        (np.zeros((1, 256)), "has length 0"),
        (np.full((2, 256), np.nan), "embedding 1 of 2 has NaN or infinite values"),
        (np.ones((1, 3)), "vectors have 256 dimensions"),
        (np.ones(256), "queries have shape"),
    ]:
        with pytest.raises(ParagramError, match=message):
            index.search_vectors(vectors)
    with pytest.raises(SettingsError, match="k is 0"):
        index.search(["one"], 0)
    with pytest.raises(MiningError, match="no sentences in 2 lines"):
        SearchIndex.build(["", UNKNOWN], tmp_path / "j", "p-sp-mini")
    monkeypatch.setattr(
        Encoder, "encode", lambda self, texts, **_: np.full((len(texts), 256), np.nan, np.float32)
    )
    for change in (lambda: built(tmp_path / "k", ["one two"]), lambda: index.add(["five six"])):
        with pytest.raises(ParagramError, match="NaN or infinite values"):
            change()
    assert not list((tmp_path / "k").glob("*")) and len(SearchIndex(tmp_path / "i")) == 1


def test_threads_get_the_counts_of_their_additions(tmp_path):
    index = built(tmp_path, ["the first one"])

    def add(number):
        texts = [f"sentence {number} {part}" for part in range(number + 1)]
        return index.add([*texts, "the first one", ""]) - len(texts)

    with ThreadPoolExecutor(4) as pool:
        assert set(pool.map(add, range(12))) == {0}
    assert len(index) == 1 + sum(range(13))
    expected = {
        "lines": 1 + sum(range(13)) + 24,
        "blank": 12,
        "repeated": 0,
        "known": 12,
        "added": len(index),
        "unknown": 0,
    }
    assert dict(index.counts) == expected


def test_one_text_is_one_query_and_never_a_list_of_letters(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    index = built(tmp_path, ["the train is late", "the cat sleeps"])
    for search in (
        index,
        TextSearch(["the train is late", "the cat sleeps"], Encoder("p-sp-mini")),
    ):
        assert (
            search.search("train") == search.search(["train"])[0]
            and len(search.search("train")) == 2
        )
        assert (
            search.search(np.array(["train"]))
            == search.search(("train",))
            == search.search(["train"])
        )
        with pytest.raises(SettingsError, match="text 1 of 2"):
            search.search(["train", None])
    for change in (
        index.add,
        lambda text: index.delete(sentences=text),
        lambda text: TextSearch(text, None),
    ):
        for text in ("a new sentence", "x" * 5000, "a\0b"):
            with pytest.raises(
                TextError, match="no such file; give the name of a text, or sentences as a list"
            ):
                change(text)
    (tmp_path / "lines.txt").write_text("a new sentence\n")
    assert index.add("lines.txt") == 1 and index.delete(sentences="lines.txt") == 1


def test_an_index_belongs_to_its_model_and_is_not_overwritten_unasked(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Encoder("p-sp-mini").save("p-sp-xx", truncate_dim=16)
    (tmp_path / "lines.txt").write_text("one two\n\nthree four\n")
    SearchIndex.build("lines.txt", "i", "p-sp-xx")
    with pytest.raises(MiningError, match=r"i: built with p-sp-xx, not with .*p-sp-mini"):
        SearchIndex("i", "p-sp-mini")
    with pytest.raises(MiningError, match="--overwrite"):
        SearchIndex.build(["one two"], "i", "p-sp-mini")
    assert len(SearchIndex.build(["one two"], "i", "p-sp-xx", overwrite=True)) == 1
    (tmp_path / "p-sp-xx").rename("moved")
    with pytest.raises(ModelDirectoryError, match="i: built with p-sp-xx; no model 'p-sp-xx'"):
        SearchIndex("i")
    assert SearchIndex("i", "moved").search(["one two"], 1)[0][0].line == 1
    for name, problem in {"lines.txt": "not a search", "none": "no such file or folder"}.items():
        with pytest.raises(MiningError, match=f"{name}: {problem}.* `st-paragram index FILE --out"):
            SearchIndex(name)
    with pytest.raises(SettingsError, match="no towers for questions and answers"):
        SearchIndex.build(["one two"], "j", "p-sp-mini", answers=True)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["i", "lines.txt", "moved"]


def test_a_line_break_in_the_name_of_an_index_is_refused(tmp_path):
    with pytest.raises(MiningError, match=r"its path has a line break or another") as caught:
        SearchIndex.build(["one two three"], tmp_path / "a\nb", "p-sp-mini")
    assert "\n" not in str(caught.value) and not list(tmp_path.iterdir())


def test_the_rows_go_to_parquet_and_damage_is_told_in_a_line(tmp_path):
    index = built(tmp_path, ["one two", "three four"], {"lang": "en"})
    index.delete(lines=[1])
    index.export(tmp_path / "o.parquet")
    table = parquet.read_table(tmp_path / "o.parquet")
    assert table.drop_columns("vector").to_pylist() == [
        {"text": "three four", "line": 2, "lang": "en"}
    ]
    assert np.linalg.norm(table["vector"].to_pylist()[0]) == pytest.approx(1, abs=1e-3)
    for path in (tmp_path / "i/sentences.lance/data").iterdir():
        path.unlink()
    with pytest.raises(MiningError, match=r"i: .*Not found") as caught:
        SearchIndex(tmp_path / "i").search(["one"])
    assert "\n" not in str(caught.value)


def test_an_addition_reads_the_texts_of_its_known_sentences_only(tmp_path, monkeypatch):
    texts = [f"{word} number {number}" for word in WORDS for number in range(30)]
    index = built(tmp_path, texts)
    columns, rows = [], []
    queries, tables = type(index.table.search()), type(index.table)
    select, take = queries.select, tables.take_row_ids
    monkeypatch.setattr(
        queries, "select", lambda self, names: columns.append(names) or select(self, names)
    )
    monkeypatch.setattr(
        tables, "take_row_ids", lambda self, ids: rows.append(len(ids)) or take(self, ids)
    )
    monkeypatch.setattr(additions, "_ROWS", 50)
    new = [f"{text} again" for text in texts[:120]]
    assert index.add([*new, *texts[:7]], {"lang": "en"}) == 120
    assert columns == [["_md5"]] * 3 and rows == [0, 0, 7]


def test_equal_hashes_of_different_texts_do_no_harm(tmp_path, monkeypatch):
    def hashes(texts):
        return pa.array([bytes([len(text) % 2]) * 16 for text in texts.to_pylist()], pa.binary(16))

    monkeypatch.setattr(additions, "text_hashes", hashes)
    monkeypatch.setattr(additions, "_ROWS", 13)
    texts = sentences_of(random.Random(0), 100)
    index = built(tmp_path, texts)
    assert len(index) == len(set(texts))
    assert index.add([*texts[:20], "quite another sentence"], {"lang": "en"}) == 1
    hits = index.search("station", 1000, where="lang = 'en'")
    assert {hit.sentence for hit in hits} == {*texts[:20], "quite another sentence"}


def test_an_index_without_hashes_gets_them_at_its_first_addition(tmp_path):
    index = built(tmp_path, ["one two", "three four", "güte 'five'"], {"lang": "en"})
    with table.changing(index.folder) as changed:
        changed.drop_columns(["_md5"])
    assert table.check_index(index.folder) == "all 3 sentences can be read"
    assert index.add(["three four", "güte 'five'", "six seven"], {"lang": "de"}) == 1
    rows = index.table.to_arrow()
    assert rows["_md5"].combine_chunks().equals(table.text_hashes(rows["text"]))
    assert {hit.line: hit.metadata["lang"] for hit in index.search("one")} == {
        1: "en",
        2: "de",
        3: "de",
        6: "de",
    }
    assert table.check_index(index.folder) == "all 4 sentences can be read"
    assert "_md5" not in table.describe_index(index.folder)["columns"]
    with table.changing(index.folder) as changed:
        changed.update("line = 2", {"text": "another"})
    with pytest.raises(MiningError, match="i: a sentence differs from its hash"):
        table.check_index(index.folder)


CHILD = """
import sys
import time
from st_paragram import SearchIndex
from st_paragram.tools.search import additions
additions._ROWS = 5
index = SearchIndex(sys.argv[1])
print("ready", flush=True)
for number in range(100):
    texts = [f"sentence a {number} {part}" for part in range(20)]
    index.add([*texts, f"known to both {number}"], {"by": "child"})
    if number % 4 == 3:
        index.compact()
    time.sleep(0.1)  # the other process gets the lock
"""


def test_two_processes_add_and_a_killed_one_leaves_whole_additions(tmp_path):
    """Of several versions of the table each, of which readers see the last one only."""
    index = built(tmp_path, ["the first one"], {"by": "me"})

    def child_additions():
        """The number of the addition of each sentence of the child."""
        hits = index.search(["one"], 10**5, where="text like 'sentence a %'")[0]
        return [hit.sentence.split()[2] for hit in hits]

    command = [sys.executable, "-c", CHILD, str(index.folder)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE)
    process.stdout.readline()
    for number in range(4):
        texts = [f"sentence b {number} {part}" for part in range(20)]
        assert index.add([*texts, f"known to both {number}"]) in (20, 21)
        assert index.search(["the first one"], 1)[0][0].line == 1
    index.compact()
    while len(set(child_additions())) < 2:
        assert process.poll() is None
        time.sleep(0.05)
    while_alive = child_additions()
    process.send_signal(signal.SIGKILL)
    process.wait()
    killed = child_additions()
    assert index.add(["after the kill"]) == 1
    for numbers in (while_alive, killed, child_additions()):
        assert len(numbers) == 20 * len(set(numbers)) > 0
    hits = index.search(["one"], 10**5)[0]
    lines = [hit.line for hit in hits]
    assert len(lines) == len(set(lines)) == len({hit.sentence for hit in hits}) == len(index)
    assert max(lines) <= 2 + 21 * (4 + len(set(killed)) + 1)
    index.compact()
    assert sorted(child_additions()) == sorted(killed)


def test_questions_go_through_one_tower_and_answers_through_the_other(tmp_path, vocabulary):
    pytest.importorskip("torch")
    from support.data import make_pairs
    from support.dual_encoder import new_model, unlike_new, write_bitext

    from st_paragram.learning.models import load_save

    pairs = make_pairs(40)
    model = unlike_new(new_model(write_bitext(tmp_path / "bitext.h5", vocabulary, pairs)))
    folder = load_save.save(model, tmp_path / "towers", "")
    lines = list(dict.fromkeys(text for text, _ in pairs[:8]))
    answers = SearchIndex.build([*lines, UNKNOWN], tmp_path / "answers", folder, answers=True)
    assert answers.answers and SearchIndex(tmp_path / "answers").answers
    rows, query = model.encode_document(lines), model.encode_query(lines[0])
    cosines = rows @ query / np.linalg.norm(rows, axis=1) / np.linalg.norm(query)
    hits = {hit.sentence: hit.score for hit in answers.search([lines[0]], 20)[0]}
    assert [hits[line] for line in lines] == pytest.approx(cosines.tolist(), abs=2e-3)
    plain = SearchIndex.build(lines, tmp_path / "plain", folder)
    assert not plain.answers and plain.search([lines[0]], 1)[0][0].sentence == lines[0]


def test_tables_and_tags_give_fields(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("text,lang,year,code\none,en,2020,007\ntwo,es,,1\n")
    rows = list(table_rows(str(path), "text", ["lang", "year", "code"], {"source": "x"}))
    assert (
        rows[0] == ("one", {"source": "x", "lang": "en", "year": 2020, "code": "007"})
        and rows[1][1]["year"] == ""
    )
    tags = {
        "a": 1,
        "b": 1.5,
        "c": True,
        "d": "007",
        "e": "x=y",
        "f": "9" * 20,
        "g": "[1]",
        "h": "null",
    }
    written = [f"{name}={str(value).replace('True', 'true')}" for name, value in tags.items()]
    assert tags_of(written) == tags


def test_a_full_disk_names_the_index_in_one_line(tmp_path, monkeypatch):
    def full(*_):
        raise RuntimeError(
            "lance error: LanceError(IO): No space left on device (os error 28),"
            " /x/structural.rs:191:9"
        )

    index = SearchIndex.build(["one two"], tmp_path / "i", "p-sp-mini")
    monkeypatch.setattr(module, "add_rows", full)
    for change, folder in (
        (lambda: index.add(["three four"]), "i"),
        (build_another(tmp_path), "j"),
    ):
        with pytest.raises(OSError, match="No space left on device") as caught:
            change()
        assert caught.value.filename == str(tmp_path / folder)
    with (
        pytest.raises(MiningError, match="i: no space left on the disk; free disk space"),
        table.lance_errors(tmp_path / "i"),
    ):
        full()
    assert [path.name for path in tmp_path.iterdir()] == ["i"] and len(index) == 1


def build_another(folder):
    return lambda: SearchIndex.build(["one two"], folder / "j", "p-sp-mini")


@pytest.mark.parametrize("name", ["a\0", "a\n", "a\x1b", "a\x7f", "a\ud800", "a.b"])
def test_names_of_fields_with_control_characters_are_refused(tmp_path, name):
    with pytest.raises(SettingsError, match="use another name"):
        built(tmp_path, [("The train is late.", {name: 1, "a": 2})])


def test_decimals_for_a_field_whose_temporary_name_is_taken(tmp_path):
    index = built(tmp_path, [("The train is late.", {"year": 1, "year as decimals": "q"})])
    index.add([("The cat sleeps here.", {"year": 2.5})])
    assert index.fields == {"year": "double", "year as decimals": "string"}
    assert [hit.metadata for hit in index.search("train")] == [
        {"year": 1.0, "year as decimals": "q"},
        {"year": 2.5},
    ]


@pytest.mark.parametrize("value", [float("inf"), -np.float32("inf"), Decimal("1e400")])
def test_infinite_values_are_refused(tmp_path, value):
    with pytest.raises(SettingsError, match="sentence 2: field 'z' is infinite or too large"):
        built(
            tmp_path, [("The train is late.", {"z": 1.5}), ("The cat sleeps here.", {"z": value})]
        )
    with pytest.raises(SettingsError, match=r"sentence 1 is .*, which is not Unicode text"):
        built(tmp_path, ["The train is \ud800."])


def test_whole_numbers_for_a_field_of_text_become_text(tmp_path):
    index = built(tmp_path, [("The train is late.", {"z": "x"})])
    index.add([("The cat sleeps here.", {"z": 5})])
    assert {hit.metadata["z"] for hit in index.search("train")} == {"x", "5"}


def test_arguments_of_a_search_of_wrong_types_are_refused(tmp_path):
    index = built(tmp_path, ["The train is late.", "The cat sleeps here."])
    vectors = index.encoder.encode(["train"])
    for searched in (index, TextSearch(["The train is late."], index.encoder)):
        for k in ("3", None, 1.5, float("nan"), True, 0):
            with pytest.raises(SettingsError, match=r"k is .*; give a whole number of at least 1"):
                searched.search("train", k)
        for threshold in ("x", float("nan"), True):
            with pytest.raises(SettingsError, match=r"threshold is .*; give a cosine"):
                searched.search("train", threshold=threshold)
    for seconds in ("x", float("nan")):
        with pytest.raises(SettingsError, match=r"seconds is .*; give a number"):
            index.search_vectors(vectors, seconds=seconds)
    hits = index.search_vectors(
        vectors, np.int64(1), np.float32(-1), recall=np.float32(0.9), seconds=float("inf")
    )
    assert [len(each) for each in hits] == [1]
