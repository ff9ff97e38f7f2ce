"""Settings of a preparation. Nothing here needs torch."""

from __future__ import annotations

from dataclasses import field
from typing import Any, Literal

from pydantic import InstanceOf
from pydantic_core import to_jsonable_python

from st_paragram.core.languages import LANGUAGES, codes_of_sides
from st_paragram.core.settings import setting, settings
from st_paragram.core.tokenizers.bilingual import Sharing
from st_paragram.core.tokenizers.sentencepiece import Segmentation
from st_paragram.core.tokenizers.words import Splitter
from st_paragram.errors import SettingsError
from st_paragram.tools.cleaning.config import Cleaning, only_length

Tokens = Literal["sentencepiece", "word", "trigram"]
VocabSample = Literal["even", "rows"]

_OTHER_TOKENS = ("tokens", "word", "trigram")
# Settings that are not recorded in stores when they have these values.
_LATER = {
    "tokens": "sentencepiece",
    "sharing": "joint",
    "splitter": "regex",
    "vocab_sample": "rows",
}


@settings
class PrepareSettings:
    """How parallel text becomes a pair store.

    As in EMNLP 2022, text is lower-cased by default, and both languages share one vocabulary of
    sentencepiece.

    Attributes:
        languages: Codes of the first and the second side. Join several languages of a side with
            hyphens: ("en", "fr-es-de").
        cleaning: The filters, and the treatment of repeated rows.

    Examples:
        >>> from st_paragram import PrepareSettings
        >>> PrepareSettings(("en", "es"), vocab_size=8000).lower_case
        True
    """

    languages: tuple[str, str]
    cleaning: InstanceOf[Cleaning] = field(default_factory=only_length)
    lower_case: bool = setting(
        True, "lower-case the text", option="--keep-case", option_help="do not lower-case the text"
    )
    segmentation: Segmentation = setting(
        Segmentation.NONE, "word segmentation of Chinese before sentencepiece", option="--segment"
    )
    drop_invalid: bool = setting(
        False,
        "drop and count rows that are not UTF-8 or have a wrong number of columns, instead of"
        " refusing the text",
    )
    tokens: Tokens = setting(
        "sentencepiece", "tokens: sentencepiece tokens, words, or character trigrams"
    )
    sharing: Sharing = setting(
        Sharing.JOINT,
        "one vocabulary for both languages (joint), or one each: equal tokens share an embedding"
        " (string) or not (disjoint)",
    )
    splitter: Splitter = setting(
        Splitter.REGEX,
        "word splitter: a regular expression, or Moses with English rules for all languages"
        " (only st_paragram reads it)",
    )
    temperature: float = setting(
        1.0,
        "balance of several languages: each gets a share in proportion to its number of pairs to"
        " the power of 1 / temperature, by dropping or repeating rows; 1: no change",
        ge=1,
    )
    vocab_size: int | None = setting(
        None,
        "vocabulary size; default: 8,000 up to 50,000 pairs, 20,000 up to 1,000,000, above that"
        " 50,000 (as in the paper) or 12,000 per language if that is more; 200,000 for words or"
        " trigrams; smaller for little text",
        ge=8,
    )
    character_coverage: float | None = setting(
        None,
        "share of the text's characters that the vocabulary must cover; default: 0.9995, 0.9999"
        " with Chinese or Japanese, 0.99995 with more than two languages",
        ge=0.9,
        le=1,
        unused_with=_OTHER_TOKENS,
    )
    sample_pairs: int = setting(
        300_000, "random pairs for vocabulary training; 4 KB of memory per pair", ge=1
    )
    vocab_sample: VocabSample = setting(
        "even",
        "sample for a multilingual vocabulary: equal numbers of sentences per language (even), or"
        " first rows",
    )
    max_sentence_bytes: int = setting(
        4192,
        "maximum bytes of a sentence for vocabulary training",
        ge=16,
        unused_with=_OTHER_TOKENS,
    )
    vocab_threads: int = setting(
        8,
        "threads for vocabulary training; a different number gives slightly different tokens",
        ge=1,
        unused_with=_OTHER_TOKENS,
    )
    max_pieces: int = setting(
        100,
        "maximum tokens or words per sentence, or four times as many trigrams; longer sentences"
        " are cut",
        ge=1,
    )
    seed: int = setting(0, "seed of the shuffle and of the vocabulary", ge=0, lt=1 << 32)

    def __post_init__(self) -> None:
        """Check combinations of settings."""
        first, second = self.languages
        if not (first and second):
            raise SettingsError(
                f"languages is {self.languages!r}; give two codes, e.g. ('en', 'es')"
            )
        if self.sharing is not Sharing.JOINT and (first == second or self._is_multilingual):
            raise SettingsError(
                f"sharing is {self.sharing.value} for {first} and {second};"
                " separate vocabularies need exactly two languages; use joint"
            )
        if self.segmentation is not Segmentation.NONE:
            self._check_tokens("segmentation", self.segmentation.value, "sentencepiece")
        if self.splitter is not Splitter.REGEX:
            self._check_tokens("splitter", self.splitter.value, "word")

    def _check_tokens(self, name: str, value: str, kind: str) -> None:
        if self.tokens != kind:
            raise SettingsError(f"{name} is {value}, which needs tokens {kind}, not {self.tokens}")

    def pieces(self, pairs: int) -> int:
        """Return the vocabulary size for a number of pairs.

        It is smaller for little text, in which few pieces occur often enough.
        """
        if self.vocab_size is not None:
            return self.vocab_size
        if self.tokens != "sentencepiece":
            return 200_000
        if pairs <= 1_000_000:
            return 8_000 if pairs <= 50_000 else 20_000
        languages = {code.partition("_")[0] for code in codes_of_sides(self.languages)}
        return max(50_000, min(12_000 * len(languages), 200_000))

    @property
    def coverage(self) -> float:
        """The character coverage that applies."""
        if self.character_coverage is not None:
            return self.character_coverage
        # the script of one language among several is a small share of all characters
        if self._is_multilingual:
            return 0.99995
        for code in self.languages:
            language = LANGUAGES.get(code.partition("_")[0])
            if language is not None and language.many_characters:
                return 0.9999
        return 0.9995

    @property
    def even_sample(self) -> bool:
        """Whether the vocabulary is trained on equally many sentences of several languages."""
        is_joint = self._is_multilingual and self.sharing is Sharing.JOINT
        return is_joint and self.vocab_sample == "even"

    @property
    def _is_multilingual(self) -> bool:
        return len(codes_of_sides(self.languages)) > 2

    @property
    def max_tokens(self) -> int:
        """Maximum ids per sentence."""
        return self.max_pieces * (4 if self.tokens == "trigram" else 1)

    def as_json(self) -> dict[str, Any]:
        """Return the settings as JSON values; all of them affect the content of a store."""
        values: dict[str, Any] = dict(vars(self))
        values["cleaning"] = self.cleaning.as_json()
        values["character_coverage"] = self.coverage
        values["vocab_sample"] = "even" if self.even_sample else "rows"
        values = to_jsonable_python(values)
        for name, default in _LATER.items():
            if values[name] == default:
                del values[name]
        return values


@settings
class Scoring:
    """Which pairs to drop by their cosine, and how many others to list."""

    min_score: float = setting(0.2, "minimum cosine of a pair", ge=-1, le=1)
    count: int = setting(100, "pairs in --lowest", ge=1)
