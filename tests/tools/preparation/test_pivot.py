"""Paraphrases by pivoting, compared with a plain rendering; files, limits and faults."""

from __future__ import annotations

import itertools
import random
from collections import defaultdict
from pathlib import Path

import pytest

from st_paragram.cli.main import main
from st_paragram.core.text.parallel import parse_source
from st_paragram.errors import ParagramError, SettingsError, TextError
from st_paragram.tools.preparation import pivot as pivot_module
from st_paragram.tools.preparation.pivot import (
    PivotReport,
    PivotSettings,
    _pairs,
    _sides,
    pivot,
    pivot_source,
)

OPEN = PivotSettings(min_words=1, min_pivot_letters=1, most_sentences=1000, most_pairs=1000)


def pairs_of(
    *groups: tuple[str, list[str]], settings: PivotSettings = OPEN
) -> tuple[list[tuple[str, str]], PivotReport]:
    report = PivotReport()
    pairs = []
    for key, texts in groups:
        sides = _sides([f"0{text}" for text in texts], 1)
        pairs += _pairs(key, sides, settings, report)
    return pairs, report


def write(path: Path, rows: list[tuple[str, str]]) -> str:
    path.write_text("".join(f"{a}\t{b}\n" for a, b in rows), encoding="utf-8", newline="\n")
    return str(path)


def read(path: Path) -> list[tuple[str, ...]]:
    return [tuple(line.split("\t")) for line in path.read_text(encoding="utf-8").split("\n")[:-1]]


def rows(count: int = 400, seed: int = 0) -> list[tuple[str, str]]:
    rng = random.Random(seed)
    return [
        (f"sentence number {rng.randrange(60)} is here", f"Satz {rng.randrange(40)} ist hier")
        for _ in range(count)
    ]


def test_pairs_of_a_group() -> None:
    found, report = pairs_of(("x", ["c", "a", "b", "a"]), ("y", ["a", "A!"]), ("z", ["d", "e"]))
    assert {frozenset(pair) for pair in found} == {
        frozenset(pair) for pair in ("ab", "ac", "bc", "de")
    }
    assert (report.groups, report.shared, report.sentences, len(found)) == (3, 2, 5, 4)


def test_translations_of_two_languages(tmp_path) -> None:
    french = [("good morning", "bonjour"), ("good morning", "salut"), ("only here", "seulement")]
    german = [("guten Morgen", "good  Morning"), ("nur dort", "only there")]
    sources = [
        pivot_source(f"en-fr:{write(tmp_path / 'fr', french)}", ["fr", "de"]),
        pivot_source(f"de-en:{write(tmp_path / 'de', german)}", ["fr", "de"]),
    ]
    report = pivot(sources, tmp_path / "out.tsv", OPEN, languages=["fr", "de"])
    pairs = sorted(read(tmp_path / "out.tsv"))
    assert pairs == [("bonjour", "guten Morgen"), ("salut", "guten Morgen")]
    assert (report.groups, report.shared, report.sentences, report.pairs) == (3, 1, 3, 2)
    with pytest.raises(SettingsError, match="fr or de and another, as in fr-xx:FILE"):
        pivot_source("fr-de:x", ["fr", "de"])
    for spec, languages in (("xx-fr:x", ["fr"]), ("en-es:x", ["xx"]), ("xx-de:x", ["xx", "de"])):
        with pytest.raises(SettingsError, match="unknown language code 'xx'; use an ISO 639 code"):
            pivot_source(spec, languages)


def test_limits() -> None:
    large = ("x", [f"s{i}" for i in range(6)])
    found, report = pairs_of(large, settings=PivotSettings(most_pairs=4))
    assert len(set(found)) == 4 and report.not_drawn == 11
    found, report = pairs_of(large, settings=PivotSettings(most_sentences=5))
    assert found == [] and (report.too_general, report.sentences, report.shared) == (1, 6, 1)


def test_files_as_in_memory(tmp_path) -> None:
    german, spanish = rows(), [(a, b.replace("Satz", "Frase")) for a, b in rows(300, 1)]
    sources = [
        pivot_source(f"en-de:{write(tmp_path / 'de', german)}"),
        pivot_source(f"es-en:{write(tmp_path / 'es', [row[::-1] for row in spanish])}"),
    ]
    report = pivot(sources, tmp_path / "out.tsv", OPEN)
    groups: dict[str, set[str]] = defaultdict(set)
    for english, other in german + spanish:
        groups[other].add(english)
    expected = {
        frozenset(pair) for group in groups.values() for pair in itertools.combinations(group, 2)
    }
    made = sum(len(group) * (len(group) - 1) // 2 for group in groups.values())
    found = read(tmp_path / "out.tsv")
    assert {frozenset(pair) for pair in found} == expected
    assert len(found) == len(expected) == report.pairs
    assert report.repeated == made - len(expected) > 0
    assert (report.rows, report.groups, report.short) == (700, len(groups), 0)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["de", "es", "out.tsv"]


def test_output_does_not_depend_on_order_or_files(tmp_path) -> None:
    text = rows()
    settings = PivotSettings(min_pivot_letters=1, most_sentences=30, most_pairs=3)
    pivot([pivot_source(f"en-de:{write(tmp_path / 'a', text)}")], tmp_path / "one.tsv", settings)
    random.Random(3).shuffle(text)
    halves = [
        pivot_source(f"en-de:{write(tmp_path / name, part)}")
        for name, part in (("b", text[:99]), ("c", text))
    ]
    pivot(halves, tmp_path / "two.tsv", settings)
    assert (tmp_path / "one.tsv").read_bytes() == (tmp_path / "two.tsv").read_bytes()


def test_what_counts_as_the_same_translation(tmp_path) -> None:
    text = [
        ("this is one", "Das ist  es"),
        ("that is  it", "DAS IST ES"),
        ("so be it", "ｄａｓ ist es"),
        ("it was two", "das war es"),
        ("too short", "das ist es"),
        ("a fine word", "ja"),
        ("a good word", "ja"),
    ]
    settings = PivotSettings(min_pivot_letters=3)
    report = pivot([pivot_source(f"en-de:{write(tmp_path / 't', text)}")], tmp_path / "o", settings)
    assert {frozenset(pair) for pair in read(tmp_path / "o")} == {
        frozenset(pair)
        for pair in itertools.combinations(("this is one", "that is it", "so be it"), 2)
    }
    assert (report.rows, report.short, report.short_pivots, report.groups) == (7, 1, 2, 2)
    assert "7  rows read" in report.table() and "3  pairs written" in report.table()
    other = [pivot_source(f"en-nl:{write(tmp_path / 'n', [('it was three', 'das war es')])}")]
    report = pivot(
        [*other, pivot_source(f"en-de:{tmp_path / 't'}")], tmp_path / "o", settings, overwrite=True
    )
    assert report.groups == 3  # the same letters in another language are another translation
    turned = [pivot_source(f"de-en:{write(tmp_path / 'd', [('das war es', 'it was three')])}")]
    report = pivot(
        [*turned, pivot_source(f"en-de:{tmp_path / 't'}")], tmp_path / "o", settings, overwrite=True
    )
    # the order of the columns makes no other language
    assert (report.groups, report.pairs) == (2, 4)


def test_languages_must_be_named() -> None:
    assert pivot_source("de-en:x") == parse_source("de-en:x", ("en", "de"))
    assert pivot_source("de-fr:x", ["fr"]) == parse_source("de-fr:x", ("fr", "de"))
    for wrong in ("x.tsv", "de-fr:x"):
        with pytest.raises(SettingsError, match="name the languages"):
            pivot_source(wrong)


def test_nothing_stays_behind_after_an_error(tmp_path, monkeypatch) -> None:
    good = write(tmp_path / "good", rows(50))
    bad = tmp_path / "bad"
    bad.write_bytes(b"one two three\teins zwei drei vier\nbroken \xff\tx\n")
    (tmp_path / "out").write_text("old")
    for source, words in ((bad, "line 2 is not UTF-8"), (tmp_path / "none", "No such file")):
        with pytest.raises(TextError, match=words):
            pivot(
                [pivot_source(f"en-de:{good}"), pivot_source(f"en-de:{source}")],
                tmp_path / "out",
                overwrite=True,
            )
    with pytest.raises(TextError, match="no two of 1 rows"):
        pivot([pivot_source(f"en-de:{bad}")], tmp_path / "out", drop_invalid=True, overwrite=True)

    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(pivot_module, "_pairs", interrupted)
    with pytest.raises(KeyboardInterrupt):
        pivot([pivot_source(f"en-de:{good}")], tmp_path / "out", overwrite=True)
    with pytest.raises(ParagramError, match="out exists; choose another name or give --overwrite"):
        pivot([pivot_source(f"en-de:{good}")], tmp_path / "out")
    assert (tmp_path / "out").read_text() == "old"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["bad", "good", "out"]


def test_command(tmp_path, capsys) -> None:
    text = write(
        tmp_path / "t",
        [("this is one", "das ist eines davon"), ("that is it", "Das ist eines davon")],
    )
    arguments = [
        "pivot",
        "--text",
        f"en-de:{text}",
        "--output",
        tmp_path / "o",
        "--json",
        tmp_path / "j",
    ]
    assert main([*map(str, arguments)]) == 0
    assert (
        "1  pairs written" in capsys.readouterr().out
        and '"pairs": 1' in (tmp_path / "j").read_text()
    )
