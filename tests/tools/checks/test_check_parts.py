"""The parts of the checks of parallel text, by cases computed by hand."""

from __future__ import annotations

import pytest

from st_paragram.tools.checks.alignment import Comparison, Shift
from st_paragram.tools.checks.appearance import Side
from st_paragram.tools.checks.frequent_words import Words, language_of, other_language
from st_paragram.tools.checks.sample import Sample, take_sample

LENGTHS = [1, 9, 3, 40, 2, 17, 5, 88, 12, 60]  # letters of the rows of a run, again and again


def rows(count: int) -> list[tuple[str, str]]:
    return [("a" * LENGTHS[(i * i + i // 7) % 10], "b" * LENGTHS[(i * i + i // 7) % 10]) for i in range(count)]


def test_shares_of_words() -> None:
    words = Words(["The cat's hat, and THE", "12 dogs"])  # the, cat's, hat, and, the, dogs
    assert (words.total, words.counts["the"], words.counts["cat's"]) == (6, 2, 1)
    assert words.share(frozenset(("the", "and", "or"))) == 3 / 6
    assert Words(["", "1 2"]).share(frozenset("a")) == 0
    assert Words(["我是的a b"]).counts == {"我": 1, "是": 1, "的": 1, "a": 1, "b": 1}
    assert set(Words(["में है, कि"]).counts) == {"में", "है", "कि"}


def test_words_that_both_languages_have_do_not_count() -> None:
    text = Words(["que en los"] * 3 + ["und"])  # 9 of 10 words are Spanish, and 1 is German
    spanish, german = language_of("es"), language_of("de")
    assert spanish and german and {"que", "en", "los"} < spanish.words and "und" in german.words
    assert other_language(text, "de", 0.9, 9) is spanish
    assert other_language(text, "de", 0.91, 9) is None
    assert other_language(text, "de", 0.9, 9.1) is None
    assert other_language(text, "es", 0.01, 0.1) is not None and other_language(text, "es", 0.01, 2) is None
    assert other_language(text, "xx", 0.01, 0.1) is None


@pytest.mark.parametrize(("letters", "expected"), [(500, "text in Greek letters"), (499, None)])
def test_letters_of_another_script(letters: int, expected: str | None) -> None:
    assert Side(["α" * letters, "12!?"]).looks_like("fi") == expected
    assert Side(["α" * letters]).looks_like("el") is None
    assert Side(["α" * letters + "a" * letters]).looks_like("fi") is None


def test_lengths_that_go_together() -> None:
    same = Comparison(take_sample(rows(300)), "length")
    assert str(same) == "correlation of their lengths 1.00" and not same.unrelated() and same.shift() is None


def test_a_shift_is_found_where_it_begins() -> None:
    pairs = rows(400)
    second = [other for _, other in pairs]
    moved = second[:200] + second[202:] + second[:2]
    sample = Sample(range(0, 400, 50), _runs(pairs, moved))
    assert Comparison(sample, "length").shift() == Shift(2, 201, 0.5)


def test_few_or_even_rows_say_nothing() -> None:
    mixed = [(one, other) for (one, _), (_, other) in zip(rows(199), rows(199)[::-1], strict=True)]
    assert not Comparison(take_sample(mixed), "length").unrelated()
    assert not Comparison(take_sample([("aaaa", "bbb")] * 500), "length").unrelated()
    assert Comparison(take_sample(mixed[:49]), "length").shift() is None


def _runs(pairs: list[tuple[str, str]], second: list[str]) -> list[list[tuple[str, str]]]:
    joined = [(one, other) for (one, _), other in zip(pairs, second, strict=True)]
    return [joined[start : start + 50] for start in range(0, len(joined), 50)]
