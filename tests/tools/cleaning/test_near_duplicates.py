"""Near duplicates: similarities by hand, keys against their probabilities, the rows kept against a plain reference."""

from __future__ import annotations

import dataclasses
import json
import random
import re
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from st_paragram.core.pair_store import PairStore
from st_paragram.core.text.parallel import parse_source
from st_paragram.errors import SettingsError
from st_paragram.tools.cleaning.config import Cleaning, parse_cleaning
from st_paragram.tools.cleaning.duplicates import Duplicates, Key
from st_paragram.tools.cleaning.near_duplicates import NearDuplicates
from st_paragram.tools.cleaning.word_hashes import words
from st_paragram.tools.preparation.pipeline import Sizes
from st_paragram.tools.preparation.prepare import PrepareWork, prepare
from st_paragram.tools.preparation.report import PrepareReport
from st_paragram.tools.preparation.settings import PrepareSettings
from st_paragram.tools.stages.executors import LocalExecutor

Pair = tuple[str, str]
SIDES = {Key.PAIR: (0, 1), Key.FIRST: (0,), Key.SECOND: (1,)}


def shingles(pair: Pair, near: NearDuplicates) -> set[tuple[object, ...]]:
    result = set()
    for side in SIDES[near.on]:
        found = words(pair[side].lower())
        result |= {(side, *found[i : i + near.shingle]) for i in range(len(found) - near.shingle + 1)}
    return result


def similarity(one: Pair, other: Pair, near: NearDuplicates) -> float:
    """The definition, with sets of tuples."""
    first, second = shingles(one, near), shingles(other, near)
    return len(first & second) / len(first | second) if first & second else 0.0


def plain_keep(group: list[Pair], near: NearDuplicates) -> list[bool]:
    kept: list[Pair] = []
    stays = []
    for pair in group:
        stays.append(sum(similarity(pair, other, near) >= near.threshold for other in kept) < near.copies)
        kept += [pair] * stays[-1]
    return stays


@pytest.mark.parametrize(
    ("first", "second", "threshold", "near"),
    [
        ("click the file menu now", "click the edit menu now", 4 / 6, True),
        ("click the file menu now", "Click the EDIT menu now", 4 / 6 + 1e-9, False),
        ("a b c d e f g h i j", "a b c d e f g h i x", 9 / 11, True),
        ("a b", "b a", 1.0, True),
        ("a b c", "d e f", 0.01, False),
        ("", "", 0.5, False),  # nothing in common
        ("...", "...!", 0.5, True),
    ],
)
def test_similarity_by_hand(first: str, second: str, threshold: float, near: bool) -> None:
    for on, pairs in ((Key.FIRST, [(first, "x y"), (second, "z")]), (Key.SECOND, [("x y", first), ("z", second)])):
        assert NearDuplicates(on=on, threshold=threshold).keep(pairs, [2]) == [True, not near]


def test_both_sides_together() -> None:
    pairs = [("a b c d", "w x y z"), ("a b c e", "w x y v")]  # 6 words of 10 in common, the sides told apart
    assert NearDuplicates(threshold=0.6).keep(pairs, [2]) == [True, False]
    assert NearDuplicates(threshold=0.61).keep(pairs, [2]) == [True, True]
    assert NearDuplicates(threshold=0.1).keep([("a b", "c d"), ("c d", "a b")], [2]) == [True, True]


def test_shingles_of_several_words_tell_the_order() -> None:
    pairs = [("dog bites man", ""), ("man bites dog", "")]
    assert NearDuplicates().keep(pairs, [2]) == [True, False]
    assert NearDuplicates(shingle=2, threshold=0.1).keep(pairs, [2]) == [True, True]
    pairs = [("a b c d e", ""), ("a b c x e", "")]  # ab bc cd de and ab bc cx xe
    assert NearDuplicates(shingle=2, threshold=2 / 6).keep(pairs, [2]) == [True, False]
    assert NearDuplicates(shingle=9, threshold=0.01).keep([("a b c", "d")] * 2, [2]) == [True, True]  # too short


def test_copies_of_a_family_and_groups() -> None:
    family = [(f"open the {name} menu of the window and then close it", "x") for name in "abcdef"]
    for copies in (1, 2, 5, 6):
        kept = NearDuplicates(copies=copies).keep(family, [6])
        assert kept == [True] * copies + [False] * (6 - copies)
    assert NearDuplicates().keep(family, [1, 3, 2]) == [True, True, False, False, True, False]
    assert NearDuplicates().keep([], []) == []


WORDS = st.lists(st.sampled_from(["a", "b", "c", "D", "d", "e.", "don't", "语", "f", "g"]), max_size=7).map(" ".join)


@given(
    st.lists(st.tuples(WORDS, WORDS), min_size=1, max_size=12),
    st.sampled_from(Key),
    st.sampled_from([0.2, 0.5, 0.75, 1.0]),
    st.integers(1, 3),
    st.integers(1, 2),
)
def test_kept_as_by_definition(pairs: list[Pair], on: Key, threshold: float, copies: int, shingle: int) -> None:
    near = NearDuplicates(on=on, threshold=threshold, copies=copies, shingle=shingle)
    assert near.keep(pairs, [len(pairs)]) == plain_keep(pairs, near)
    half = len(pairs) // 2
    expected = plain_keep(pairs[:half], near) + plain_keep(pairs[half:], near)
    assert near.keep(pairs, [half, len(pairs) - half]) == expected


@given(st.lists(st.tuples(st.text(max_size=20), st.text(max_size=20)), max_size=6), st.integers(0, 9))
def test_keys_depend_on_the_shingles_alone(pairs: list[Pair], band: int) -> None:
    near = NearDuplicates()
    keys = near.band_keys(pairs, band, 7).tolist()
    assert keys == [near.band_keys([pair], band, 7)[0] for pair in pairs]
    for one, key in zip(pairs, keys, strict=True):
        for other, another in zip(pairs, keys, strict=True):
            assert key == another or similarity(one, other, near) < 1


def test_keys_stay_the_same_from_version_to_version() -> None:
    pairs = [("Click the File menu.", "Klicken Sie auf das Menü."), ("", ""), ("你好吗", "hi")]
    keys = NearDuplicates().band_keys(pairs, 2, 7)
    assert [f"{key:016x}" for key in keys] == ["237faa309a8ea594", "4fb2458b41a4d44c", "0cfe22c150599b54"]
    others = [NearDuplicates().band_keys(pairs[::2], *how) for how in ((2, 7), (3, 7), (2, 8))]
    assert len(np.unique(np.concatenate(others))) == 6


@pytest.mark.parametrize("shared", [10, 15, 18, 19])
def test_keys_are_equal_with_the_probability_of_the_similarity(shared: int) -> None:
    rng = random.Random(shared)
    near = NearDuplicates(on="first", threshold=0.7, bands=4)
    trials = 3000
    ones, others = [], []
    for _ in range(trials):
        own = [f"w{number}" for number in rng.sample(range(10**6), 40 - shared)]
        common, rest = own[:shared], own[shared:]
        half = len(rest) // 2
        ones.append((" ".join(common + rest[:half]), ""))
        others.append((" ".join(common + rest[half:]), ""))
    expected = (shared / (40 - shared)) ** near.minima
    for band in (0, 3):
        equal = float((near.band_keys(ones, band, 1) == near.band_keys(others, band, 1)).mean())
        assert abs(equal - expected) < 4 * (expected * (1 - expected) / trials) ** 0.5 + 1e-9


@pytest.mark.parametrize(("threshold", "bands"), [(0.5, 6), (0.7, 6), (0.8, 6), (0.8, 12), (0.9, 6), (0.95, 1)])
def test_as_many_minimum_hashes_as_find_rows_at_the_threshold(threshold: float, bands: int) -> None:
    minima = NearDuplicates(threshold=threshold, bands=bands).minima

    def found(count: int) -> float:
        return 1 - (1 - threshold**count) ** bands

    assert found(minima) >= 0.85 > found(minima + 1)
    assert NearDuplicates(threshold=1).minima == 16 and NearDuplicates(threshold=0.01).minima == 1


def test_options() -> None:
    cleaning = parse_cleaning(["length", {"near_duplicates": {"threshold": 0.9, "on": "first"}}, "duplicates"], "x")
    assert cleaning.near_duplicates == NearDuplicates(on=Key.FIRST, threshold=0.9)
    assert parse_cleaning(json.loads(json.dumps(cleaning.as_json())), "y") == cleaning
    assert "near_duplicates" not in str(Cleaning().as_json())
    assert parse_cleaning(["near_duplicates"], "x").near_duplicates == NearDuplicates()
    for options, message in (
        ({"threshold": 0}, "entry 1: near_duplicates: threshold is 0; it must be greater than 0"),
        ({"copies": 0}, "copies is 0"),
        ({"on": ["pair"]}, "on is"),
        ({"limit": 3}, "near_duplicates has no option 'limit'; known are on, threshold, copies, shingle, bands"),
    ):
        with pytest.raises(SettingsError, match=re.escape(message)):
            parse_cleaning([{"near_duplicates": options}], "x")


# ---- in a preparation

PLAIN = PrepareSettings(("en", "es"), vocab_size=200, character_coverage=1.0)
SURE = NearDuplicates(threshold=0.5, bands=16)  # misses nothing that differs in one word of twelve


def manual(seed: int = 0, families: int = 30, size: int = 8) -> list[Pair]:
    """Families of sentences with one word of difference, and as many sentences that are like no other."""
    rng = random.Random(seed)
    vocabulary = ["".join(rng.choices("abcdefghijklmnop", k=rng.randint(2, 7))) for _ in range(900)]
    rows = []
    for _ in range(families):
        one, other = rng.choices(vocabulary, k=12), rng.choices(vocabulary, k=12)
        for _ in range(size):
            one[5], other[5] = rng.choices(vocabulary, k=2)
            rows.append((" ".join(one).capitalize(), " ".join(other)))
    for _ in range(families):
        rows.append((" ".join(rng.choices(vocabulary, k=12)), " ".join(rng.choices(vocabulary, k=12))))
    rng.shuffle(rows)
    return rows


def run(folder: Path, rows: list[Pair], near: NearDuplicates | None, name: str, **work: object) -> PrepareReport:
    text = folder / "text.tsv"
    text.write_text("".join(f"{a}\t{b}\n" for a, b in rows), encoding="utf-8")
    settings = dataclasses.replace(PLAIN, cleaning=Cleaning((), Duplicates(), near))
    source = parse_source(str(text), PLAIN.languages)
    return prepare([source], folder / name, settings, work=PrepareWork(**work)).report  # type: ignore[arg-type]


def stored(path: Path) -> list[Pair]:
    store = PairStore(path)
    return list(zip(store.texts("a", range(len(store))), store.texts("b", range(len(store))), strict=True))


def test_of_each_family_so_many_rows_stay(tmp_path: Path) -> None:
    rows = manual()
    for near, left in ((SURE, 60), (dataclasses.replace(SURE, copies=3), 120), (None, 270)):
        report = run(tmp_path, rows, near, f"{left}.h5", rejects=tmp_path / f"out{left}")
        assert report.total.kept == left and report.total.rows == 270
        assert report.total.dropped.get("near duplicate") == (270 - left if near else None)
        assert PairStore(tmp_path / f"{left}.h5").settings["report"] == report.as_json()
    dropped = (tmp_path / "out60" / "near-duplicate.tsv").read_text(encoding="utf-8").split("\n")[:-1]
    assert len(dropped) == 210 and {tuple(row.split("\t")) for row in dropped} < set(rows)  # in their original case


@pytest.mark.parametrize("on", ["pair", "first"])
def test_what_stays_has_no_near_rows_with_a_common_key_and_what_goes_was_near(tmp_path: Path, on: str) -> None:
    near = NearDuplicates(on=on, threshold=0.7, bands=3)
    rows = [(a.lower(), b) for a, b in manual(1, families=12, size=5)]
    run(tmp_path, rows, near, "s.h5")
    kept = stored(tmp_path / "s.h5")
    assert Counter(kept) - Counter(rows) == Counter()
    for band in range(near.bands):
        keys = near.band_keys(kept, band, PLAIN.seed)
        for key in np.unique(keys).tolist():
            group = [pair for pair, own in zip(kept, keys.tolist(), strict=True) if own == key]
            assert all(similarity(a, b, near) < 0.7 for n, a in enumerate(group) for b in group[:n])
    for gone in set(rows) - set(kept):
        assert any(similarity(gone, other, near) >= 0.7 for other in set(rows) - {gone})


def test_neither_workers_nor_sizes_nor_the_order_of_rows_change_anything(tmp_path: Path) -> None:
    rows = manual(2)
    run(tmp_path, rows, NearDuplicates(), "one.h5")
    sizes = Sizes(shard_rows=70, task_bytes=3000)
    run(tmp_path, rows[::-1], NearDuplicates(), "two.h5", executor=LocalExecutor(2), sizes=sizes)
    assert (tmp_path / "one.h5").read_bytes() == (tmp_path / "two.h5").read_bytes()


def test_near_rows_alone_can_be_dropped(tmp_path: Path) -> None:
    text = tmp_path / "text.tsv"
    text.write_text("".join(f"{a}\t{b}\n" for a, b in manual(3) * 2), encoding="utf-8")
    settings = dataclasses.replace(PLAIN, cleaning=Cleaning((), near_duplicates=SURE))
    report = prepare([parse_source(str(text), PLAIN.languages)], tmp_path / "s.h5", settings).report
    assert report.total.kept == 60 and dict(+report.total.dropped) == {"near duplicate": 480}
