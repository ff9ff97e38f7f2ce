"""The order of a store: repeated rows, caps, balance; rows that were dropped; what a run may not
do.
"""

from __future__ import annotations

import random
import tempfile
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import get_args

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from st_paragram.core.pair_store import PairStore
from st_paragram.core.text.parallel import TextSource, parse_source
from st_paragram.core.tokenizers.sentencepiece import Segmentation
from st_paragram.errors import SettingsError, TextError
from st_paragram.tools.cleaning.config import Cleaning, Copies, Duplicates, Key, parse_cleaning
from st_paragram.tools.preparation.buckets import Buckets, pack_rows, source_of, texts_of
from st_paragram.tools.preparation.order import order_rows, quotas
from st_paragram.tools.preparation.prepare import prepare
from st_paragram.tools.preparation.report import PrepareReport, SourceReport
from st_paragram.tools.preparation.settings import PrepareSettings

PLAIN = PrepareSettings(("en", "es"), vocab_size=120, character_coverage=1.0)
SHORT = st.text("abé", min_size=1, max_size=2)
ROWS = st.lists(st.tuples(st.integers(0, 2), st.tuples(SHORT, SHORT)), min_size=1, max_size=60)


def write_text(
    path: Path, count: int = 900, words: str = "uno dos tres cuatro cinco seis", seed: int = 0
) -> str:
    rng = random.Random(seed)
    rows = [" ".join(rng.choices(words.split(), k=4)) + f" {i // 2}" for i in range(count)]
    path.write_text(
        "".join(f"the row number {i // 2}\t{row}\n" for i, row in enumerate(rows)), newline="\n"
    )
    return str(path)


@given(ROWS, st.sampled_from(get_args(Key)), st.sampled_from(get_args(Copies)))
def test_repeated_rows_against_a_plain_count(
    rows: list[tuple[int, tuple[str, str]]], by: Key, copies: Copies
) -> None:
    def key(pair: tuple[str, str]) -> object:
        return {"pair": pair, "first": pair[0], "second": pair[1]}[by]

    counts = Counter(key(pair) for _, pair in rows)
    expected = [value for value, count in counts.items() if copies == "one" or count == 1]
    report = PrepareReport([SourceReport("x", rows=len(rows), kept=len(rows)) for _ in range(3)])
    with tempfile.TemporaryDirectory() as folder:
        with Buckets(Path(folder) / "cleaned") as buckets:
            for number, pair in rows:
                buckets.add(pack_rows([pair], number, by, 5))
        (Path(folder) / "rejects").mkdir()
        settings = replace(PLAIN, cleaning=Cleaning((), Duplicates((by,), copies)), seed=5)
        order = order_rows(Path(folder), [source()] * 3, settings, report, carry=False)
        kept = [row for bucket in order for row in bucket]
    assert kept == sorted(kept)
    pairs = [(source_of(row), (a, b)) for row, (a, b) in zip(kept, texts_of(kept), strict=True)]
    assert sorted(key(pair) for _, pair in pairs) == sorted(expected)
    for number, pair in pairs:
        assert (number, pair) in rows
        assert number == min(other for other, each in rows if key(each) == key(pair))


def source(languages: tuple[str, str] = ("en", "es"), cap: int | None = None) -> TextSource:
    return TextSource(("x",), languages, cap=cap)


def test_quotas_by_hand() -> None:
    assert quotas([10, 20], [source(cap=15), source(cap=15)], 1) == [10, 15]
    # Two languages with 100 and 900 pairs at T = 2: weights 10 and 30, so a quarter and three
    # quarters of 1,000.
    two = [source(("en", "fr")), source(("en", "de"))]
    assert quotas([100, 900], two, 2) == [250, 750]
    assert quotas([100, 900], two, 1) == [100, 900]
    # Texts of one language keep their proportions, whatever their region code.
    three = [source(("en", "zh")), source(("en", "zh_cn")), source(("en", "de"))]
    assert quotas([60, 40, 900], three, 2) == [150, 100, 750]
    assert quotas([0, 7], two, 5) == [0, 7]
    with pytest.raises(SettingsError, match="would be repeated"):
        quotas([1, 10_000_000], two, 1e9)


def store_texts(path: Path) -> list[tuple[str, str]]:
    store = PairStore(path)
    rows = np.arange(len(store))
    return list(zip(store.texts("a", rows), store.texts("b", rows), strict=True))


def test_caps_take_a_random_part_of_each_text(tmp_path: Path) -> None:
    texts = [
        write_text(tmp_path / "a.tsv", 900),
        write_text(tmp_path / "b.tsv", 500, "six seven eight nine ten", 1),
    ]
    sources = [
        replace(parse_source(text, PLAIN.languages), cap=cap)
        for text, cap in zip(texts, (200, None), strict=True)
    ]
    report = prepare(sources, tmp_path / "s.h5", PLAIN)
    assert [each.kept for each in report.sources] == [200, 500]
    assert report.sources[0].dropped["over the cap"] == 700
    taken = [
        a
        for a, b in store_texts(tmp_path / "s.h5")
        if "six" not in b and "seven" not in b and "uno" in b
    ]
    numbers = [int(a.split()[-1]) for a in taken if a.split()[-1].isdigit()]
    assert 100 < np.mean(numbers) < 350  # of 0 .. 449, not the first ones
    for each in (*report.sources, report.total):
        assert each.rows == each.kept + each.dropped.total() - each.repeated
    with pytest.raises(SettingsError, match="cap is 0"):
        prepare([replace(sources[0], cap=0)], tmp_path / "t.h5", PLAIN)


def test_temperature_repeats_small_languages_and_spreads_the_copies(tmp_path: Path) -> None:
    languages = ("en", "es-de")
    write_text(tmp_path / "a.tsv", 1600)
    write_text(tmp_path / "b.tsv", 100, "eins zwei drei vier", 1)
    sources = [
        parse_source(f"en-{code}:{tmp_path / name}", languages)
        for code, name in (("es", "a.tsv"), ("de", "b.tsv"))
    ]
    options = replace(PLAIN, languages=languages, temperature=2.0, vocab_size=200)
    report = prepare(sources, tmp_path / "s.h5", options)
    assert [each.kept for each in report.sources] == [1360, 340]  # weights 40 and 10 of 1,700 pairs
    assert (report.sources[1].repeated, report.sources[0].dropped["over the cap"]) == (240, 240)
    pairs = store_texts(tmp_path / "s.h5")
    german = [
        i for i, (_, b) in enumerate(pairs) if {"eins", "zwei", "drei", "vier"} & set(b.split())
    ]
    assert len(german) == 340
    counts = Counter(pairs[i] for i in german)
    assert set(counts.values()) == {3, 4} and list(counts.values()).count(4) == 40
    assert abs(np.mean(german) - 850) < 150  # spread over the whole store
    assert PairStore(tmp_path / "s.h5").settings["temperature"] == 2.0


def test_rejects_are_rows_as_they_were_read_and_change_nothing_in_the_store(tmp_path: Path) -> None:
    path = tmp_path / "a.tsv"
    rows = [(f"Row Number {i}", f"这是 第 {i} 行 哦", f"0.{i}") for i in range(40)]
    again = [
        ("ROW number 3", "这是 第 3 行 哦", "0.9"),
        ("Row Number 4", "另外 第 4 行", "0.8"),
        ("Kurz", "嗨", "0"),
    ]
    path.write_text("".join("\t".join(row) + "\n" for row in [*rows, *again]), encoding="utf-8")
    filters: list[object] = ["length", {"duplicates": {"on": ["first", "pair"]}}]
    options = replace(
        PLAIN,
        languages=("en", "zh"),
        segmentation=Segmentation.JIEBA,
        cleaning=parse_cleaning(filters, "test"),
    )
    source = TextSource((str(path),), ("en", "zh"), further_columns=1)
    prepare([source], tmp_path / "s.h5", options, rejects=tmp_path / "out")
    prepare([source], tmp_path / "t.h5", options)
    assert (tmp_path / "s.h5").read_bytes() == (tmp_path / "t.h5").read_bytes()
    dropped = (
        (tmp_path / "out" / "repeated-first-side.tsv").read_text(encoding="utf-8").split("\n")[:-1]
    )
    both = [{rows[3], again[0]}, {rows[4], again[1]}]  # which of two stays is not laid down
    assert sorted(len(pair & {tuple(row.split("\t")) for row in dropped}) for pair in both) == [
        1,
        1,
    ]
    assert (tmp_path / "out" / "too-short.tsv").read_text(encoding="utf-8") == "Kurz\t嗨\t0\n"


def test_a_filter_that_misses_a_column_says_where(tmp_path: Path) -> None:
    (tmp_path / "a.tsv").write_text("one two three\tun deux trois\tword\n" * 5)
    options = replace(PLAIN, cleaning=parse_cleaning([{"paraphrase_score": {"low": 0.1}}], "test"))
    source = TextSource((str(tmp_path / "a.tsv"),), ("en", "es"), further_columns=1)
    with pytest.raises(TextError, match=r"a\.tsv: among rows 1\.\.\d+: paraphrase_score: 'word'"):
        prepare([source], tmp_path / "s.h5", options)
