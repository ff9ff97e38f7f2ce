"""Preparation compared with a plain reference: a list, a set and the rules as documented."""

from __future__ import annotations

import dataclasses
import math
import os
import random
import tempfile
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from st_paragram.data import prepare_encode
from st_paragram.data.external_shuffle import RowFormat, Scatter, read_bucket
from st_paragram.data.filters import DropReason, LengthFilter, LengthOn, without_spaces
from st_paragram.data.pair_store import PairStore
from st_paragram.data.parallel import ordered_map
from st_paragram.data.prepare import prepare, prepare_cached
from st_paragram.data.prepare_report import PrepareReport
from st_paragram.data.prepare_settings import PrepareSettings
from st_paragram.data.text import moses_source, parse_source
from st_paragram.data.vocabulary import Segmentation, Vocabulary, train_vocabulary
from st_paragram.errors import ParagramError, SettingsError, StoreError, TextError

EN_ES = ("en", "es")
PLAIN = PrepareSettings(EN_ES, vocab_size=300, character_coverage=1.0, max_pieces=1000)
Pairs = list[tuple[str, str]]


@cache
def corpus(count: int = 1500, seed: int = 0) -> Pairs:
    """Random sentences of 1 to 12 words, some empty, some repeated, some in other case or with odd spaces."""
    rng = random.Random(seed)
    words = ["".join(rng.choices("abcdefghijklmnoprstuv", k=rng.randint(1, 8))) for _ in range(300)]
    sides = [[" ".join(rng.choices(words, k=rng.randint(0, 12))) for _ in range(count)] for _ in range(2)]
    pairs = list(zip(*sides, strict=True))
    pairs += [(a.upper(), b) for a, b in pairs[:200]]
    pairs += [(f" {a.replace(' ', '  ')}", b) for a, b in pairs[200:300]]
    pairs += [(b, a) for a, b in pairs[300:350]]
    return pairs


def write(path: Path, pairs: Pairs) -> Path:
    path.write_text("".join(f"{a}\t{b}\n" for a, b in pairs), encoding="utf-8", newline="\n")
    return path


def run(
    folder: Path, *texts: Pairs, options: PrepareSettings = PLAIN, name: str = "s.h5", **arguments: Any
) -> tuple[PairStore, PrepareReport]:
    paths = [write(folder / f"{i}.tsv", pairs) for i, pairs in enumerate(texts)]
    sources = [parse_source(str(path), options.languages) for path in paths]
    report = prepare(sources, folder / name, options, **arguments)
    return PairStore(folder / name), report


def stored(store: PairStore) -> Pairs:
    rows = np.arange(len(store))
    return list(zip(store.texts("a", rows), store.texts("b", rows), strict=True))


def reference(pairs: Pairs) -> tuple[set[tuple[str, str]], Counter[DropReason]]:
    """Filter and deduplicate in memory, with the default limits."""
    kept: set[tuple[str, str]] = set()
    dropped: Counter[DropReason] = Counter()
    for a, b in pairs:
        pair = " ".join(a.lower().split()), " ".join(b.lower().split())
        if not all(pair):
            dropped[DropReason.EMPTY] += 1
        elif min(len(side.split()) for side in pair) < 3:
            dropped[DropReason.SHORT] += 1
        elif pair in kept:
            dropped[DropReason.DUPLICATE] += 1
        else:
            kept.add(pair)
    return kept, dropped


def test_the_store_holds_what_the_reference_keeps(tmp_path: Path) -> None:
    kept, dropped = reference(corpus())
    store, report = run(tmp_path, corpus())
    pairs = stored(store)
    assert len(pairs) == len(set(pairs))
    assert set(pairs) == kept
    assert +report.total.dropped == dropped
    assert min(dropped.values()) > 40  # the corpus tries every rule


def test_numbers_add_up_per_text_and_are_stored(tmp_path: Path) -> None:
    first, second = corpus()[:900], [*corpus()[500:], ("bad\0 row here", "x y z")]
    store, report = run(tmp_path, first, second)
    for source in [*report.sources, report.total]:
        assert source.rows == source.kept + source.dropped.total()
    assert [source.rows for source in report.sources] == [len(first), len(second)]
    assert report.sources[0].kept == len(reference(first)[0])  # a pair of both texts stays with the first
    assert report.total.kept == len(store) == len(reference(first + second[:-1])[0])
    assert report.sources[1].dropped[DropReason.NUL] == 1
    assert store.settings["report"] == report.as_json()
    assert report.pieces == tuple(len(store.take(side, np.arange(len(store)))[0]) for side in "ab")
    table = report.table().split("\n")
    assert table[0].split()[:2] == ["rows", "kept"]
    assert [line.split()[0] for line in table[1:4]] == [f"{len(t):,}" for t in (first, second, first + second)]
    assert f"{report.vocabulary_size:,} pieces in the vocabulary" in table


def test_workers_change_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("st_paragram.data.prepare_rows._BATCH_PAIRS", 100)  # many tasks, to come back in order
    monkeypatch.setattr("st_paragram.data.prepare_encode._TASK_BYTES", 4000)
    run(tmp_path, corpus(), name="one.h5")
    run(tmp_path, corpus(), name="two.h5", options=dataclasses.replace(PLAIN, workers=2))
    assert (tmp_path / "one.h5").read_bytes() == (tmp_path / "two.h5").read_bytes()


def test_the_order_depends_on_the_seed_alone(tmp_path: Path) -> None:
    pairs = corpus()
    again = random.Random(1).sample(pairs, len(pairs))
    orders = [
        stored(run(tmp_path, text, options=dataclasses.replace(PLAIN, seed=seed), name=f"{i}.h5")[0])
        for i, (text, seed) in enumerate([(pairs, 0), (again, 0), (pairs, 1)])
    ]
    assert orders[0] == orders[1]
    assert orders[0] != orders[2]
    assert set(orders[0]) == set(orders[2])
    position = {pair: i for i, pair in enumerate(orders[0])}
    correlation = np.corrcoef([position[pair] for pair in orders[2]], range(len(orders[2])))[0, 1]
    assert abs(correlation) < 0.15  # about five standard deviations


def test_texts_of_every_form_make_the_same_store(tmp_path: Path) -> None:
    swapped = write(tmp_path / "swapped.tsv", [(b, a) for a, b in corpus()])
    sides = [tmp_path / "a.en", tmp_path / "a.es"]
    for side, path in enumerate(sides):
        path.write_text("".join(pair[side] + "\n" for pair in corpus()), newline="\n")
    expected = stored(run(tmp_path, corpus())[0])
    for source in (parse_source(f"es-en:{swapped}", EN_ES), moses_source(*map(str, sides), EN_ES)):
        prepare([source], tmp_path / "t.h5", PLAIN, overwrite=True)
        assert stored(PairStore(tmp_path / "t.h5")) == expected


@pytest.mark.parametrize(
    ("english", "other", "reason"),
    [
        ("a b c", "uno dos tres", None),
        ("a b", "uno dos tres", DropReason.SHORT),
        ("a b c", "uno dos", DropReason.SHORT),
        (" ".join("a" * 100), "x y z", None),
        (" ".join("a" * 101), "x y z", DropReason.LONG),
        ("a b c", " ".join("x" * 101), DropReason.LONG),
        ("a b c", "\u3000 ", DropReason.EMPTY),
        ("", "x y z", DropReason.EMPTY),
        ("a b c", "一只狗", None),
        ("a b c", "狗。", DropReason.SHORT),
        ("a b c", "狗" * 200, None),
        ("a b c", "狗 " * 200, None),
        ("a b c", "狗" * 201, DropReason.LONG),
        ("a b c", "สวัสดีครับ", None),
        ("a b c", "わたしは犬です", None),
        ("a b c", "안녕하세요 여러분", DropReason.SHORT),  # Korean puts spaces between words
        ("a b c", "привет мир", DropReason.SHORT),
    ],
)
def test_length_filter(english: str, other: str, reason: DropReason | None) -> None:
    assert LengthFilter().reject(english.split(), other.split()) is reason
    expected = reason if english != "a b c" or reason is DropReason.EMPTY else None
    assert LengthFilter(length_on=LengthOn.ENGLISH).reject(english.split(), other.split()) is expected


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("我用TensorFlow", True),
        ("I live in 北京 now", False),
        ("ภาษาไทย 2024", True),
        ("2024!", False),
        ("", False),
    ],
)
def test_the_script_is_decided_per_text(text: str, answer: bool) -> None:
    assert without_spaces(text.split()) is answer


SHORT_TEXT = st.text("ab ", min_size=1, max_size=3)


@given(st.lists(st.tuples(st.integers(0, 2), st.tuples(SHORT_TEXT, SHORT_TEXT)), min_size=1), st.integers(1, 400))
def test_external_sort_against_a_set(rows: list[tuple[int, tuple[str, str]]], max_bytes: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        coarse, fine = (Scatter(Path(folder) / name, buffer_bytes=size) for name, size in (("c", 1 << 20), ("f", 64)))
        for source, pair in rows:
            for scatter in (coarse, fine):
                scatter.add(RowFormat(seed=5).pack([pair], source))
        results = [[read_bucket(path) for path in paths] for paths in (coarse.finish(), fine.finish(max_bytes))]
    order, order_fine = ([pair for bucket in result for pair in bucket.pairs] for result in results)
    assert order == order_fine  # however finely the buckets are split
    assert sorted(order) == sorted({pair for _, pair in rows})
    kept = sum((bucket.kept for bucket in results[0]), Counter())
    lost = sum((bucket.duplicates for bucket in results[0]), Counter())
    first = {pair: min(source for source, other in rows if other == pair) for _, pair in rows}
    assert kept == Counter(first.values())
    assert kept + lost == Counter(source for source, _ in rows)


def test_long_sentences_are_cut_and_counted(tmp_path: Path) -> None:
    store, report = run(tmp_path, corpus(), options=dataclasses.replace(PLAIN, max_pieces=7))
    whole = store.vocabulary().encode([text for pair in reference(corpus())[0] for text in pair])[1]
    assert max(np.diff(store.take("a", np.arange(len(store)))[1])) == 7
    assert report.cut_sentences == (np.diff(whole) > 7).sum() > 0
    assert store.max_length == 7


def test_settings_are_stored_but_not_the_workers(tmp_path: Path) -> None:
    options = dataclasses.replace(PLAIN, length_on=LengthOn.ENGLISH, seed=3)
    store, _ = run(tmp_path, corpus(), options=options)
    described = {name: value for name, value in store.settings.items() if name != "report"}
    assert described == options.as_json() | {"vocabulary_given": False}
    assert "workers" not in described
    assert (store.languages, store.seed, described["length_on"]) == (EN_ES, 3, "english")


def test_case_is_kept_on_demand(tmp_path: Path) -> None:
    store, report = run(tmp_path, corpus(), options=dataclasses.replace(PLAIN, lower_case=False))
    assert any(a.isupper() for a, _ in stored(store))
    assert report.total.kept > len(reference(corpus())[0])


def test_a_given_vocabulary_is_used(tmp_path: Path) -> None:
    vocabulary = run(tmp_path, corpus())[0].vocabulary()
    store, report = run(tmp_path, corpus(seed=1), name="t.h5", vocabulary=vocabulary)
    assert store.vocabulary().model_proto == vocabulary.model_proto
    assert report.vocabulary_size == len(vocabulary)
    other = Vocabulary(vocabulary.model_proto, lower_case=False)
    with pytest.raises(SettingsError, match="make them agree"):
        run(tmp_path, corpus(), name="u.h5", vocabulary=other)


def test_the_vocabulary_sees_the_first_pairs_of_the_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[str] = []

    def train(sentences: Iterator[str], **options: Any) -> bytes:
        seen.extend(sentences)
        return train_vocabulary(seen, **options)

    monkeypatch.setattr(prepare_encode, "train_vocabulary", train)
    pairs = stored(run(tmp_path, corpus(), options=dataclasses.replace(PLAIN, sample_pairs=200))[0])
    assert seen == [text for pair in pairs[:200] for text in pair]


def test_chinese_is_segmented(tmp_path: Path) -> None:
    pytest.importorskip("jieba")
    pairs = [(f"the dog likes tea {i}", f"小狗喜欢喝茶 {i}") for i in range(50)]
    options = PrepareSettings(("en", "zh"), segmentation=Segmentation.JIEBA, vocab_size=60)
    store, _ = run(tmp_path, pairs, options=options)
    assert store.segmentation is Segmentation.JIEBA
    assert any(text.startswith("小狗 喜欢") for text in store.texts("b", np.arange(3)))
    whole = store.vocabulary().encode([b for _, b in pairs])[0]
    assert sorted(store.take("b", np.arange(50))[0]) == sorted(whole)  # as the vocabulary segments at inference


@pytest.mark.parametrize(
    ("pairs", "message"),
    [
        ([("a", "b")] * 10, r"0 of 10 rows left \(dropped: 10 too short\)"),
        ([("a b c", "d e f")] * 10, r"1 of 10 rows left \(dropped: 9 duplicate\)"),
        ([("a b c", "d e f")], r"1 of 1 rows left \(dropped: none\)"),
    ],
)
def test_too_few_pairs_are_refused(pairs: Pairs, message: str, tmp_path: Path) -> None:
    with pytest.raises(TextError, match=r"0\.tsv: " + message):
        run(tmp_path, pairs, options=dataclasses.replace(PLAIN, vocab_size=50))
    assert [path.name for path in tmp_path.iterdir()] == ["0.tsv"]


@pytest.mark.parametrize("error", [KeyboardInterrupt, OSError("disk full"), ValueError("odd")])
def test_an_interrupted_run_leaves_nothing_behind(error: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run(tmp_path, corpus(seed=1))
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir() if path.suffix == ".h5"}

    def interrupt(buckets: Any, *rest: Any) -> Iterator[Any]:
        yield next(iter([list(buckets)]))
        raise error

    monkeypatch.setattr(prepare_encode, "_group", interrupt)
    with pytest.raises((KeyboardInterrupt, StoreError, ValueError)):
        run(tmp_path, corpus(), overwrite=True)
    assert {path.name for path in tmp_path.iterdir()} == {"0.tsv", *before}
    assert (tmp_path / "s.h5").read_bytes() == before["s.h5"]


@pytest.mark.parametrize("workers", [1, 2])
def test_a_bad_text_leaves_nothing_behind(workers: int, tmp_path: Path) -> None:
    write(tmp_path / "bad.tsv", [*corpus(), ("three\tcolumns", "here")])
    source = parse_source(str(tmp_path / "bad.tsv"), EN_ES)
    with pytest.raises(TextError, match=rf"bad.tsv: row {len(corpus()) + 1} has 3 columns"):
        prepare([source], tmp_path / "s.h5", dataclasses.replace(PLAIN, workers=workers))
    assert [path.name for path in tmp_path.iterdir()] == ["bad.tsv"]


def test_an_output_is_not_overwritten_unasked(tmp_path: Path) -> None:
    run(tmp_path, corpus())
    with pytest.raises(StoreError, match="exists already"):
        run(tmp_path, corpus())
    run(tmp_path, corpus(seed=1), overwrite=True)
    with pytest.raises(StoreError, match="is a folder"):
        run(tmp_path, corpus(), name=".")
    with pytest.raises(SettingsError, match="0 texts"):
        prepare([], tmp_path / "t.h5", PLAIN)


def test_the_cache_knows_texts_and_settings(tmp_path: Path) -> None:
    source = parse_source(str(write(tmp_path / "a.tsv", corpus())), EN_ES)
    folder = tmp_path / "cache"
    path = prepare_cached([source], PLAIN, folder)
    made = path.stat().st_mtime_ns
    assert prepare_cached([source], dataclasses.replace(PLAIN, workers=2), folder) == path
    assert path.stat().st_mtime_ns == made
    assert prepare_cached([source], dataclasses.replace(PLAIN, seed=1), folder) != path
    path.write_bytes(b"damaged")
    assert len(PairStore(prepare_cached([source], PLAIN, folder))) == len(reference(corpus())[0])
    os.utime(tmp_path / "a.tsv", (1, 1))
    assert prepare_cached([source], PLAIN, folder) != path
    assert len(list(folder.iterdir())) == 3
    with pytest.raises(TextError, match="not a regular file"):
        prepare_cached([parse_source("-", EN_ES)], PLAIN, folder)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"min_length": 0}, "min_length is 0; it must be at least 1"),
        ({"min_length": 5, "max_length": 4}, "max_length is 4; it must be at least 5"),
        ({"max_characters": 2}, "max_characters is 2"),
        ({"workers": 0}, "workers is 0"),
        ({"max_pieces": 0}, "max_pieces is 0"),
        ({"seed": -1}, "seed is -1"),
        ({"seed": 1 << 32}, "below"),
        ({"character_coverage": 0.5}, "character_coverage is 0.5"),
        ({"segmentation": "space"}, "segmentation is 'space'; it must be one of none, jieba"),
        ({"length_on": "spanish"}, "length_on is 'spanish'"),
        ({"languages": ("en", "")}, "languages is"),
    ],
)
def test_settings_are_checked(change: dict[str, Any], message: str) -> None:
    with pytest.raises(SettingsError) as caught:
        dataclasses.replace(PLAIN, **change)
    assert message in str(caught.value)


def test_coverage_follows_the_script() -> None:
    assert PrepareSettings(("en", "zh_cn")).coverage == PrepareSettings(("en", "ja")).coverage == 0.995
    assert PrepareSettings(("en", "ru")).coverage == 0.9995
    assert PrepareSettings(("en", "zh"), character_coverage=0.99).coverage == 0.99


@pytest.mark.parametrize("workers", [1, 2])
def test_ordered_map(workers: int) -> None:
    drawn = []
    items = (drawn.append(i) or float(i) for i in range(30))
    results = ordered_map(math.sqrt, items, workers)
    assert next(results) == 0
    assert len(drawn) <= 2 * workers  # items are read as they are needed
    assert list(results) == [math.sqrt(i) for i in range(1, 30)]
    with pytest.raises(ValueError, match=r"math domain error|nonnegative"):
        list(ordered_map(math.sqrt, [1.0, -1.0], workers))


def test_a_dead_worker_is_reported() -> None:
    with pytest.raises(ParagramError, match="use fewer workers"):
        list(ordered_map(os._exit, [1, 1], 2))
