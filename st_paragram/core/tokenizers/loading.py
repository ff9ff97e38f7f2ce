"""Tokenizers from their stored kind, content and options."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from st_paragram.core.tokenizers.base import Tokenizer
from st_paragram.errors import SettingsError, refused, short

#: Kinds of tokenizers, as named in stores and model directories.
KINDS = ("sentencepiece", "word", "trigram", "bilingual")


def load_tokenizer(kind: str, content: bytes, options: Mapping[str, Any]) -> Tokenizer:
    """Create a tokenizer from its content and options; refuse those that do not fit."""
    if kind not in KINDS:
        raise SettingsError(
            f"no tokenizer of kind {kind!r}; this version knows {', '.join(KINDS)}; update"
            " st_paragram"
        )
    problem = f"cannot have the options {short(options)}"
    with refused(SettingsError, f"{kind} tokenizer", problem, "rebuild it"):
        for name in ("lower_case", "trigrams", "characters"):
            if not isinstance(options.get(name, True), bool):
                raise SettingsError(f"{name} is {short(options[name])}, not true or false")
        return _class_of(kind)(content, **options)


def _class_of(kind: str) -> Callable[..., Tokenizer]:
    """Import the class of a kind of tokenizers: few models need more than one."""
    if kind == "sentencepiece":
        from st_paragram.core.tokenizers.sentencepiece import SentencePieceTokenizer

        return SentencePieceTokenizer
    if kind == "word":
        from st_paragram.core.tokenizers.words import WordTokenizer

        return WordTokenizer
    if kind == "trigram":
        from st_paragram.core.tokenizers.character_trigrams import CharacterTrigramTokenizer

        return CharacterTrigramTokenizer
    from st_paragram.core.tokenizers.bilingual import BilingualTokenizer

    return BilingualTokenizer
