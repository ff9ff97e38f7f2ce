"""Sentences through a model: their cosine, what the parts of each contribute to it, and the nearest of a list.

The embedding of an averaging model is the mean u = (x_1 + ... + x_n) / n of the vectors of its pieces. So its cosine
with another embedding v is a sum over pieces,

    cos(u, v) = u . v / (|u| |v|) = sum_i c_i    with    c_i = x_i . v / (n |u| |v|),

and c_i is what piece i contributes: exactly, and below zero if it draws the sentences apart. In other models pieces
depend on each other and nothing of the kind holds; there the contribution of a word is by how much the cosine falls
when it is left out, and these differences have no sum that means anything.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from st_paragram.core.encoding.encoder import Encoder
from st_paragram.core.encoding.models import TextEncoder
from st_paragram.core.tokenizers.bilingual import BilingualTokenizer
from st_paragram.errors import EvaluationError, TextError
from st_paragram.tools.cleaning.unsegmented_scripts import UNSEGMENTED
from st_paragram.tools.neighbors.vectors import unit_rows

Floats = NDArray[np.float64]

#: Words of a sentence of which each is left out in turn: so many texts the model must read.
MOST_WORDS = 100
_BEGINNING = "\u2581"  # where sentencepiece has a word begin
_WORD = re.compile(rf"[{UNSEGMENTED}]|[^\s{UNSEGMENTED}]+")
_LETTER = re.compile(rf"[^\W{UNSEGMENTED}]")  # or a digit, of scripts with spaces between words


class Part(NamedTuple):
    """A piece or a word of a sentence, as it is shown, and its contribution to the cosine."""

    text: str
    contribution: float


@dataclass(frozen=True)
class Comparison:
    """The comparison of two sentences.

    Attributes:
        cosine: Of their embeddings.
        first: The parts of the first sentence, in order.
        second: Those of the second.
        exact: Whether the contributions of each sentence sum to the cosine; else they are of words left out.
    """

    cosine: float
    first: tuple[Part, ...]
    second: tuple[Part, ...]
    exact: bool


class Hit(NamedTuple):
    """A sentence that was found: its place in the list, from 1, what it says, and its cosine with the query."""

    line: int
    sentence: str
    cosine: float


def compare(model: TextEncoder, first: str, second: str) -> Comparison:
    """Compare two sentences.

    Raises:
        TextError: a sentence has too many words for a model that reads it once for each.
        EvaluationError: the model gives a sentence no direction.

    Example:
        >>> import st_paragram
        >>> found = st_paragram.compare(st_paragram.Encoder("p-sp-mini"), "the train is late", "el tren llega tarde")
        >>> found.cosine > 0.5
        True
    """
    pair = readers(model)
    encoders = [one for one in pair if isinstance(one, Encoder)]
    if len(encoders) == len(pair):
        return _by_pieces(encoders, (first, second))
    return _by_words(model, (first, second))


def cosine_of(model: TextEncoder, first: str, second: str) -> float:
    """The cosine of two sentences.

    Raises:
        EvaluationError: the model gives a sentence no direction.
    """
    one, other = _embed(model, [first, second])
    return cosine(one, other)


def nearest(model: TextEncoder, query: str, lines: Sequence[str], most: int) -> list[Hit]:
    """The nearest sentences, best first; of equally near ones the earlier.

    Args:
        model: any; one with a vocabulary of each of two languages reads the query in the first.
        query: a sentence.
        lines: sentences, at least one.
        most: how many are wanted; a shorter list gives all.

    Raises:
        MiningError: the model gives a sentence no direction.
    """
    first, second = readers(model)
    asked = unit_rows(first.encode([query], show_progress_bar=False), "the sentence")
    given = unit_rows(second.encode(list(lines), show_progress_bar=False), "the list")
    cosines = given.astype(np.float64) @ asked[0].astype(np.float64)
    order = np.argsort(-cosines.astype(np.float32), kind="stable")[:most]
    return [Hit(row + 1, lines[row], float(cosines[row])) for row in order.tolist()]


def languages_of(model: TextEncoder) -> tuple[str, str] | None:
    """The languages of an averaging model that has a vocabulary of each of two; None for all others."""
    if not isinstance(model, Encoder) or not isinstance(model.tokenizer, BilingualTokenizer):
        return None
    return cast("tuple[str, str]", model.tokenizer.languages)


def readers(model: TextEncoder) -> tuple[TextEncoder, TextEncoder]:
    """What reads the first text and what reads the second.

    They are the model itself but where it has a vocabulary of each of two languages: then the first text is read in
    the first of them and the second text in the second.
    """
    languages = languages_of(model)
    if languages is None or not isinstance(model, Encoder):
        return model, model
    return model.in_language(languages[0]), model.in_language(languages[1])


def cosine(first: Floats, second: Floats) -> float:
    """The cosine of two vectors, (D,) each.

    Raises:
        EvaluationError: one has no direction.
    """
    return float(first @ second / (_length(first) * _length(second)))


def piece_contributions(pieces: Floats, other: Floats) -> Floats:
    """What each piece contributes to the cosine of the mean of all pieces with another vector.

    Args:
        pieces: (n, D), n at least 1.
        other: (D,).

    Returns:
        (n,); their sum is the cosine.

    Raises:
        EvaluationError: the mean of the pieces or the other vector has no direction.
    """
    mean = pieces.mean(axis=0)
    found: Floats = pieces @ other / (len(pieces) * _length(mean) * _length(other))
    return found


def left_out_contributions(whole: Floats, without: Floats, other: Floats) -> Floats:
    """By how much the cosine of a sentence with another falls when each of its words is left out.

    Args:
        whole: (D,), the sentence.
        without: (n, D), the sentence without each of its n words; a row of zeros is a text of nothing, whose cosine
            counts as 0.
        other: (D,), the other sentence.

    Returns:
        (n,); a number below 0 is of a word without which the sentences are more alike.

    Raises:
        EvaluationError: the sentence or the other has no direction.
    """
    lengths = np.linalg.norm(without, axis=1)
    products = without @ other
    rest = np.divide(products, lengths * _length(other), out=np.zeros_like(products), where=lengths > 0)
    return cosine(whole, other) - rest


def _by_pieces(pair: Sequence[Encoder], sentences: Sequence[str]) -> Comparison:
    (names, rows), (other_names, other_rows) = map(_pieces, pair, sentences)
    mean, other = rows.mean(axis=0), other_rows.mean(axis=0)
    parts = _parts(names, piece_contributions(rows, other))
    others = _parts(other_names, piece_contributions(other_rows, mean))
    return Comparison(cosine(mean, other), parts, others, True)


def _pieces(encoder: Encoder, sentence: str) -> tuple[list[str], Floats]:
    """What a sentence's pieces are called, and their vectors, (n, D), of as many components as the model gives."""
    prompt = encoder.prompts.get(encoder.default_prompt_name or "", "")
    ids, _ = encoder.tokenizer.encode([prompt + sentence])
    rows = encoder.model.table.rows(ids).astype(np.float64)
    names = _shown([encoder.tokenizer.piece(one) for one in ids.tolist()])
    return names, rows[:, : encoder.truncate_dim]


def _shown(pieces: Sequence[str | None]) -> list[str]:
    """Pieces for readers: one that goes on with a word begins with three dots."""
    shown, before = [], ""
    for piece in pieces:
        name = "(unknown)" if piece is None else piece.replace(_BEGINNING, " ").strip() or "(space)"
        goes_on = piece is not None and _LETTER.match(piece) and _LETTER.search(before[-1:])
        shown.append(f"…{name}" if goes_on else name)
        before = piece or ""
    return shown


def _by_words(model: TextEncoder, sentences: Sequence[str]) -> Comparison:
    whole = _embed(model, sentences)
    sides = []
    for number, sentence in enumerate(sentences):
        words = [(found.start(), found.end()) for found in _WORD.finditer(sentence)]
        if len(words) > MOST_WORDS:
            seen = f"Sentence {number + 1} has {len(words):,} words, and with this kind of model the page takes"
            raise TextError(f"{seen} {MOST_WORDS}. Please shorten it.")
        rests = [" ".join((sentence[:start] + sentence[end:]).split()) for start, end in words]
        without = np.zeros((len(words), whole.shape[1]))
        if len(words) > 1:
            without = _embed(model, rests)
        changes = left_out_contributions(whole[number], without, whole[1 - number])
        sides.append(_parts([sentence[start:end] for start, end in words], changes))
    return Comparison(cosine(whole[0], whole[1]), sides[0], sides[1], False)


def _parts(names: Sequence[str], values: Floats) -> tuple[Part, ...]:
    return tuple(Part(name, value) for name, value in zip(names, values.tolist(), strict=True))


def _embed(model: TextEncoder, texts: Sequence[str]) -> Floats:
    return np.asarray(model.encode(list(texts), show_progress_bar=False), dtype=np.float64)


def _length(vector: Floats) -> float:
    length = float(np.linalg.norm(vector))
    if not (np.isfinite(length) and length > 0):
        raise EvaluationError("The model gives a sentence no direction. Please try another sentence or another model.")
    return length
