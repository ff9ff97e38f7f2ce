"""What a store says of its rows: their text, their languages, and the sample on which the
vocabulary is trained.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from st_paragram.core.pair_store import PairStore
from st_paragram.core.text.parallel import TextSource, parse_source
from st_paragram.errors import StoreError
from st_paragram.tools.cleaning.config import parse_cleaning
from st_paragram.tools.preparation import prepare as prepare_module
from st_paragram.tools.preparation import vocabulary
from st_paragram.tools.preparation.prepare import prepare
from st_paragram.tools.preparation.settings import PrepareSettings

CLEANING = parse_cleaning([{"length": {"min_length": 1}}, "duplicates"], "test")
PLAIN = PrepareSettings(
    ("en", "es-de"), CLEANING, vocab_size=150, character_coverage=1.0, sample_pairs=60
)


def write(path: Path, rows) -> str:
    path.write_text("".join("\t".join(row) + "\n" for row in rows), encoding="utf-8", newline="\n")
    return str(path)


# ---- text that is kept


def texts(folder: Path):
    """Two texts, one with the sides in the other order, further columns, odd spaces and repeated
    rows.
    """
    spanish = [(f"The  Row \u2028{i} ¡ÇĞ中!", f"La FILA {i % 30}", f"0.{i}") for i in range(40)]
    german = [(f"Die Zeile Nr. {i}", f" Row {i} of German ") for i in range(9)]
    return [
        replace(
            parse_source(f"en-es:{write(folder / 'es.tsv', spanish)}", ("en", "es")),
            further_columns=1,
        ),
        parse_source(f"de-en:{write(folder / 'de.tsv', german * 2)}", ("en", "de")),
    ]


@pytest.mark.parametrize("temperature", [1.0, 3.0])
def test_kept_lines_are_rows_in_their_order(tmp_path, temperature) -> None:
    settings, folder = replace(PLAIN, temperature=temperature, vocab_size=60), tmp_path / "text"
    prepare(texts(tmp_path), tmp_path / "s.h5", settings, keep_text=folder)
    prepare(texts(tmp_path), tmp_path / "t.h5", settings)
    store, plain = PairStore(tmp_path / "s.h5"), PairStore(tmp_path / "t.h5")
    rows = np.arange(len(store))
    for side in "ab":
        path = folder / f"{side}.txt"
        encoded = store.tokenizer(side=side).encode(
            path.read_text(encoding="utf-8").split("\n")[:-1], store.max_length
        )
        for found, expected, without in zip(
            encoded, store.take(side, rows), plain.take(side, rows), strict=True
        ):
            np.testing.assert_array_equal(found, expected)
            np.testing.assert_array_equal(without, expected)
        assert store.settings["texts"][side] == hashlib.sha256(path.read_bytes()).hexdigest()
    assert {
        name: store.settings[name] for name in store.settings if name != "texts"
    } == plain.settings
    first = (folder / "a.txt").read_text(encoding="utf-8").split("\n")[:-1]
    assert (
        len(first) > len(set(first))
        if temperature > 1
        else {"The Row 3 ¡ÇĞ中!", "Row 3 of German"} <= set(first)
    )


def test_a_text_is_whole_or_not_there_and_not_overwritten(tmp_path, monkeypatch) -> None:
    folder = tmp_path / "text"
    monkeypatch.setattr(prepare_module, "columns_of", lambda row: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        prepare(texts(tmp_path), tmp_path / "s.h5", PLAIN, keep_text=folder)
    assert list(folder.iterdir()) == []
    (folder / "b.txt").write_text("mine")
    with pytest.raises(
        StoreError, match=r"b.txt exists; choose another folder for --keep-text or give --overwrite"
    ):
        prepare(texts(tmp_path), tmp_path / "s.h5", PLAIN, keep_text=folder)
    with pytest.raises(
        StoreError, match=r"b.txt is a file, .*; name a folder for the text of the rows"
    ):
        prepare(texts(tmp_path), tmp_path / "s.h5", PLAIN, keep_text=folder / "b.txt")
    assert (folder / "b.txt").read_text() == "mine"


# ---- languages of rows

DIGITS = "ba ce di fo gu ha je ki lo mu".split()  # noqa: SIM905


def named(folder: Path, name: str, count: int) -> str:
    """Rows that name their text and their number on both sides."""
    words = (" ".join(DIGITS[int(digit)] for digit in str(number)) for number in range(count))
    return write(
        folder / name,
        [(f"{name} {word} a", f"in {name} {number} b") for number, word in enumerate(words)],
    )


def test_rows_keep_the_languages_of_their_texts(tmp_path) -> None:
    counts = {"en-de": 60, "es-en": 25, "en-en": 40, "en-es": 30}
    sources = [
        parse_source(f"{name}:{named(tmp_path, name, counts[name])}", PLAIN.languages)
        for name in counts
    ]
    prepare(sources, tmp_path / "s.h5", replace(PLAIN, temperature=3.0))
    store = PairStore(tmp_path / "s.h5")
    assert store.languages == ("en", "es-de")
    assert store.language_pairs == (("en", "de"), ("en", "es"), ("en", "en"))
    rows = np.arange(len(store))
    for languages, *pair in zip(
        *(store.row_languages(rows), *(store.texts(side, rows) for side in "ab")), strict=True
    ):
        name = next(text for text in pair if not text.startswith("in ")).partition(" ")[0]
        assert languages == tuple(sorted(name.split("-"), key=lambda code: code != "en"))
    assert set(store.row_languages(rows)) == set(store.language_pairs)


@pytest.mark.parametrize(
    ("source", "languages", "expected"),
    [
        (TextSource(("x",), ("de", "en"), swapped=True), ("en", "fr-es-de"), ("en", "de")),
        (TextSource(("x",), ("en_gb", "zh_cn")), ("en", "zh"), ("en", "zh")),
        (TextSource(("x",), ("en", "zh_tw")), ("en", "zh_cn-zh_tw"), ("en", "zh_tw")),
        (TextSource(("x", "y"), ("en", "fr-es")), ("en", "fr-es"), ("en", "fr-es")),
    ],
)
def test_codes_are_those_wanted(source, languages, expected) -> None:
    assert source.pair_among(languages) == expected


# ---- the sample of the vocabulary


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({}, {"english": 40, "es": 40, "de": 40}),  # a third of the sentences of 60 pairs
        ({"sample_pairs": 300}, {"english": 200, "es": 200, "de": 50}),  # all of a small language
        ({"vocab_sample": "rows"}, None),
    ],
)
def test_each_language_has_as_many_sentences(tmp_path, monkeypatch, change, expected) -> None:
    sources, seen, train = [], [], vocabulary.train_vocabulary
    for code, count in (("es", 400), ("de", 50)):
        rows = [(f"english row {code} {i}", f"{code} satz fila {i}") for i in range(count)]
        sources.append(parse_source(f"en-{code}:{write(tmp_path / code, rows)}", PLAIN.languages))

    def watching(sentences, **settings):
        seen[:] = sentences
        return train(iter(seen), **settings)

    monkeypatch.setattr(vocabulary, "train_vocabulary", watching)
    prepare(sources, tmp_path / "s.h5", replace(PLAIN, **change))
    sample, settings = (
        Counter(text.split()[0] for text in seen),
        PairStore(tmp_path / "s.h5").settings,
    )
    assert sample == expected or (
        sample["english"] == 60 == sample["es"] + sample["de"] and sample["es"] > 40
    )
    assert settings.get("vocab_sample") == ("even" if expected else None)


@pytest.mark.parametrize(
    ("languages", "pairs", "pieces"),
    [
        (("en", "es"), 2_000_000, 50_000),
        (("en", "ar-de-en-es-fr-ru-tr-zh"), 2_000_000, 96_000),
        (("en", "ar-de-en-es-fr-ru-tr-zh"), 1_000_000, 20_000),
        (("en", "de-zh_tw-zh"), 2_000_000, 50_000),
        (("en", "-".join(f"l{number}" for number in range(40))), 2_000_000, 200_000),
    ],
)
def test_many_languages_have_more_pieces(languages, pairs, pieces) -> None:
    assert PrepareSettings(languages).pieces(pairs) == pieces
