"""Two sentences through a model: their cosine, and what the parts of each contribute to it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from st_paragram.core.encoding.encoder import Encoder
from st_paragram.core.encoding.models import TextEncoder
from st_paragram.errors import TextError
from st_paragram.tools.cleaning.unsegmented_scripts import UNSEGMENTED
from st_paragram.tools.demo_page.contributions import Floats, cosine, left_out_contributions, piece_contributions
from st_paragram.tools.demo_page.models import readers

#: Words of a sentence of which each is left out in turn: so many texts the model must read.
MOST_WORDS = 100
_BEGINNING = "\u2581"  # where sentencepiece has a word begin
_WORD = re.compile(rf"[{UNSEGMENTED}]|[^\s{UNSEGMENTED}]+")
_LETTER = re.compile(rf"[^\W{UNSEGMENTED}]")  # or a digit, of scripts with spaces between words


@dataclass(frozen=True)
class Part:
    """A piece or a word of a sentence.

    Attributes:
        text: as it is shown.
        contribution: to the cosine.
    """

    text: str
    contribution: float


@dataclass(frozen=True)
class Comparison:
    """What there is to tell of two sentences.

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


def compare(model: TextEncoder, first: str, second: str) -> Comparison:
    """Compare two sentences.

    Raises:
        TextError: a sentence has too many words for a model that reads it once for each.
        EvaluationError: the model gives a sentence no direction.
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
