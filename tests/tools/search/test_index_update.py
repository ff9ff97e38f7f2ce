"""Indexes that change, against a plain index in memory; killed changes; readers that go on."""

import json
import os
import random
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
from filelock import FileLock

from st_paragram import SearchIndex
from st_paragram.errors import MiningError, ParagramError, SettingsError
from st_paragram.tools.search import index_metadata, index_update
from st_paragram.tools.search.index_metadata import check_index, describe_index
from st_paragram.tools.search.settings import SearchSettings

WORDS = ["station", "train", "house", "green", "river", "night", "music", "bread", "stone", "cloud", "letter", "winter"]


def sentence(rng):
    return " ".join(rng.choices(WORDS, k=4))


class Plain:
    """An index that does the same with dictionaries."""

    def __init__(self):
        self.rows, self.lines = {}, 0  # sentence: (line, fields)

    def add(self, texts, tags):
        for text, fields in zip(texts, tags, strict=True):
            self.lines += 1
            if len(text) > 1:
                line, before = self.rows.pop(text, (self.lines, {}))
                self.rows[text] = line, before | {k: v for k, v in fields.items() if v is not None}

    def delete(self, test):
        gone = [text for text, (line, fields) in self.rows.items() if test(text, line, fields)]
        for text in gone:
            del self.rows[text]
        return len(gone)

    def hits(self, test=lambda fields: True):
        return {(line, text, tuple(sorted(f.items()))) for text, (line, f) in self.rows.items() if test(f)}


def hits_of(index, query="station", k=10**6, where=None):
    (hits,) = index.search([query], k, where=where)
    assert [hit.score for hit in hits] == sorted((hit.score for hit in hits), reverse=True)
    return {(hit.line, hit.sentence, tuple(sorted(hit.metadata.items()))) for hit in hits}


def tags(rng):
    values = {"lang": rng.choice(["en", "es", None]), "year": rng.choice([2019, 2020.5, 2021, None])}
    return values | ({"checked": True} if rng.random() < 0.2 else {})


def texts_and_tags(rng, count):
    texts = [sentence(rng) if rng.random() > 0.1 else "" for _ in range(count)]
    return texts, [tags(rng) for _ in texts]


@pytest.mark.parametrize(("seed", "factory"), [(0, "Flat"), (1, "Flat"), (2, "Flat"), (3, "IVF2,Flat"), (4, "HNSW8")])
def test_any_changes_give_what_a_plain_index_gives(tmp_path, seed, factory):
    if factory != "Flat":
        pytest.importorskip("faiss")
    rng, plain = random.Random(seed), Plain()
    texts, fields = texts_and_tags(rng, 60)
    plain.add(texts, fields)
    index = SearchIndex.build(
        texts, tmp_path / "i", "p-sp-mini", SearchSettings(index=factory, recall=1.0), metadata=fields
    )
    for _ in range(9):
        what = rng.random()
        if what < 0.5:
            texts, fields = texts_and_tags(rng, rng.randint(1, 30))
            known = set(plain.rows)
            if any(texts):
                added = index.add(texts, fields)
                plain.add(texts, fields)
                assert added.added == len(set(plain.rows) - known)
        elif what < 0.65:
            lines = {rng.randint(1, plain.lines + 5) for _ in range(9)}
            assert index.delete(lines=lines) == plain.delete(lambda text, line, fields, lines=lines: line in lines)
        elif what < 0.75:
            gone = set(rng.sample(sorted(plain.rows), 4)) | {"never seen before"}
            assert index.delete(sentences=gone) == plain.delete(lambda text, line, fields, gone=gone: text in gone)
        elif what < 0.85:
            wanted = plain.delete(lambda text, line, f: f.get("lang") == "es" and f.get("year", 0) >= 2021)
            assert index.delete(where=["lang=es", "year>=2021"]) == wanted
        else:
            assert index.compact() == len(plain.rows)
        assert len(index) == len(plain.rows)
        opened = SearchIndex(tmp_path / "i")
        for each in (index, opened):
            each.effort = 1 << 10
            assert hits_of(each) == plain.hits()
            assert hits_of(each, where="lang=es") == plain.hits(lambda f: f.get("lang") == "es")
            assert hits_of(each, where="lang!=es") == plain.hits(lambda f: f.get("lang") != "es")
            wanted = plain.hits(lambda f: f.get("lang") in ("es", "en") and f.get("year", 9999) < 2021)
            assert hits_of(each, where=["lang=es,en", "year<2021"]) == wanted
            assert hits_of(each, where={"year": 2020.5}) == plain.hits(lambda f: f.get("year") == 2020.5)
    check_index(tmp_path / "i")
    assert not list((tmp_path / "i").glob(".*"))


def test_scores_and_ties_are_those_of_an_index_that_was_built_at_once(tmp_path):
    rng = random.Random(7)
    texts = list(dict.fromkeys(sentence(rng) for _ in range(200)))
    whole = SearchIndex.build(texts, tmp_path / "whole", "p-sp-mini")
    index = SearchIndex.build(texts[:50], tmp_path / "i", "p-sp-mini")
    for begin in range(50, len(texts), 20):
        index.add(texts[begin : begin + 20])
    queries = [sentence(rng) for _ in range(20)] + ["river river river river"]
    assert index.search(queries, 7) == whole.search(queries, 7)
    assert index.search(queries, 500) == whole.search(queries, 500)
    index.compact()
    assert index.search(queries, 7) == whole.search(queries, 7)
    small = SearchIndex(tmp_path / "i", memory=1)  # vectors are not held
    small.delete(lines=range(3, 60))
    index.reload()
    assert small.search(queries, 7) == index.search(queries, 7)


def test_many_small_additions_make_few_segments(tmp_path):
    index = SearchIndex.build(["the first one"], tmp_path / "i", "p-sp-mini")
    for number in range(20):
        index.add([f"sentence with number {number}"])
    assert len(index) == 21 and len(index.metadata.segments) <= 5
    assert [hit.line for hit in index.search(["sentence with number 17"], 1)[0]] == [19]
    assert index.add(["sentence with number 3", "sentence with number 3"]).known == 1
    assert index.metadata.generation == 20


def test_a_first_build_keeps_its_format_and_a_changed_one_says_what_it_is(tmp_path):
    index = SearchIndex.build(["one two three", "four five six"], tmp_path / "i", "p-sp-mini")
    values = json.loads((tmp_path / "i/index.json").read_text())
    assert values["format_version"] == 3 and "generation" not in values
    assert describe_index(tmp_path / "i")["properties"]["sentences"] == 2
    index.add(["seven eight nine"], {"lang": "en"})
    index.delete(lines=[1])
    values = json.loads((tmp_path / "i/index.json").read_text())
    assert values["format_version"] == 4
    properties = describe_index(tmp_path / "i")["properties"]
    assert (properties["sentences"], properties["deleted"], properties["segments"]) == (2, 1, 2)
    assert properties["fields"] == {"lang": "text"} and properties["changes"] == 2
    assert check_index(tmp_path / "i").startswith("2 sentences")


def test_what_has_fields_is_of_the_newer_format_and_repeats_give_later_fields(tmp_path):
    texts = ["one two three", "four five six", "one  two three"]
    fields = [{"lang": "en", "year": 1}, {}, {"lang": "es"}]
    index = SearchIndex.build(texts, tmp_path / "i", "p-sp-mini", metadata=fields)
    hit = index.search(["one two three"], 1)[0][0]
    assert (hit.line, hit.metadata) == (1, {"lang": "es", "year": 1}) and index.metadata.format_version == 4
    assert index.search(["four five six"], 1)[0][0].metadata == {}


def test_a_reader_goes_on_with_what_it_has_opened_and_reloads(tmp_path):
    index = SearchIndex.build(["one two three", "four five six"], tmp_path / "i", "p-sp-mini")
    index.add(["seven eight nine"])
    reader = SearchIndex(tmp_path / "i")
    index.delete(lines=[1])
    index.compact()
    assert not (tmp_path / "i/vectors.npy").exists()
    assert [hit.line for hit in reader.search(["one two three"], 1)[0]] == [1] and len(reader) == 3
    assert reader.reload() and not reader.reload()
    assert {hit.line for hit in reader.search(["one two three"])[0]} == {2, 3} and len(reader) == 2


def test_one_writer_at_a_time_and_readers_are_not_held_up(tmp_path):
    index = SearchIndex.build(["one two three", "four five six"], tmp_path / "i", "p-sp-mini")
    with FileLock(tmp_path / ".i.lock"):
        for change in (lambda: index.add(["seven eight"]), lambda: index.delete(lines=[1]), index.compact):
            with pytest.raises(ParagramError, match="another run"):
                change()
        assert len(SearchIndex(tmp_path / "i").search(["one"])[0]) == 2


def test_a_change_that_fails_leaves_the_index_as_it_was(tmp_path, monkeypatch):
    index = SearchIndex.build(["one two three", "four five six"], tmp_path / "i", "p-sp-mini", metadata={"year": 1})
    before = sorted(path.relative_to(tmp_path) for path in tmp_path.rglob("*"))
    for source, fields in [
        ([" ", "7"], None),
        (["seven eight"], {"year": "x"}),
        (["seven"], [{}, {}]),
        (["x y"], {"a b": 1}),
    ]:
        with pytest.raises((MiningError, SettingsError)):
            index.add(source, fields)
    monkeypatch.setattr(index_update, "write_metadata", lambda *_, **__: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        index.add(["seven eight"])
    monkeypatch.undo()
    assert len(SearchIndex(tmp_path / "i")) == 2
    index.add(["seven eight"])  # removes what is left
    names = {path.name for path in (tmp_path / "i").iterdir()}
    assert names == {"index.json", "sentences", "fields", "vectors.npy", "segment-0001"} and before


def test_everything_deleted_is_an_empty_answer_and_is_not_compacted(tmp_path):
    index = SearchIndex.build(["one two three", "four five six"], tmp_path / "i", "p-sp-mini")
    assert index.delete(lines=[1, 2, 2, 9]) == 2 and index.delete(lines=[1]) == 0
    assert index.search(["one", "two"]) == [[], []] and len(index) == 0
    with pytest.raises(MiningError, match="all sentences are deleted"):
        index.compact()
    index.add(["one two three"])
    assert [hit.line for hit in index.search(["one"])[0]] == [3] and index.compact() == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({}, "by exactly one of lines"),
        ({"lines": [1], "where": "a=1"}, "by exactly one of lines"),
        ({"where": []}, "would delete every sentence"),
        ({"where": "lagn=es"}, "no field lagn; did you mean lang"),
        ({"where": "zzz=es"}, "no field zzz; fields are lang, year"),
        ({"where": "year>=soon"}, "year is integer, and 'soon' is not"),
        ({"where": {"year": "2020x"}}, "year is integer"),
        ({"where": {"lang": 5}}, "lang is text, and 5 is not"),
        ({"where": "lang"}, "write FIELD=VALUE"),
        ({"where": "year>1,2"}, "year is integer"),
    ],
)
def test_bad_requests_are_refused(tmp_path, arguments, message):
    index = SearchIndex.build(["one two three"], tmp_path / "i", "p-sp-mini", metadata={"lang": "en", "year": 2020})
    with pytest.raises(SettingsError, match=message):
        index.delete(**arguments)
    if arguments.get("where") and "lines" not in arguments:
        with pytest.raises(SettingsError, match=message):
            index.search(["one"], where=arguments["where"])


def test_an_index_of_another_model_is_not_changed(tmp_path):
    index = SearchIndex.build(["one two three"], tmp_path / "i", "p-sp-mini")
    values = index_metadata.read_metadata(tmp_path / "i")
    index_metadata.write_metadata(tmp_path / "i", index_metadata.replace(values, fingerprint="0" * 64))
    with pytest.raises(MiningError, match="built with"):
        index.add(["four five"])
    with pytest.raises(MiningError, match="built with"):
        index.reload()


def test_an_inexact_index_finds_k_behind_deletions_and_filters(tmp_path):
    pytest.importorskip("faiss")
    rng = np.random.default_rng(0)
    texts = [" ".join(rng.choice(WORDS, 5)) + f" {number}" for number in range(600)]
    fields = [{"rare": number % 100 == 0, "half": number % 2} for number in range(600)]
    index = SearchIndex.build(
        texts, tmp_path / "i", "p-sp-mini", SearchSettings(index="IVF16,PQ64x4fs"), metadata=fields
    )
    index.effort = 1
    assert len(index.search(["station train"], 6, where="rare=true")[0]) == 6
    assert len(index.search(["station train"], 250, where="half=1")[0]) == 250
    near = [hit.line for hit in index.search(["station train"], 20)[0]]
    index.delete(lines=near[:15])
    hits = index.search(["station train"], 20)[0]
    assert len(hits) == 20 and not {hit.line for hit in hits} & set(near[:15])


CHANGES = """
import sys
from st_paragram import SearchIndex
index = SearchIndex(sys.argv[1])
print("ready", flush=True)
number = 0
while True:
    index.delete(where="round>=0")  # what a killed process before this one added, too
    index.compact()
    index.add([f"added sentence {number} {part}" for part in range(50)], {"round": number})
    number += 1
"""


@pytest.mark.slow
def test_kills_at_random_moments_leave_the_index_before_or_after(tmp_path):
    rng, texts = random.Random(3), [f"sentence that stays {number}" for number in range(500)]
    SearchIndex.build(texts, tmp_path / "i", "p-sp-mini", metadata={"round": -1})
    for _ in range(10):
        child = subprocess.Popen(
            [sys.executable, "-c", CHANGES, str(tmp_path / "i")], stdout=subprocess.PIPE, env=dict(os.environ)
        )
        child.stdout.readline()
        time.sleep(rng.uniform(0, 0.3))
        child.send_signal(signal.SIGKILL)
        child.wait()
        check_index(tmp_path / "i")
        index = SearchIndex(tmp_path / "i")
        assert len(index) in (500, 550)
        lines = {hit.line for hit in index.search(["sentence that stays"], 1000, where={"round": -1})[0]}
        assert lines == set(range(1, 501))
