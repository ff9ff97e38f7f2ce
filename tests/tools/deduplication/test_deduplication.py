"""Which rows go: a plain reference that compares all rows with all, the meaning of settings, and what is promised."""

from __future__ import annotations

import random
import re
from itertools import count
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from st_paragram.errors import SettingsError
from st_paragram.tools.cleaning.text import normalized_key
from st_paragram.tools.deduplication.dedupe import deduplicate
from st_paragram.tools.deduplication.settings import DeduplicationSettings

ONE_OF = {"both": ((0, 1),), "either": ((0,), (1,)), "first": ((0,),), "second": ((1,),)}
numbers = count()


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    return tmp_path_factory.mktemp("dedupe")


def find(place, rows, settings, **more):
    """Deduplicate rows of one or two texts."""
    folder = place / str(next(numbers))
    folder.mkdir()
    (folder / "rows").write_text("".join("\t".join(row) + "\n" for row in rows), encoding="utf-8", newline="\n")
    return deduplicate([str(folder / "rows")], len(rows[0]), settings, **more)


def ngrams(text, settings):
    parts = (
        re.findall(r"[\u4e00-\u9fff]|[^\W_\u4e00-\u9fff]+|\S", text.lower())
        if settings.unit == "word"
        else list(text.lower())
    )
    size = min(settings.ngram or (1 if settings.unit == "word" else 5), len(parts))
    return {tuple(parts[begin : begin + size]) for begin in range(len(parts) - size + 1)} if parts else set()


def duplicates(one, other, settings):
    """Whether two texts are duplicates, by the definitions."""
    if "exact" in settings.methods:
        keys = [normalized_key(text) or text.strip() for text in (one, other)]
        if one == other or (settings.normalize and keys[0] == keys[1]):
            return True
    if "minhash" in settings.methods:
        a, b = ngrams(one, settings), ngrams(other, settings)
        return bool(a & b) and len(a & b) >= settings.threshold * len(a | b)
    return False


def reference(rows, settings):
    """Which rows stay: each is compared with all that stay."""
    order, kept = range(len(rows)), list[int]()
    if settings.keep == "longest":
        order = sorted(order, key=lambda row: -sum(len(text.encode()) for text in rows[row]))
    views = ((0,),) if len(rows[0]) == 1 else ONE_OF[settings.sides]
    for row in order:
        if not any(
            all(duplicates(rows[row][side], rows[other][side], settings) for side in view)
            for other in kept
            for view in views
        ):
            kept.append(row)
    return sorted(kept)


TEXTS = st.lists(st.sampled_from(["a", "B", "b", "c.", "Dog", "dog!", "中文", "ß", " "]), max_size=6).map(" ".join)
OPTIONS = {
    "methods": st.sampled_from([("exact",), ("minhash",), ("exact", "minhash")]),
    "keep": st.sampled_from(["first", "longest"]),
    "normalize": st.booleans(),
    "threshold": st.sampled_from([0.5, 0.6, 0.8, 1.0]),
    "unit": st.sampled_from(["word", "character"]),
    "ngram": st.sampled_from([None, 1, 2, 3]),
    "sides": st.sampled_from(list(ONE_OF)),
}
ROWS = st.lists(st.tuples(TEXTS), min_size=1, max_size=12) | st.lists(st.tuples(TEXTS, TEXTS), min_size=1, max_size=9)


@given(ROWS, st.fixed_dictionaries(OPTIONS))
def test_a_text_against_the_reference(place, rows, options):
    settings = DeduplicationSettings(**options, bands=60)  # all rows with an n-gram in common are compared
    with patch.object(DeduplicationSettings, "minima", 1):
        found = find(place, rows, settings)
    assert np.flatnonzero(found.kept).tolist() == reference(rows, settings)


def variants(seed=0, count=300):
    """Sentences of which many differ from others by a word or two."""
    rng = random.Random(seed)
    vocabulary = ["".join(rng.choices("abcdefghij", k=5)) for _ in range(400)]
    lines = [rng.sample(vocabulary, 14) for _ in range(count)]
    for _ in range(count):
        line = list(rng.choice(lines))
        for _ in range(rng.randrange(3)):
            line[rng.randrange(14)] = rng.choice(vocabulary)
        lines.append(line)
    return [(" ".join(line),) for line in lines]


@pytest.mark.parametrize("keep", ["first", "longest"])
def test_a_removed_line_is_like_the_kept_line_that_is_named(place, keep):
    rows, settings = variants(), DeduplicationSettings(keep=keep)
    found = find(place, rows, settings)
    assert 0.2 < 1 - found.kept.mean() < 0.5
    expected = reference(rows, settings)
    assert len(set(expected) ^ set(np.flatnonzero(found.kept).tolist())) <= 6  # one pair in a hundred is not compared
    for row in np.flatnonzero(~found.kept).tolist():
        other = int(found.kept_row[row])
        assert found.kept[other] and (other < row or keep == "longest")
        a, b = set(rows[row][0].split()), set(rows[other][0].split())
        assert max(found.similarities[row]) == pytest.approx(len(a & b) / len(a | b)) and len(a & b) >= 0.8 * len(a | b)


def test_no_chain_removes_a_line_that_is_unlike_all_that_stay(place):
    first = [f"w{number}" for number in range(20)]
    lines = [first, [*first[1:], "x1"], [*first[2:], "x1", "x2"], [*first[3:], "x1", "x2", "x3"]]
    found = find(place, [(" ".join(line),) for line in lines], DeduplicationSettings(threshold=0.9))
    assert found.kept_row.tolist() == [-1, 0, -1, 2]  # 19/21 of line 1; line 3 is like line 2 alone, which is gone


def test_pairs_at_the_threshold_are_found_with_the_promised_probability():
    for threshold in (0.3, 0.5, 0.8, 0.95):
        settings = DeduplicationSettings(threshold=threshold)
        assert 1 - (1 - threshold**settings.minima) ** settings.bands >= 0.99
        assert 1 - (1 - threshold ** (settings.minima + 1)) ** settings.bands < 0.99
    assert DeduplicationSettings().minima == 7


def test_reasons_name_the_sides(place):
    rows = [("One two three four five six.", "uno dos"), ("one two three four five SIX", "uno dos"), ("x", "uno dos")]
    found = find(place, rows, DeduplicationSettings())
    assert found.why(1) == "first normalized, second exact"
    assert found.counts() == {"exact": 0, "normalized": 1, "minhash": 0}
    found = find(place, rows, DeduplicationSettings(sides="either"))
    assert found.why(2) == "second exact"
    assert found.summary() == "1 of 3 pairs kept; removed: 1 exact, 1 normalized"


def test_settings_are_checked():
    for values, message in (
        ({"methods": ()}, "no deduplication method"),
        ({"threshold": 0}, "threshold is 0"),
        ({"ngram": 0}, "ngram is 0"),
        ({"unit": "byte"}, "unit is 'byte'"),
    ):
        with pytest.raises(SettingsError, match=message):
            DeduplicationSettings(**values)
