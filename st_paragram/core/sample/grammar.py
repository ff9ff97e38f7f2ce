"""The built-in phrase grammar: abstract sentences put into words in eight languages, offline.

One abstract sentence (see `structure`) is rendered in each language from `phrases/<language>.yaml`; the
header of `phrases/en.yaml` explains the format. Everything is deterministic in the seed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files
from itertools import islice
from typing import Any

import yaml

from st_paragram.core.sample.phrase import Phrase, Slots, parse_cell, parse_row
from st_paragram.core.sample.structure import STYLE_BITS, Sentence, load_structure
from st_paragram.errors import SettingsError

LANGUAGES = ("en", "ar", "de", "es", "fr", "ru", "tr", "zh")

_SPACE_BEFORE = re.compile(r" +([.,?!;:؟،])")


@dataclass(frozen=True)
class Grammar:
    """The phrases and frames of one language.

    Attributes:
        frames: frame id -> templates, the main one first.
        phrases: category -> id -> variants, the main one first.
        words: agreement class -> slots any template may use.
        no_subject: agreement class of a frame without subject.
        contractions: (pattern, replacement), applied in order to the filled template.
        capitals: letters whose capital is not `str.upper`.
        spaces: whether the language writes spaces.
    """

    language: str
    frames: Mapping[str, Sequence[str]]
    phrases: Mapping[str, Mapping[str, Sequence[Phrase]]]
    words: Mapping[str, Slots]
    no_subject: str
    contractions: Sequence[tuple[re.Pattern[str], str]]
    capitals: Mapping[str, str]
    spaces: bool

    @staticmethod
    @lru_cache(maxsize=len(LANGUAGES))
    def load(language: str) -> Grammar:
        """Read the grammar of `language`.

        Raises:
            SettingsError: the language is not one of `LANGUAGES`.
            TextError: a row of the file does not have the declared columns or classes.
        """
        if language not in LANGUAGES:
            raise SettingsError(f"no built-in sentences in {language!r}; use one of {', '.join(LANGUAGES)}")
        text = files(__package__).joinpath("phrases").joinpath(f"{language}.yaml").read_text(encoding="utf-8")
        return parse_grammar(language, yaml.load(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader)))

    def render(self, sentence: Sentence, style: int = 0, turn: int = 0) -> str:
        """Put an abstract sentence into words.

        Args:
            sentence: the abstract sentence.
            style: six bits a part pick the variant of that part; 0 takes the main ones.
            turn: added to each pick: another turn changes every part that has variants.
        """

        def pick(variants: Sequence[Any]) -> Any:  # noqa: ANN401
            nonlocal style
            number, style = style & ((1 << STYLE_BITS) - 1), style >> STYLE_BITS
            return variants[(number + turn) % len(variants)]

        template = pick(self.frames[sentence.frame])
        chosen = [(role, pick(self.phrases[role.rstrip("2")][name])) for role, name in sentence.parts]
        heads = {role[-1] == "2": phrase.agreement for role, phrase in chosen if phrase.agreement}
        first = heads.get(False, self.no_subject)
        slots = dict(self.words[first])
        for role, phrase in chosen:
            if role[-1] == "2":
                slots.update((name + "2", form) for name, form in phrase.slots[heads[True]].items())
            else:
                slots.update(phrase.slots[first])
        if True in heads:
            slots.update((name + "2", form) for name, form in self.words[heads[True]].items())
        return self._tidy(template.format_map(slots))

    def _tidy(self, text: str) -> str:
        text = (" " if self.spaces else "").join(text.split())
        text = _SPACE_BEFORE.sub(r"\1", text)
        for pattern, replacement in self.contractions:
            text = pattern.sub(replacement, text)
        first = next(position for position, letter in enumerate(text) if letter.isalpha())
        letter = text[first]
        return text[:first] + self.capitals.get(letter, letter.upper()) + text[first + 1 :]


def sample_pairs(language: str, count: int | None = None, seed: int = 0) -> Iterator[tuple[str, str]]:
    """Aligned sentences (English, other), no pair twice.

    For one seed the English side is the same, line by line, whatever the other language.

    Args:
        language: one of `LANGUAGES` but English.
        count: how many; None for all there are (millions).
        seed: decides the order and the choice among variants; a smaller count gives a prefix of a larger one.

    Raises:
        SettingsError: unknown language, or English.

    Example:
        >>> from st_paragram import sample_pairs
        >>> english, spanish = next(sample_pairs("es", 1))
    """
    if language == "en":
        raise SettingsError("pairs of English with English are paraphrases; use sample_paraphrases")
    english, other = Grammar.load("en"), Grammar.load(language)
    drawn = load_structure().draw(seed)
    return islice(((english.render(*item), other.render(*item)) for item in drawn), count)


def sample_paraphrases(count: int | None = None, seed: int = 0) -> Iterator[tuple[str, str]]:
    """Pairs of English sentences with one meaning, different in every part that has variants; no pair twice.

    Args:
        count: how many; None for all there are (millions).
        seed: as for `sample_pairs`.
    """
    english = Grammar.load("en")
    pairs = (
        (english.render(sentence, style), english.render(sentence, style, turn=1))
        for sentence, style in load_structure().draw(seed)
    )
    return islice((pair for pair in pairs if pair[0] != pair[1]), count)


def parse_grammar(language: str, raw: Mapping[str, Any]) -> Grammar:
    """Build a grammar from the contents of a language file.

    Raises:
        TextError: a row does not have the declared columns or classes.
    """
    classes = {name: frozenset(tags.split()) for name, tags in raw["classes"].items()}
    columns, derived = raw.get("columns", {}), raw.get("derived", {})
    phrases: dict[str, dict[str, list[Phrase]]] = {}
    for category in load_structure().categories:
        names = columns.get(category, category).split("|")
        for key, rows in raw.get(category, {}).items():
            where = f"phrases/{language}.yaml, {category} {key}"
            phrases.setdefault(category, {})[key] = [
                parse_row(row, names, derived.get(category, {}), classes, where) for row in _as_list(rows)
            ]
    where = f"phrases/{language}.yaml, words"
    words = {
        name: {
            slot: form
            for spec, cell in raw.get("words", {}).items()
            for slot, form in parse_cell(spec, cell, tags, where)
        }
        for name, tags in classes.items()
    }
    return Grammar(
        language,
        {key: _as_list(rows) for key, rows in raw["frame"].items()},
        phrases,
        words,
        raw["no_subject"],
        [(re.compile(a), b) for a, b in raw.get("contractions", [])],
        raw.get("capitals", {}),
        raw.get("spaces", True),
    )


def _as_list(rows: str | list[str]) -> list[str]:
    return [rows] if isinstance(rows, str) else rows
