"""`make lint` refuses phrases that read like a translation; see docs/contributing.md, "English"."""

import pytest
from support.english import PATTERNS, findings, markdown_texts, phrases, python_texts


def test_nothing_is_found_in_what_is_clean():
    assert [str(each) for each in findings()] == []


@pytest.mark.parametrize(
    ("instead", "wrong"),
    [
        ("is not a ...", "the value is no number"),
        ("separate, or your", "towers of their own"),
        ("if you", "Whoever adds a reader"),
        ("says, shows, distinguishes", "the log tells which"),
        ("one ... per line", "a text with a sentence a line"),
        ("its effect", "two points are worth it"),
        ("next to, besides, other than", "languages beside English"),
        ("again, rebuild", "made anew"),
        ("is in, comes first", "what stands in the card"),
        ("only, except", "it holds nothing but spaces"),
        ("is available, is enough", "no tokenizer can be had"),
        ("fix", "defects were mended"),
        ("must, or the present", "how it shall be read"),
        ("built from", "the store is made of bitext"),
        ("US spelling", "the nearest neighbours"),
        ("maximum, minimum", "most texts of a request"),
    ],
)
def test_each_pattern_finds_its_phrase(instead, wrong):
    assert [name for _, name, _ in phrases(1, wrong)] == [instead]


def test_every_pattern_is_tried():
    marks = test_each_pattern_finds_its_phrase.pytestmark[0].args[1]
    assert {instead for instead, _ in marks} == set(PATTERNS)


@pytest.mark.parametrize(
    "right",
    [
        "there is no cache",
        "it is no longer needed",
        "row i stands for a text",
        "the answer stands in for it",
        "SHA-256 of a file",
        "two of a pair",
        "`neighbours`: the rows",
        "each query out of its own neighbors",
    ],
)
def test_other_senses_are_left_alone(right):
    assert list(phrases(1, right)) == []


def test_texts_of_python_and_markdown():
    source = '"""A docstring here."""\n\nx = f"a message of {x} words"  # a comment\n# and more\nKEY = "one"\n'
    assert list(python_texts(source)) == [
        (1, "A docstring here."),
        (3, "a message of X words"),
        (3, "a comment and more"),
    ]
    page = "# Title\n\n```python\nx = 'is no list'\n```\n\nA paragraph.\n"
    assert [(line, text.strip()) for line, text in markdown_texts(page)] == [(1, "# Title"), (7, "A paragraph.")]
