"""The authored held-out sentences: complete, clean, in the right script, gradable in every language pair."""

from __future__ import annotations

import re
from collections import Counter
from importlib.resources import files

import pytest

from st_paragram.core.sample import HELD_OUT_LANGUAGES, graded_pairs, held_out_pairs, held_out_tuples, sample_pairs
from st_paragram.errors import SettingsError

SENTENCES = held_out_tuples()
LATIN = re.compile(r"[A-Za-zÀ-ÖØ-öø-ƿĞğİıŞş]")
SCRIPTS = {
    "ar": re.compile(r"[\u0621-\u064a]"),
    "ru": re.compile(r"[А-Яа-яЁё]"),
    "zh": re.compile(r"[\u4e00-\u9fff]"),
}


def _lines(name: str) -> list[str]:
    text = files("st_paragram.core.sample").joinpath(name).read_bytes().decode("utf-8")
    assert "\r" not in text and text.endswith("\n") and not text.startswith("\ufeff")
    return text[:-1].split("\n")


def test_table_is_large_enough_and_grouped() -> None:
    assert len(SENTENCES) >= 216
    ids = [line.split("\t")[0] for line in _lines("tuples.tsv")[1:]]
    assert len(set(ids)) == len(ids) and ids == [sentence.id for sentence in SENTENCES]
    assert all(re.fullmatch(r"[1-9][0-9]*[a-d]", identifier) for identifier in ids)
    groups = Counter(identifier[:-1] for identifier in ids)
    assert len(groups) >= 70 and set(groups.values()) <= {3, 4}
    assert all(f"{group}{letter}" in ids for group in groups for letter in "abc")


@pytest.mark.parametrize("language", HELD_OUT_LANGUAGES)
def test_cells_are_clean_distinct_and_in_their_script(language: str) -> None:
    texts = [sentence[language] for sentence in SENTENCES]
    assert all(text and text == text.strip() and "  " not in text for text in texts)
    assert all(text[-1] in ".?!؟。？！" for text in texts)
    bare = Counter(re.sub(r"\W", "", text.lower()) for text in texts)
    assert [text for text, count in bare.items() if count > 1] == []
    script = SCRIPTS.get(language, LATIN)
    for text in texts:
        assert script.search(text), text
        others = [other for other in (*SCRIPTS.values(), LATIN) if other is not script]
        assert not any(other.search(text) for other in others), text


def test_english_sentences_are_of_everyday_length() -> None:
    assert all(4 <= len(sentence["en"].split()) <= 20 for sentence in SENTENCES)


def test_spanish_and_chinese_punctuation() -> None:
    for sentence in SENTENCES:
        assert ("?" in sentence["es"]) == ("¿" in sentence["es"])
        assert ("!" in sentence["es"]) == ("¡" in sentence["es"])
        assert not re.search(r"[ ,?!.;]", sentence["zh"])
        assert not re.search(r"[?,;]", sentence["ar"])


def test_files_have_no_carriage_return_and_full_rows() -> None:
    assert {line.count("\t") for line in _lines("tuples.tsv")} == {len(HELD_OUT_LANGUAGES)}
    assert {line.count("\t") for line in _lines("graded.tsv")} == {2}


def test_graded_ids_exist_and_grades_spread() -> None:
    ids = {sentence.id for sentence in SENTENCES}
    rows = [line.split("\t") for line in _lines("graded.tsv")[1:]]
    assert len(rows) >= 100
    assert all(first in ids and second in ids and first != second for first, second, _ in rows)
    assert len({frozenset(row[:2]) for row in rows}) == len(rows)
    grades = [float(row[2]) for row in rows]
    assert all(0 <= grade <= 5 for grade in grades)
    assert all(Counter(int(grade + 0.5) for grade in grades)[whole] >= 15 for whole in range(6))


def test_unrelated_and_equal_pairs_follow_the_groups() -> None:
    for first, second, grade in (line.split("\t") for line in _lines("graded.tsv")[1:]):
        same_group = first[:-1] == second[:-1]
        assert same_group == (float(grade) > 0.5), (first, second, grade)
        paraphrase = same_group and {first[-1], second[-1]} == {"a", "b"}
        assert paraphrase == (float(grade) >= 4.8), (first, second, grade)


def test_pairs_and_grades_take_each_side_from_its_language() -> None:
    row = next(index for index, sentence in enumerate(SENTENCES) if sentence.id == "24a")
    assert held_out_pairs("en", "de")[row] == ("This soup needs more salt.", "Diese Suppe braucht mehr Salz.")
    assert held_out_pairs("de", "en")[row] == ("Diese Suppe braucht mehr Salz.", "This soup needs more salt.")
    first, second, grades = graded_pairs("en", "zh")
    assert len(first) == len(second) == len(grades)
    assert set(first) <= {sentence["en"] for sentence in SENTENCES}
    assert set(second) <= {sentence["zh"] for sentence in SENTENCES}
    assert graded_pairs("zh", "en")[2] == grades


@pytest.mark.parametrize("call", [lambda: held_out_pairs("en", "xx"), lambda: graded_pairs("xx", "en")])
def test_unknown_language_is_refused_by_name(call: object) -> None:
    assert callable(call)
    with pytest.raises(SettingsError, match=r"'xx'.*en, ar, de, es, fr, ru, tr, zh"):
        call()


def test_texts_cannot_be_changed() -> None:
    with pytest.raises(TypeError):
        SENTENCES[0].texts["en"] = "other"  # type: ignore[index]


@pytest.mark.parametrize("language", [code for code in HELD_OUT_LANGUAGES if code != "en"])
def test_the_phrase_grammar_never_makes_a_held_out_sentence(language):
    held_out = {text for sentence in held_out_tuples() for text in sentence.texts.values()}
    assert not any(held_out & set(pair) for pair in sample_pairs(language, 3000))
