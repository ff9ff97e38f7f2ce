"""The built-in phrase grammar: each language file has the same ids, fills every template, and says enough."""

from __future__ import annotations

import random
import re
import time
from importlib.resources import files
from itertools import islice
from string import Formatter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from st_paragram.core.sample import (
    LANGUAGES,
    Grammar,
    grammar,
    parse_grammar,
    sample_pairs,
    sample_paraphrases,
    structure,
)
from st_paragram.core.sample.structure import load_structure
from st_paragram.errors import SettingsError, TextError

FOLDER = files(grammar.__package__)
PRESENT = [name for name in LANGUAGES if FOLDER.joinpath("phrases").joinpath(f"{name}.yaml").is_file()]
OTHERS = [name for name in PRESENT if name != "en"]
STRUCTURE = load_structure()
FOREIGN = {"ar": "[A-Za-zА-я一-鿿]", "ru": "[A-Za-z一-鿿ء-ي]", "zh": "[A-Za-zА-я \\s.,?ء-ي]"}
every_language = pytest.mark.parametrize("language", PRESENT)


def check_text(language: str, text: str) -> None:
    """What every rendered sentence must satisfy."""
    assert not re.search(r"[{}|/_]|\s\s|^\s|\s$|\n| [.,]|,[.?!]|None", text), text
    assert text[-1] in ".?؟。？", text
    first = next(letter for letter in text if letter.isalpha())
    assert not first.islower(), text
    if language in FOREIGN:
        assert not re.search(FOREIGN[language], text), text


@every_language
def test_language_has_exactly_the_ids_of_the_structure(language: str) -> None:
    loaded = Grammar.load(language)
    present = {"frame": loaded.frames} | dict(loaded.phrases)
    for category, ids in STRUCTURE.ids().items():
        assert sorted(present[category]) == sorted(ids), category
    assert len(loaded.frames) + sum(map(len, loaded.phrases.values())) >= 270


@every_language
def test_every_template_uses_every_part(language: str) -> None:
    loaded = Grammar.load(language)
    for frame, templates in loaded.frames.items():
        roles = [
            role
            for part in STRUCTURE.frames[frame]["parts"]
            for role in (["subject2", "predicate2"] if part == "second" else [part])
        ]
        for template in templates:
            fields = {field for _, field, _, _ in Formatter().parse(template) if field}
            for role in roles:
                rows = loaded.phrases[role.rstrip("2")].values()
                suffix = role[len(role.rstrip("2")) :]
                own = {slot + suffix for row in rows for slots in row[0].slots.values() for slot in slots}
                assert fields & own, f"{frame}: {template} does not use {role}"


@every_language
def test_every_cell_fills_for_every_agreement_class(language: str) -> None:
    loaded, rng = Grammar.load(language), random.Random(0)
    for cell in (cell for cells in STRUCTURE.cells.values() for cell in cells):
        by_class: dict[str | None, structure.Sentence] = {}
        subjects = cell.choices[cell.roles.index("subject")] if "subject" in cell.roles else [None]
        for subject in subjects:
            agreement = loaded.phrases["subject"][subject][0].agreement if subject else None
            if agreement in by_class:
                continue
            drawn = cell.sentence(rng.randrange(cell.size))
            parts = tuple((role, subject if role == "subject" else name) for role, name in drawn.parts)
            by_class[agreement] = structure.Sentence(cell.frame, parts)
        for turn, sentence in enumerate(by_class.values()):
            check_text(language, loaded.render(sentence, style=rng.getrandbits(48), turn=turn))


@every_language
def test_every_variant_of_every_phrase_fills(language: str) -> None:
    loaded = Grammar.load(language)
    seen = set()
    for sentence, style in islice(STRUCTURE.draw(1), 2500):
        for turn in range(3):
            text = loaded.render(sentence, style, turn)
            check_text(language, text)
            seen.add(text)
    assert len(seen) > 2450


@every_language
def test_no_two_ids_of_a_category_say_the_same(language: str) -> None:
    for category, rows in Grammar.load(language).phrases.items():
        owner: dict[str, str] = {}
        for name, variants in rows.items():
            for text in {repr(sorted(variant.slots.items())) for variant in variants}:
                assert owner.setdefault(text, name) == name, f"{category}: {owner[text]} and {name} are the same"


@pytest.mark.parametrize("language", OTHERS)
def test_pairs_are_many_distinct_and_aligned_with_english(language: str) -> None:
    pairs = list(sample_pairs(language, 6_000, seed=2))
    assert len({english for english, _ in pairs}) == 6_000
    assert len({other for _, other in pairs}) > 5_900  # a language may lack a distinction, rarely
    english = Grammar.load("en")
    expected = [english.render(*drawn) for drawn in islice(STRUCTURE.draw(2), 500)]
    assert [pair[0] for pair in pairs[:500]] == expected


def test_english_sentences_are_distinct_and_fast() -> None:
    english, start = Grammar.load("en"), time.perf_counter()
    texts = {english.render(sentence, style) for sentence, style in islice(STRUCTURE.draw(3), 30_000)}
    assert len(texts) == 30_000
    assert time.perf_counter() - start < 10  # about one second


def test_paraphrases_are_many_distinct_and_different() -> None:
    pairs = list(sample_paraphrases(6_000))
    assert len({frozenset(pair) for pair in pairs}) == 6_000
    assert all(first != second for first, second in pairs)


def test_draw_is_decided_by_the_seed_and_prefix_stable() -> None:
    first = list(sample_paraphrases(300, seed=5))
    assert first == list(sample_paraphrases(300, seed=5))
    assert first[:100] == list(sample_paraphrases(100, seed=5))
    assert first != list(sample_paraphrases(300, seed=6))
    assert list(sample_paraphrases(0)) == []


def test_drawn_sentences_respect_the_tags() -> None:
    tags = STRUCTURE.categories
    frames = set()
    for sentence, _ in islice(STRUCTURE.draw(4), 10_000):
        parts, spec = dict(sentence.parts), STRUCTURE.frames[sentence.frame]
        frames.add(sentence.frame)
        if "predicate" in parts:
            who, where, tenses = tags["predicate"][parts["predicate"]][:3]
            assert spec["tense"] in tenses
            assert "subject" not in parts or tags["subject"][parts["subject"]][0] & who
            assert "place" not in parts or tags["place"][parts["place"]][0] & where
        if "time" in parts:
            assert spec.get("time", spec.get("tense")) in tags["time"][parts["time"]][0]
        assert parts.get("predicate", 0) != parts.get("predicate2", 1)
        assert parts.get("subject", 0) != parts.get("subject2", 1)
    assert frames == set(STRUCTURE.frames)


def test_every_phrase_is_drawn_sooner_or_later() -> None:
    sentences = [sentence for sentence, _ in islice(STRUCTURE.draw(0), 20_000)]
    drawn = {(role.rstrip("2"), name) for sentence in sentences for role, name in sentence.parts}
    wanted = {(category, name) for category, rows in STRUCTURE.categories.items() for name in rows}
    assert drawn == wanted


@given(st.integers(1, 3000), st.integers(0, 10**9))
def test_scattered_order_is_a_permutation(size: int, seed: int) -> None:
    assert sorted(structure._shuffled(size, random.Random(seed))) == list(range(size))


def test_small_structure_is_exhausted_without_repeats() -> None:
    frames = {"property": {"parts": ["thing", "property"]}, "there_is": {"parts": ["thing", "spot"]}}
    small = structure.Structure(STRUCTURE.categories, frames)
    drawn = [sentence for sentence, _ in small.draw(1)]
    cells = [cell for cells in small.cells.values() for cell in cells]
    assert len(drawn) == len(set(drawn)) == sum(cell.size for cell in cells) > 150


def test_a_row_is_inflected_by_the_class_of_its_subject() -> None:
    raw = {
        "classes": {"m": "sg m", "f": "sg f", "p": "pl p"},
        "no_subject": "m",
        "columns": {"subject": "class | subject", "predicate": "now[sg pl] | past[m f p] | rest"},
        "words": {"want[sg pl]": "хочет/хотят"},
        "derived": {"predicate": {"first[m f p]": "{past}/{past}/{past:m} они"}},
        "contractions": [["газету", "книгу"]],
        "capitals": {"д": "Ж"},
        "frame": {"now": "{subject} {now} {rest}, {want}.", "past": ["{subject} {past}  {rest} .", "{first}!"]},
        "subject": {"girl": "f | девочка", "children": "p | дети"},
        "predicate": {"read_newspaper": "читает/читают | читал/читала/читали | газету"},
    }
    toy = parse_grammar("ru", raw)

    def say(frame: str, subject: str, turn: int = 0) -> str:
        parts = (("subject", subject), ("predicate", "read_newspaper"))
        return toy.render(structure.Sentence(frame, parts), turn=turn)

    assert say("now", "girl") == "Жевочка читает книгу, хочет."
    assert say("now", "children") == "Жети читают книгу, хотят."
    assert say("past", "girl") == "Жевочка читала книгу."
    assert say("past", "children", turn=1) == "Читал они!"
    raw["predicate"] = {"read_newspaper": "читает | читал/читала"}
    with pytest.raises(TextError, match=r"read_newspaper.*2 forms.*past\[m f p\] takes 1 or 3"):
        parse_grammar("ru", raw)
    raw["predicate"] = {"read_newspaper": "a | b | c | d"}
    with pytest.raises(TextError, match="4 columns"):
        parse_grammar("ru", raw)


def test_unknown_language_and_english_pairs_are_refused() -> None:
    with pytest.raises(SettingsError, match=r"'it'.*en, ar, de"):
        Grammar.load("it")
    with pytest.raises(SettingsError, match="paraphrases"):
        sample_pairs("en", 1)


def test_source_is_small() -> None:
    texts = [FOLDER.joinpath("phrases").joinpath(f"{name}.yaml").read_bytes() for name in PRESENT]
    assert sum(map(len, texts)) < 600_000
    assert all(b"\r" not in text for text in texts)
