"""Words and letters of all scripts."""

import pytest

from st_paragram.core.text.words import has_two_letters, split_words


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Don't stop_now, 2020!", ["Don", "t", "stop", "now", "2020"]),
        ("राम हिंदी १५", ["राम", "हिंदी", "१५"]),
        ("ข้าว กิน", ["ข้", "า", "ว", "กิ", "น"]),
        ("ကား ເບິ່ງ", ["ကား", "ເ", "ບິ່", "ງ"]),
        ("ABC中文x 北京2020", ["ABC", "中", "文", "x", "北", "京", "2020"]),
        ("e\u0301te\u0301", ["e\u0301te\u0301"]),
        ("...", []),
    ],
)
def test_words(text, words):
    assert split_words(text) == words


def test_two_letters():
    assert (
        has_two_letters("a b")
        and has_two_letters("7, 8")
        and has_two_letters("ปี")
        and has_two_letters("की")
    )
    assert (
        not has_two_letters("\u0301\u0300")
        and not has_two_letters("a !")
        and not has_two_letters("")
        and not has_two_letters("__")
    )
