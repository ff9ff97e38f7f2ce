import re
from collections import Counter

import pytest

from st_paragram.core.sample import LANGUAGES, graded_pairs, held_out_pairs, sample_pairs
from st_paragram.errors import SettingsError

LATIN = re.compile(r"[A-Za-zÀ-ÖØ-öø-ƿĞğİıŞş]")
SCRIPTS = {
    "ar": re.compile(r"[ء-ي]"),
    "ru": re.compile(r"[А-Яа-яЁё]"),
    "zh": re.compile(r"[一-鿿]"),
}


def clean(text: str, language: str) -> bool:
    """Whether a sentence is one, in its script alone."""
    script = SCRIPTS.get(language, LATIN)
    others = {*SCRIPTS.values(), LATIN} - {script}
    whole = text == text.strip() and "  " not in text and text[-1] in ".?!؟。？！"
    return whole and bool(script.search(text)) and not any(other.search(text) for other in others)


@pytest.mark.parametrize("language", LANGUAGES)
def test_pairs(language: str) -> None:
    pairs = list(sample_pairs(language))
    assert len(pairs) == (9_617 if language == "en" else 10_000)
    assert (
        len({english for english, _ in pairs}) == len(pairs)
        and len({other for _, other in pairs}) > 9_500
    )
    assert all(
        english != other and clean(english, "en") and clean(other, language)
        for english, other in pairs
    )
    assert (
        list(sample_pairs(language, 100)) == pairs[:100] and list(sample_pairs(language, 0)) == []
    )
    if language != "en":
        assert [english for english, _ in pairs[:50]] == [
            english for english, _ in sample_pairs("tr", 50)
        ]
    held_out = {text for pair in held_out_pairs("en", language) for text in pair}
    assert not any(held_out & set(pair) for pair in pairs)


def test_the_first_pairs() -> None:
    english = "Tomorrow, the waiter will walk the dog in the mountains."
    assert next(sample_pairs("es")) == (
        english,
        "Mañana el camarero paseará al perro en las montañas.",
    )
    assert next(sample_pairs("zh"))[0] == english


@pytest.mark.parametrize(
    ("refused", "message"),
    [
        (
            lambda: sample_pairs("es", 10_001),
            "count is 10001; for en and es, give at most 10,000 built-in pairs",
        ),
        (
            lambda: sample_pairs("xx"),
            "no built-in sentences in 'xx'; choose one of en, ar, de, es, fr, ru, tr, zh",
        ),
    ],
)
def test_what_there_is_not_is_refused_in_one_line(refused: object, message: str) -> None:
    with pytest.raises(SettingsError, match=message):
        refused()  # type: ignore[operator]


@pytest.mark.parametrize("language", LANGUAGES)
def test_natural_sentences(language: str) -> None:
    pairs = held_out_pairs("en", language)
    assert len(set(pairs)) == 225 and all(clean(text, language) for _, text in pairs)
    first, second, grades = graded_pairs("en", language)
    assert (
        len(first) == len(second) == len(grades) == 140
        and grades == graded_pairs(language, "en")[2]
    )
    assert set(first) <= {english for english, _ in pairs} and set(second) <= {
        other for _, other in pairs
    }
    assert all(Counter(int(grade + 0.5) for grade in grades)[whole] >= 15 for whole in range(6))
