"""The settings of a preparation, checked when they are made."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from enum import Enum
from typing import Any

from st_paragram.data.filters import LengthFilter, LengthOn
from st_paragram.data.vocabulary import Segmentation
from st_paragram.errors import SettingsError

_MANY_CHARACTERS = ("zh", "ja")


@dataclass(frozen=True)
class PrepareSettings:
    """How parallel text becomes a pair store; the defaults are those of the paper (EMNLP 2022, section 3).

    Attributes:
        languages: Codes of the first and the second side; the first is English by custom.
        lower_case: Lower-case the text.
        segmentation: Word segmentation of Chinese before sentencepiece.
        min_length: Least length of a side, in words (characters where a script has no spaces).
        max_length: Largest length of a side in words.
        max_characters: Largest length, in characters without spaces, of a side in a script without spaces.
        length_on: The sides whose length counts.
        drop_invalid: Drop and count rows that are not UTF-8 instead of refusing the text.
        vocab_size: Pieces to train; little text gives fewer.
        character_coverage: Share of characters the vocabulary must cover; None: 0.995 if one side is Chinese
            or Japanese, else 0.9995.
        sample_pairs: Pairs, drawn uniformly, that train the vocabulary. They take about 4 KB of memory each, most
            of what a preparation needs.
        max_sentence_bytes: Longer sentences are left out of the training of the vocabulary.
        vocab_threads: Threads that train it; another number gives slightly other pieces, so it is a setting of
            its own and no matter of `workers`.
        max_pieces: Sentences are cut at this many pieces.
        seed: Seed of the shuffle and of the vocabulary.
        workers: Processes; the store does not depend on them.
    """

    languages: tuple[str, str]
    lower_case: bool = True
    segmentation: Segmentation = Segmentation.NONE
    min_length: int = 3
    max_length: int = 100
    max_characters: int = 200
    length_on: LengthOn = LengthOn.BOTH
    drop_invalid: bool = False
    vocab_size: int = 50_000
    character_coverage: float | None = None
    sample_pairs: int = 500_000
    max_sentence_bytes: int = 4192
    vocab_threads: int = 8
    max_pieces: int = 100
    seed: int = 0
    workers: int = 1

    def __post_init__(self) -> None:
        """Check every setting.

        Raises:
            SettingsError: If a setting is out of its range; the message names it.
        """
        if len(self.languages) != 2 or not all(self.languages):
            raise SettingsError(f"languages is {self.languages!r}; give two codes, e.g. ('en', 'es')")
        _coerce(self, "segmentation", Segmentation)
        _coerce(self, "length_on", LengthOn)
        least = {
            "min_length": 1,
            "max_length": self.min_length,
            "max_characters": self.min_length,
            "workers": 1,
        }
        least |= {
            "vocab_size": 8,
            "sample_pairs": 1,
            "max_sentence_bytes": 16,
            "vocab_threads": 1,
            "max_pieces": 1,
            "seed": 0,
        }
        for name, bound in least.items():
            if getattr(self, name) < bound:
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
        return 0.995 if any(code.partition("_")[0] in _MANY_CHARACTERS for code in self.languages) else 0.9995

    @property
    def length_filter(self) -> LengthFilter:
        """The length filter these settings describe."""
        return LengthFilter(self.min_length, self.max_length, self.max_characters, self.length_on)

    def as_json(self) -> dict[str, Any]:
        """Return the settings that shape the content of a store, as JSON values."""
        settings = asdict(self) | {"languages": list(self.languages), "character_coverage": self.coverage}
        del settings["workers"]
        return {name: value.value if isinstance(value, Enum) else value for name, value in settings.items()}


def _coerce(settings: PrepareSettings, name: str, kind: type[Enum]) -> None:
    """Take the value of an enum for the enum itself, or refuse it by name."""
    value = getattr(settings, name)
    try:
        object.__setattr__(settings, name, kind(value))
    except ValueError as error:
        known = ", ".join(member.value for member in kind)
        raise SettingsError(f"{name} is {value!r}; it must be one of {known}") from error
