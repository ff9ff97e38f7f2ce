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
from typing import NamedTuple

import numpy as np
import regex
from numpy.typing import NDArray

from st_paragram.core.encoding.encoder import Encoder
from st_paragram.core.encoding.models import TextEncoder
from st_paragram.core.encoding.unit_embeddings import known_texts
from st_paragram.core.text.words import SPACED, UNIT, UNSPACED
from st_paragram.core.tokenizers.bilingual import BilingualTokenizer
from st_paragram.errors import EvaluationError, TextError, short

Floats = NDArray[np.float64]

#: Maximum words of a sentence; each is left out in turn, and the model embeds as many texts.
MAX_WORDS = 100
# What is left out at a time: a character of a script without spaces, with its marks, or what is
# between spaces.
_WORD = regex.compile(rf"{UNIT}|[^\s{UNSPACED}]+", regex.VERSION1)
_SPACED_LETTER = regex.compile(SPACED, regex.VERSION1)  # or a digit


class Part(NamedTuple):
    """A piece or a word of a sentence in readable form, and its contribution to the cosine."""

    text: str
    contribution: float


@dataclass(frozen=True)
class Comparison:
    """A comparison of two sentences: the cosine of their embeddings, and the parts of each sentence
    in order.

    `exact`: the contributions of each sentence sum to the cosine; otherwise they come from leaving
    out words.
    """

    cosine: float
    first: tuple[Part, ...]
    second: tuple[Part, ...]
    exact: bool


def compare(model: TextEncoder, first: str, second: str) -> Comparison:
    """Compare two sentences; if each language has its own vocabulary, the first sentence is in the
    first language.

    Example:
        >>> import st_paragram
        >>> found = st_paragram.compare(st_paragram.Encoder("p-sp-mini"), "a house", "una casa")
        >>> found.cosine > 0.5
        True
    """
    for reader, text in zip(readers(model), (first, second), strict=True):
        if not known_texts(reader, [text]).all():
            raise TextError(
                f"the model knows no token in {short(text)}; use one of its languages or another"
                " model"
            )
    pairs = zip(readers(model), (first, second), strict=True)
    sides = [_pieces(one, text) for one, text in pairs if isinstance(one, Encoder)]
    if not sides:
        return _by_words(model, (first, second))
    (names, rows), (other_names, other_rows) = sides
    u, v = rows.mean(axis=0), other_rows.mean(axis=0)
    scale = _length(u) * _length(v)
    first_parts = map(Part, names, (rows @ v / len(rows) / scale).tolist())
    second_parts = map(Part, other_names, (other_rows @ u / len(other_rows) / scale).tolist())
    return Comparison(float(u @ v / scale), tuple(first_parts), tuple(second_parts), exact=True)


def languages_of(model: TextEncoder) -> tuple[str, ...]:
    """Return the two languages of an averaging model with separate vocabularies; empty for other
    models.
    """
    tokenizer = model.tokenizer if isinstance(model, Encoder) else None
    return tokenizer.languages if isinstance(tokenizer, BilingualTokenizer) else ()


def readers(model: TextEncoder) -> tuple[TextEncoder, TextEncoder]:
    """Return the encoders of a first and a second text, which differ if each language has its own
    vocabulary.
    """
    if isinstance(model, Encoder) and (languages := languages_of(model)):
        return model.in_language(languages[0]), model.in_language(languages[1])
    return model, model


def _pieces(encoder: Encoder, sentence: str) -> tuple[list[str], Floats]:
    """Return the pieces of a sentence in readable form, and their vectors, (n, D)."""
    prompt = encoder.prompts.get(encoder.default_prompt_name or "", "")
    ids, _ = encoder.tokenizer.encode([prompt + sentence])
    rows = encoder.model.table.rows(ids).astype(np.float64)
    return (
        _readable([encoder.tokenizer.piece(piece) for piece in ids.tolist()]),
        rows[:, : encoder.truncate_dim],
    )


def _readable(pieces: Sequence[str | None]) -> list[str]:
    """Make pieces readable: pieces that continue a word begin with three dots; None is an unknown
    piece.
    """
    shown, before = [], ""
    for piece in pieces:
        name = "(unknown)" if piece is None else piece.replace("\u2581", " ").strip() or "(space)"
        continues = (
            piece is not None and _SPACED_LETTER.match(piece) and _SPACED_LETTER.search(before[-1:])
        )
        shown.append(f"…{name}" if continues else name)
        before = piece or ""
    return shown


def _by_words(model: TextEncoder, sentences: Sequence[str]) -> Comparison:
    u, v = np.asarray(model.encode(list(sentences), show_progress_bar=False), np.float64)
    u, v = u / _length(u), v / _length(v)
    sides = []
    for sentence, other in zip(sentences, (v, u), strict=True):
        words = list(_WORD.finditer(sentence))
        if len(words) > MAX_WORDS:
            raise TextError(
                f"a sentence has {len(words):,} words; with this kind of model, give at most"
                f" {MAX_WORDS}"
            )
        cosines = np.zeros(len(words))  # without any words left, the cosine counts as 0
        if len(words) > 1:
            rests = [
                " ".join((sentence[: word.start()] + sentence[word.end() :]).split())
                for word in words
            ]
            rows = np.asarray(model.encode(rests, show_progress_bar=False), np.float64)
            lengths = np.linalg.norm(rows, axis=1)
            np.divide(rows @ other, lengths, out=cosines, where=lengths > 0)
        sides.append(tuple(map(Part, [word.group() for word in words], (u @ v - cosines).tolist())))
    return Comparison(float(u @ v), sides[0], sides[1], False)


def _length(vector: Floats) -> float:
    length = float(np.linalg.norm(vector))
    if not (np.isfinite(length) and length > 0):
        raise EvaluationError(
            "the embedding of a sentence has no direction; try another sentence or model"
        )
    return length
