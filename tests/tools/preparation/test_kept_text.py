"""The text that a preparation keeps: line i is of row i, as it was read, and the store says which text it is."""

import hashlib
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from st_paragram.core.pair_store import PairStore
from st_paragram.core.text.parallel import parse_source
from st_paragram.errors import StoreError
from st_paragram.tools.cleaning.config import parse_cleaning
from st_paragram.tools.preparation import prepare as prepare_module
from st_paragram.tools.preparation.prepare import prepare
from st_paragram.tools.preparation.settings import PrepareSettings

CLEANING = parse_cleaning([{"length": {"min_length": 1}}, "duplicates"], "test")
PLAIN = PrepareSettings(("en", "es-de"), CLEANING, vocab_size=40, character_coverage=1.0)


def write(path: Path, rows) -> str:
    path.write_text("".join("\t".join(row) + "\n" for row in rows), encoding="utf-8", newline="\n")
    return str(path)


def sources(folder: Path):
    """Two texts, one with the sides in the other order, further columns, odd spaces and repeated rows."""
    spanish = [(f"The  Row \u2028{i}", f"La FILA {i % 30}", f"0.{i}") for i in range(40)]
    german = [(f"Die Zeile Nr. {i}", f" Row {i} of German ") for i in range(9)]
    return [
        replace(parse_source(f"en-es:{write(folder / 'es.tsv', spanish)}", ("en", "es")), further_columns=1),
        parse_source(f"de-en:{write(folder / 'de.tsv', german * 2)}", ("en", "de")),
    ]


def kept(folder: Path):
    return [(folder / f"{side}.txt").read_text(encoding="utf-8").split("\n")[:-1] for side in "ab"]


def check(store: PairStore, folder: Path) -> None:
    """Every line, encoded, is the row of its number."""
    rows = np.arange(len(store))
    for side, lines in zip("ab", kept(folder), strict=True):
        ids, offsets = store.take(side, rows)
        encoded, ends = store.tokenizer(side=side).encode(lines, store.max_length)
        np.testing.assert_array_equal(encoded, ids)
        np.testing.assert_array_equal(ends, offsets)
        path = folder / f"{side}.txt"
        assert store.settings["texts"][side] == hashlib.sha256(path.read_bytes()).hexdigest()


@pytest.mark.parametrize("temperature", [1.0, 3.0])
def test_lines_are_rows_in_their_order(tmp_path: Path, temperature: float) -> None:
    prepare(sources(tmp_path), tmp_path / "s.h5", replace(PLAIN, temperature=temperature), keep_text=tmp_path / "text")
    store = PairStore(tmp_path / "s.h5")
    check(store, tmp_path / "text")
    first, second = kept(tmp_path / "text")
    assert {"The Row 3", "Row 3 of German"} <= set(first)
    assert {"La FILA 3", "Die Zeile Nr. 3"} <= set(second)
    assert len(first) > len(set(first)) if temperature > 1 else len(first) == 49


def test_the_rows_are_those_of_a_store_without_its_text(tmp_path: Path) -> None:
    """But for the digests of the text, which are nowhere without it."""
    prepare(sources(tmp_path), tmp_path / "s.h5", PLAIN, keep_text=tmp_path / "text")
    prepare(sources(tmp_path), tmp_path / "t.h5", PLAIN)
    one, other = PairStore(tmp_path / "s.h5"), PairStore(tmp_path / "t.h5")
    rows = np.arange(len(one))
    for side in "ab":
        for first, second in zip(one.take(side, rows), other.take(side, rows), strict=True):
            np.testing.assert_array_equal(first, second)
    assert {name: one.settings[name] for name in one.settings if name != "texts"} == other.settings


def test_a_run_that_failed_leaves_no_half_of_a_text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    row_as_seen = prepare_module.row_as_seen
    monkeypatch.setattr(prepare_module, "row_as_seen", lambda row: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        prepare(sources(tmp_path), tmp_path / "s.h5", PLAIN, keep_text=tmp_path / "text")
    assert list((tmp_path / "text").iterdir()) == []
    monkeypatch.setattr(prepare_module, "row_as_seen", row_as_seen)
    prepare(sources(tmp_path), tmp_path / "s.h5", PLAIN, keep_text=tmp_path / "text")
    check(PairStore(tmp_path / "s.h5"), tmp_path / "text")


def test_a_text_is_not_overwritten_unasked(tmp_path: Path) -> None:
    (tmp_path / "text").mkdir()
    (tmp_path / "text" / "b.txt").write_text("mine")
    with pytest.raises(StoreError, match=r"b.txt exists; choose another folder for --keep-text or give --overwrite"):
        prepare(sources(tmp_path), tmp_path / "s.h5", PLAIN, keep_text=tmp_path / "text")
    assert (tmp_path / "text" / "b.txt").read_text() == "mine"


def test_a_file_in_place_of_the_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("mine")
    with pytest.raises(StoreError, match=r"text is a file, .*; name a folder for the text of the rows"):
        prepare(sources(tmp_path), tmp_path / "s.h5", PLAIN, keep_text=tmp_path / "text")
    assert (tmp_path / "text").read_text() == "mine"


CELLS = st.text(st.characters(blacklist_categories=["Cs", "Cc"]), max_size=12).map(lambda cell: f"x {cell} Z")


@settings(max_examples=5)
@given(st.lists(st.tuples(CELLS, CELLS), min_size=6, max_size=12, unique_by=lambda row: row[0].lower()))
def test_any_text_is_kept(tmp_path_factory: pytest.TempPathFactory, rows: list[tuple[str, str]]) -> None:
    folder = tmp_path_factory.mktemp("any")
    text = write(folder / "a.tsv", [*rows, *[(f"abcdefghij {i}", "KLMNOP qrst uvw") for i in range(30)]])
    chosen = replace(PLAIN, languages=("en", "es"), vocab_size=400)
    prepare([parse_source(text, ("en", "es"))], folder / "s.h5", chosen, keep_text=folder / "text")
    check(PairStore(folder / "s.h5"), folder / "text")
    first, second = kept(folder / "text")
    assert {(" ".join(a.split()), " ".join(b.split())) for a, b in rows} >= set(zip(first, second, strict=True)) - {
        (f"abcdefghij {i}", "KLMNOP qrst uvw") for i in range(30)
    }
