"""The settings of a preparation, checked when they are made."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from enum import Enum
from typing import Any

from st_paragram.cleaning.config import Cleaning, only_length
from st_paragram.errors import SettingsError
from st_paragram.tokenizers.sentencepiece import Segmentation

_MANY_CHARACTERS = ("zh", "ja")


@dataclass(frozen=True)
class PrepareSettings:
    """How parallel text becomes a pair store; the defaults are those of the paper (EMNLP 2022, section 3).

    Attributes:
        languages: Codes of the first and the second side; the first is English by custom. Several on the second side
            have dashes between: ("en", "fr-es-de").
        cleaning: The filters, and what to do about repeated rows.
        lower_case: Lower-case the text.
        segmentation: Word segmentation of Chinese before sentencepiece.
        drop_invalid: Drop and count rows that are not UTF-8 or have a wrong number of columns instead of refusing
            the text.
        temperature: Balances languages: each gets a share of the pairs in proportion to its number of pairs to the
            power of 1 / temperature, by leaving rows out and by repeating rows. 1 leaves all as it is.
        vocab_size: Pieces to train; little text gives fewer.
        character_coverage: Share of characters the vocabulary must cover; None: 0.995 if one side is Chinese
            or Japanese, else 0.9995.
        sample_pairs: Pairs, drawn uniformly, that train the vocabulary. They take about 4 KB of memory each, most
            of what a preparation needs.
        max_sentence_bytes: Longer sentences are left out of the training of the vocabulary.
        vocab_threads: Threads that train it; another number gives slightly other pieces, so it is a setting of
            its own and no matter of how many processes there are.
        max_pieces: Sentences are cut at this many pieces.
        seed: Seed of the shuffle and of the vocabulary.
    """

    languages: tuple[str, str]
    cleaning: Cleaning = field(default_factory=only_length)
    lower_case: bool = True
    segmentation: Segmentation = Segmentation.NONE
    drop_invalid: bool = False
    temperature: float = 1.0
    vocab_size: int = 50_000
    character_coverage: float | None = None
    sample_pairs: int = 300_000
    max_sentence_bytes: int = 4192
    vocab_threads: int = 8
    max_pieces: int = 100
    seed: int = 0

    def __post_init__(self) -> None:
        """Check every setting.

        Raises:
            SettingsError: If a setting is out of its range; the message names it.
        """
        if len(self.languages) != 2 or not all(self.languages):
            raise SettingsError(f"languages is {self.languages!r}; give two codes, e.g. ('en', 'es')")
        try:
            object.__setattr__(self, "segmentation", Segmentation(self.segmentation))
        except ValueError as error:
            known = ", ".join(member.value for member in Segmentation)
            raise SettingsError(f"segmentation is {self.segmentation!r}; it must be one of {known}") from error
        least = {"vocab_size": 8, "sample_pairs": 1, "max_sentence_bytes": 16, "vocab_threads": 1, "max_pieces": 1}
        least |= {"seed": 0, "temperature": 1}
        for name, bound in least.items():
            if not getattr(self, name) >= bound:
                raise SettingsError(f"{name} is {getattr(self, name)}; it must be at least {bound}")
        if self.seed >= 1 << 32:
            raise SettingsError(f"seed is {self.seed}; it must be below 2**32")
        if not 0.9 <= self.coverage <= 1:
            raise SettingsError(f"character_coverage is {self.coverage}; it must be in 0.9..1")

    @property
    def coverage(self) -> float:
        """The character coverage in force."""
        if self.character_coverage is not None:
            return self.character_coverage
        codes = [code for side in self.languages for code in side.split("-")]
        return 0.995 if any(code.partition("_")[0] in _MANY_CHARACTERS for code in codes) else 0.9995

    def as_json(self) -> dict[str, Any]:
        """Return the settings, which all shape the content of a store, as JSON values."""
        values = {each.name: getattr(self, each.name) for each in fields(self)}
        values |= {"languages": list(self.languages), "character_coverage": self.coverage}
        values["cleaning"] = self.cleaning.as_json()
        return {name: value.value if isinstance(value, Enum) else value for name, value in values.items()}
