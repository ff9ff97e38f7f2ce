"""What the page takes: sentences, lists, uploads and texts; and how it cuts and shows them."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from st_paragram.errors import TextError
from st_paragram.tools.demo_page import texts
from st_paragram.tools.demo_page.appearance import (
    HIGHLIGHT_TEXT,
    background,
    chips,
    escaped,
    message,
    number,
    signed,
    table,
)
from st_paragram.tools.demo_page.comparison import Part
from st_paragram.tools.demo_page.texts import line_sentences, read_upload, split_sentences


def test_a_sentence_loses_spaces_around_it_and_lone_surrogates():
    assert texts.checked_sentence(" a \n b\ud800 ", "sentence") == "a b?"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (None, "The query is empty. Please write one."),
        (" \n\t", "The query is empty. Please write one."),
        ("a" * 1001, "The query has 1,001 characters, and the page takes 1,000. Please shorten it."),
    ],
)
def test_sentences_that_are_refused(text, said):
    with pytest.raises(TextError, match=re.escape(said)):
        texts.checked_sentence(text, "query")


def test_lists_are_cut_at_line_feeds_alone():
    assert texts.checked_lines("a\r\n\n  b\u2028c \n") == ["a", "b c"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("\n \n", "The list is empty"),
        ("a\n" * 2001, "2,001 sentences, and the page takes 2,000"),
        ("я" * 600_000, "1,200,000 bytes, and the page takes 1,048,576"),
        ("a\n" + "b" * 1001, "The sentence 2 of the list has 1,001 characters"),
    ],
)
def test_lists_that_are_refused(text, said):
    with pytest.raises(TextError, match=said):
        texts.checked_lines(text)


def test_texts_that_are_refused():
    assert texts.checked_text(["a", "b"], "first") == ["a", "b"]
    with pytest.raises(TextError, match="The second text is empty"):
        texts.checked_text([], "second")
    with pytest.raises(TextError, match="301 sentences, and the page takes 300"):
        texts.checked_text(["a"] * 301, "first")


def test_an_upload_is_read_and_removed(tmp_path):
    file = tmp_path / "list.txt"
    file.write_bytes(b"\xef\xbb\xbfuno\r\n\n dos \n")
    assert read_upload(file) == "uno\ndos"
    assert not file.exists()


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "empty"),
        (b"a\nb\xff\n", "Line 2 of the file is not UTF-8"),
        (b"PK\0\1", "not plain text"),
        (b"a" * ((1 << 20) + 1), "larger than 1,048,576 bytes"),
    ],
)
def test_uploads_that_are_refused_are_removed(tmp_path, content, said):
    file = tmp_path / "list.txt"
    file.write_bytes(content)
    with pytest.raises(TextError, match=said):
        read_upload(file)
    assert not file.exists()
    with pytest.raises(TextError, match="upload it again"):
        read_upload(file)


@pytest.mark.parametrize(
    ("text", "sentences"),
    [
        ("One. Two? Three!\nFour", ["One.", "Two?", "Three!", "Four"]),
        ("It costs 3.14 at example.org.", ["It costs 3.14 at example.org."]),
        ('He said "no." Then he left.', ['He said "no."', "Then he left."]),
        ("今天很冷。你去吗？我不去。", ["今天很冷。", "你去吗？", "我不去。"]),
        ("متى يفتح المتحف؟ لا أعرف.", ["متى يفتح المتحف؟", "لا أعرف."]),
        (" \n\n", []),
    ],
)
def test_texts_are_cut_into_sentences(text, sentences):
    assert split_sentences(text) == sentences


@given(st.text(st.sampled_from("ab .!?。\"'\n)"), max_size=60))
def test_cutting_loses_nothing_but_spaces(text):
    for split in (split_sentences, line_sentences):
        found = split(text)
        assert "".join("".join(found).split()) == "".join(text.split())
        assert all(one and one == one.strip() for one in found)


def test_numbers_show_their_signs():
    assert [signed(0.1234), signed(-0.5), signed(-0.0004)] == ["+0.123", "−0.500", "0.000"]
    assert [number(0.5, 2), number(-0.5, 2)] == ["0.50", "−0.50"]


@given(st.text(max_size=30))
def test_no_text_becomes_markup_or_a_template(text):
    for shown in (message(text), table(text, [text], [[text]]), chips(text, [Part(text, 0.5)])):
        assert shown.count("<script") == 0
        assert not set("{}$`@") & set(shown)
    assert not set("<>\"'") & set(escaped(text))


def contrast(one: str, other: str) -> float:
    """Contrast of two colours, 1 to 21 (WCAG 2.2, "contrast ratio").

    Args:
        one: "#rrggbb".
        other: the same.
    """
    darker, lighter = sorted((_luminance(one), _luminance(other)))
    return (lighter + 0.05) / (darker + 0.05)


def _luminance(colour: str) -> float:
    """Relative luminance of an sRGB colour, 0 to 1."""
    channels = [int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]
    red, green, blue = (one / 12.92 if one <= 0.04045 else ((one + 0.055) / 1.055) ** 2.4 for one in channels)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def test_text_on_every_highlight_can_be_read():
    shown = [background(step / 50) for step in range(-60, 61)]
    assert min(contrast(colour, HIGHLIGHT_TEXT) for colour in shown) >= 4.5
    assert (shown[0], shown[60], shown[-1]) == ("#fb923c", "#f3f4f6", "#60a5fa")
    assert contrast("#000000", "#ffffff") == pytest.approx(21)
    assert contrast("#777777", "#ffffff") == pytest.approx(4.48, abs=0.01)
