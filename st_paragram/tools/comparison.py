"""The cosine of two sentences, and the contributions of their parts.

The embedding of an averaging model is the mean u = (x_1 + ... + x_n) / n of the vectors of its
pieces. So its cosine with another embedding v is a sum over pieces,

    cos(u, v) = u . v / (|u| |v|) = sum_i c_i    with    c_i = x_i . v / (n |u| |v|),

and c_i is the exact contribution of piece i. It is negative if the piece makes the sentences less
similar. In other models, pieces depend on each other. There the contribution of a word is the
amount by which the cosine falls when the word is left out, and the contributions do not sum to the
cosine.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, cast

import numpy as np
import regex

from st_paragram.core.arrays import Floats
from st_paragram.core.encoding.encoder import Encoder
from st_paragram.core.encoding.models import TextEncoder
from st_paragram.core.encoding.unit_embeddings import unit_embeddings
from st_paragram.core.text.words import SPACED, UNIT, UNSPACED
from st_paragram.core.tokenizers.bilingual import BilingualTokenizer
from st_paragram.errors import TextError, short

#: Maximum words of a sentence; each is left out in turn, and the model embeds as many texts.
MAX_WORDS = 100
# What is left out at a time: a character of a script without spaces, with its marks, or what is
# between spaces.
_WORD = regex.compile(rf"{UNIT}|[^\s{UNSPACED}]+", regex.VERSION1)
_SPACED_LETTER = regex.compile(SPACED, regex.VERSION1)  # or a digit


class Part(NamedTuple):
    """A token or a word of a sentence in readable form, and its contribution to the cosine."""

    text: str
    contribution: float


@dataclass(frozen=True)
class Comparison:
    """A comparison of two sentences.

    Attributes:
        cosine: Cosine of their embeddings.
        first: Parts of the first sentence, in order.
        second: Parts of the second sentence, in order.
        exact: The contributions of each sentence sum to the cosine; otherwise they come from
            leaving out words.
    """

    cosine: float
    first: tuple[Part, ...]
    second: tuple[Part, ...]
    exact: bool


def compare(model: TextEncoder, first: str, second: str) -> Comparison:
    """Compare two sentences.

    If each language has its own vocabulary, the first sentence is in the first language.

    Examples:
        >>> import st_paragram
        >>> result = st_paragram.compare(st_paragram.Encoder("p-sp-mini"), "a house", "una casa")
        >>> result.cosine > 0.5
        True
    """
    for reader, text in zip(readers(model), (first, second), strict=True):
        if not unit_embeddings(reader, [text]).known.all():
            raise TextError(
                f"the model knows no token in {short(text)}; use one of its languages or another"
                " model"
            )
    if isinstance(model, Encoder):
        return _by_pieces(model, first, second)
    return _by_words(model, first, second)


def languages_of(model: TextEncoder) -> tuple[str, ...]:
    """Return the two languages of a model with separate vocabularies; empty for other models."""
    if isinstance(model, Encoder) and isinstance(model.tokenizer, BilingualTokenizer):
        return model.tokenizer.languages
    return ()


def readers(model: TextEncoder) -> tuple[TextEncoder, TextEncoder]:
    """Return the encoders of a first and a second text.

    They differ if each language has its own vocabulary.
    """
    languages = languages_of(model)
    if not languages:
        return model, model
    encoder = cast("Encoder", model)
    return encoder.in_language(languages[0]), encoder.in_language(languages[1])


def _by_pieces(model: Encoder, first: str, second: str) -> Comparison:
    first_encoder, second_encoder = readers(model)
    first_pieces, first_rows = _pieces(first_encoder, first)
    second_pieces, second_rows = _pieces(second_encoder, second)
    u = first_rows.mean(axis=0)
    v = second_rows.mean(axis=0)
    scale = float(np.linalg.norm(u)) * float(np.linalg.norm(v))
    return Comparison(
        cosine=float(u @ v / scale),
        first=_parts(first_pieces, first_rows @ v / len(first_rows) / scale),
        second=_parts(second_pieces, second_rows @ u / len(second_rows) / scale),
        exact=True,
    )


def _pieces(encoder: Any, sentence: str) -> tuple[list[str], Floats]:
    """Return the tokens of a sentence in readable form, and their vectors, (n, D)."""
    prompt = encoder.prompts.get(encoder.default_prompt_name or "", "")
    ids, _ = encoder.tokenizer.encode([prompt + sentence])
    rows = encoder.model.table.rows(ids).astype(np.float64)
    pieces = [encoder.tokenizer.piece(piece) for piece in ids.tolist()]
    return _readable(pieces), rows[:, : encoder.truncate_dim]


def _readable(pieces: Sequence[str | None]) -> list[str]:
    """Make tokens readable: three dots begin a token that continues a word; None is unknown."""
    names = []
    before = ""  # last character before the token
    for piece in pieces:
        if piece is None:
            names.append("(unknown)")
            before = ""
            continue
        name = piece.replace("\u2581", " ").strip() or "(space)"
        if _SPACED_LETTER.match(piece) and _SPACED_LETTER.search(before):
            name = f"…{name}"
        names.append(name)
        before = piece[-1:]
    return names


def _by_words(model: TextEncoder, first: str, second: str) -> Comparison:
    u, v = _unit_vectors(model, [first, second])
    cosine = float(u @ v)
    return Comparison(
        cosine=cosine,
        first=_words_left_out(model, first, v, cosine),
        second=_words_left_out(model, second, u, cosine),
        exact=False,
    )


def _words_left_out(
    model: TextEncoder, sentence: str, vector: Floats, cosine: float
) -> tuple[Part, ...]:
    """Return how much the cosine with another sentence's vector falls without each word."""
    words = list(_WORD.finditer(sentence))
    if len(words) > MAX_WORDS:
        raise TextError(
            f"a sentence has {len(words):,} words; with this kind of model, give at most"
            f" {MAX_WORDS}"
        )
    cosines = np.zeros(len(words))  # without any words left, the cosine counts as 0
    if len(words) > 1:
        rests = []
        for word in words:
            rest = sentence[: word.start()] + sentence[word.end() :]
            rests.append(" ".join(rest.split()))
        cosines = _unit_vectors(model, rests) @ vector
    return _parts([word.group() for word in words], cosine - cosines)


def _unit_vectors(model: TextEncoder, texts: list[str]) -> Floats:
    return unit_embeddings(model, texts).vectors.astype(np.float64)


def _parts(names: Sequence[str], contributions: Floats) -> tuple[Part, ...]:
    return tuple(map(Part, names, contributions.tolist()))
