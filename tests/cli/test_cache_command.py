"""`st-paragram cache`: what it lists, what it removes, and a training on text in a cache that cannot be written."""

from __future__ import annotations

import json

import pytest

from st_paragram.cli.main import main
from st_paragram.core import cache
from st_paragram.learning.training.training_data import find_training_data, preparation


@pytest.fixture
def folder(tmp_path, monkeypatch, pairs):
    """A cache with the store of a text."""
    monkeypatch.setenv("ST_PARAGRAM_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(cache, "_in_use", {})
    (tmp_path / "my text.tsv").write_text("".join(f"{one}\t{other}\n" for one, other in pairs[:300]))
    data = find_training_data("es", [str(tmp_path / "my text.tsv")], preparation("es", vocab_size=90))
    assert data.store.digest  # which is kept
    return tmp_path / "cache"


def test_a_listing_names_the_texts_and_the_total(folder, capsys):
    assert main(["cache"]) == 0
    head, store, digests, total = capsys.readouterr().out.splitlines()
    assert head.split() == ["kind", "size", "last", "use", "file", "made", "from"]
    assert store.startswith("stores") and "/my t" in store and "stores/en-es-" in store
    assert digests.split()[:3] == ["digests", "65", "bytes"]
    assert total.startswith(f"{folder}: 2 files, ")
    assert main(["cache", "--json"]) == 0
    kinds = [(each["kind"], each["made_from"]) for each in json.loads(capsys.readouterr().out)]
    assert kinds == [("stores", str(folder.parent / "my text.tsv")), ("digests", "")]


def test_a_store_that_is_trained_on_stays_and_goes_later(folder, monkeypatch, capsys):
    (store,) = (folder / "stores").glob("*.h5")
    assert main(["cache", "clear", "--plan"]) == 0 and ": 2 files, " in capsys.readouterr().out
    assert main(["cache", "clear", "--older-than", "1"]) == 0
    assert capsys.readouterr().out == f"{folder}: removed nothing\n" and store.exists()
    assert main(["cache", "clear"]) == 0
    out = capsys.readouterr().out
    assert out == f"{store}: in use, stays\n{folder}: removed 1 file, 65 bytes\n"
    cache._in_use.clear()  # the process that trained has ended
    assert main(["cache", "clear", "--kind", "stores"]) == 0 and not store.exists()
    assert main(["cache"]) == 0
    assert capsys.readouterr().out.splitlines()[-1] == f"{folder}: nothing"


@pytest.mark.parametrize("days", ["-1", "nan", "inf"])
def test_a_number_of_days_is_refused(days, capsys):
    assert main(["cache", "clear", f"--older-than={days}"]) == 1
    assert "give a number of days, 0 or more" in capsys.readouterr().err


@pytest.mark.parametrize("data", ["built-in", "pairs.tsv"])
def test_training_on_text_is_refused_early_where_the_cache_cannot_be_written(tmp_path, monkeypatch, capsys, data):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "pairs.tsv").write_text("one\tuno\ntwo\tdos\n")
    monkeypatch.setenv("ST_PARAGRAM_CACHE", str(tmp_path / "pairs.tsv" / "cache"))
    for plan in ([], ["--plan"]):
        assert main(["train", "bitext", "--lang", "es", "--data", data, *plan]) == 1
        (line,) = capsys.readouterr().err.splitlines()
        assert "the cache is not writable; set ST_PARAGRAM_CACHE to a writable folder" in line
    assert [path.name for path in tmp_path.iterdir()] == ["pairs.tsv"]
