"""Embeddings of length 1, and one rule for texts in which a model knows no token.

Such a text is empty, or has only characters that the model drops or does not know: spaces,
invisible characters, another script. Signs and numbers do not make a text known that has letters.
Such a text has no similarity with any text, not even with an equal text. Its embedding is zeros, or
that of the mark for a space and of signs, and says nothing about it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from itertools import chain
from typing import Any, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from st_paragram.core.arrays import Integers, Mask, Vectors
from st_paragram.core.encoding.embed import list_of_texts
from st_paragram.core.encoding.models import TextEncoder
from st_paragram.core.tokenizers.base import (
    LETTERS,
    NO_TEXT,
    TokenCounts,
    Tokenizer,
    has_letter,
    kind_of,
)
from st_paragram.errors import ModelDirectoryError, SettingsError

# Texts without a known token: no character, and a character of private use
_WITHOUT_TOKEN = ["", "\ue000"]
_ASCII_LETTER = re.compile("[A-Za-z]")
_ROUNDING = 1e-6  # largest difference from 1 of the cosine of equal embeddings


class UnitEmbeddings(NamedTuple):
    """Embeddings of n texts.

    Attributes:
        vectors: Vectors of length 1, or of zeros for texts without a known token, float32 (n, D).
        known: Whether the model knows a token of each text, (n,).
    """

    vectors: Vectors
    known: Mask


def unit_embeddings(
    encoder: TextEncoder,
    texts: Sequence[str],
    method: str = "encode",
    **options: Any,
) -> UnitEmbeddings:
    """Embed texts as vectors of length 1.

    Args:
        encoder: Model.
        texts: The n texts.
        method: Method of the model: encode, encode_query or encode_document.
        options: Further options of the method. With `normalize_embeddings`, the model scales the
            vectors.

    Raises:
        ModelDirectoryError: An embedding has NaN or infinite values.
    """
    embeddings = _embed(encoder, texts, method, options)
    known = known_embeddings(encoder, texts, embeddings, method=method, **options)
    if options.get("normalize_embeddings"):
        _lengths(embeddings)
        return UnitEmbeddings(np.where(known[:, None], embeddings, np.float32(0)), known)
    return scaled(embeddings, known)


def scaled(embeddings: Vectors, known: Mask) -> UnitEmbeddings:
    """Scale embeddings, (n, D), to length 1; those of texts without a known token become zeros.

    Args:
        embeddings: Embeddings, (n, D).
        known: Whether the model knows a token of each text, (n,).
    """
    lengths = _lengths(embeddings)
    lengths[~known] = 1
    vectors = embeddings / lengths
    vectors[~known] = 0
    return UnitEmbeddings(vectors, known)


def known_embeddings(
    encoder: TextEncoder,
    texts: Sequence[str],
    embeddings: Vectors,
    *,
    method: str = "encode",
    **options: Any,
) -> Mask:
    """Return whether the model knows a token of each text, (n,), given embeddings of the texts.

    The tokenizer decides, if it is one of this package or of transformers. With another tokenizer,
    a text without a known token is recognized by its embedding.
    """
    has_direction = np.any(embeddings, axis=1)
    tokenizer = tokenizer_of(encoder, options.get("language"))
    if tokenizer is not None:
        return has_direction & known_to(tokenizer, texts)
    return has_direction & ~_are_alike(embeddings, unknown_embeddings(encoder, method, **options))


def known_texts(encoder: TextEncoder, texts: Sequence[str]) -> Mask:
    """Return whether a model knows a token of each text, (n,)."""
    tokenizer = tokenizer_of(encoder)
    if tokenizer is None:
        return unit_embeddings(encoder, texts).known
    return known_to(tokenizer, texts)


def count_tokens(encoder: TextEncoder, texts: Sequence[str], language: str) -> TokenCounts:
    """Count the tokens of texts in a language, and the tokens that a model does not know.

    Raises:
        SettingsError: The model has no tokenizer, or two, of this package or of transformers; or
            its two vocabularies are for other languages.
    """
    from st_paragram.core.tokenizers.bilingual import BilingualTokenizer

    tokenizer = tokenizer_of(encoder)
    if tokenizer is None:
        raise SettingsError(
            "the model has no single tokenizer whose unknown tokens can be counted; give another"
            " model"
        )
    if isinstance(tokenizer, BilingualTokenizer):
        tokenizer = tokenizer.in_language(language)
    if isinstance(tokenizer, Tokenizer):
        return tokenizer.count_tokens(texts)
    rows = tokenizer(list(texts), add_special_tokens=False, verbose=False)["input_ids"]
    ids = list(chain.from_iterable(rows))
    return TokenCounts(len(ids), ids.count(_unknown_id(tokenizer)))


def _unknown_id(tokenizer: Any) -> int | None:
    """Return the unknown id of a tokenizer of transformers; None if it knows all text."""
    if tokenizer.unk_token_id is not None or not tokenizer.is_fast:
        return cast("int | None", tokenizer.unk_token_id)
    # this package's transformers have one without declaring it
    model = json.loads(tokenizer.backend_tokenizer.to_str())["model"]
    return cast("int | None", model.get("unk_id"))


def known_to(tokenizer: Any, texts: Sequence[str]) -> Mask:
    """Return whether a tokenizer knows a token of each text, other than a space, (n,).

    In a text with letters, it must be a token with a letter: a full stop or a number says little
    about a sentence.
    """
    if not getattr(tokenizer, "reads_ascii", False):
        return _tokenized_known(tokenizer, texts)
    # most texts have an ASCII letter
    known = np.array([_ASCII_LETTER.search(text) is not None for text in texts], bool)
    rest = np.flatnonzero(~known)
    if len(rest):
        known[rest] = _tokenized_known(tokenizer, [texts[number] for number in rest.tolist()])
    return known


def _tokenized_known(tokenizer: Any, texts: Sequence[str]) -> Mask:
    """Do what `known_to` does, for any tokenizer."""
    if not len(texts):
        return np.zeros(0, bool)
    if isinstance(tokenizer, Tokenizer):
        ids, offsets = tokenizer.encode(list(texts))
        kinds = tokenizer.kinds_of(ids)
    else:
        kinds, offsets = _kinds_of_transformers(tokenizer, texts)
    known = _is_any(kinds == LETTERS, offsets)
    without_letter = _is_any(kinds != NO_TEXT, offsets) & ~known
    for number in np.flatnonzero(without_letter).tolist():
        known[number] = not has_letter(texts[number])
    return known


def _kinds_of_transformers(
    tokenizer: Any, texts: Sequence[str]
) -> tuple[NDArray[np.uint8], Integers]:
    """Return the kinds of tokens of a tokenizer of transformers, and the offsets of texts."""
    rows = tokenizer(list(texts), add_special_tokens=False, verbose=False)["input_ids"]
    unknown_rows = tokenizer(_WITHOUT_TOKEN, add_special_tokens=False)["input_ids"]
    without_text = {*tokenizer.all_special_ids, *chain.from_iterable(unknown_rows)}
    ids = np.array(list(chain.from_iterable(rows)), np.int64)
    offsets = np.cumsum([0, *map(len, rows)])
    distinct, places = np.unique(ids, return_inverse=True)
    kinds = np.full(len(distinct), NO_TEXT, np.uint8)
    for place, number in enumerate(distinct.tolist()):
        if number not in without_text:
            kinds[place] = kind_of(tokenizer.convert_ids_to_tokens(number))
    return kinds[places.reshape(-1)], offsets


def _is_any(is_wanted: Mask, offsets: Integers) -> Mask:
    """Return whether any token of each text is wanted, (n,)."""
    counts = np.concatenate([[0], np.cumsum(is_wanted)])
    return np.asarray(counts[offsets[1:]] > counts[offsets[:-1]])


def tokenizer_of(encoder: TextEncoder, language: str | None = None) -> Any:
    """Return the model's tokenizer if it is one of this package or of transformers."""
    tokenizer: Any = getattr(encoder, "tokenizer", None)
    if not isinstance(tokenizer, Tokenizer) and not hasattr(tokenizer, "all_special_ids"):
        return None
    return tokenizer.in_language(language) if language else tokenizer


def unknown_embeddings(encoder: TextEncoder, method: str = "encode", **options: Any) -> Vectors:
    """Return the embeddings, of length 1, that a model gives to texts without a known token.

    They are (u, D) with u < 3; there is none if the model gives them zeros.
    """
    embeddings = _embed(encoder, _WITHOUT_TOKEN, method, options)
    lengths = np.linalg.norm(embeddings, axis=1, keepdims=True)
    has_direction = lengths[:, 0] > 0
    return embeddings[has_direction] / lengths[has_direction]


def _lengths(embeddings: Vectors) -> Vectors:
    """Return the lengths of embeddings, (n, 1); refuse NaN and infinite values."""
    lengths: Vectors = np.linalg.norm(embeddings, axis=1, keepdims=True)
    is_finite = np.isfinite(lengths[:, 0])
    if not is_finite.all():
        number = int(np.argmin(is_finite)) + 1
        raise ModelDirectoryError(
            f"embedding {number} of {len(embeddings)} has NaN or infinite values; the model is"
            " damaged or was not trained properly: use another model"
        )
    return lengths


def _are_alike(embeddings: Vectors, unknown: Vectors) -> Mask:
    """Return whether each embedding, (n, D), has the direction of one of the unknown, (u, D)."""
    # in one dimension, half of all embeddings have this direction
    if embeddings.shape[1] < 2 or not len(unknown):
        return np.zeros(len(embeddings), bool)
    lengths = np.linalg.norm(embeddings, axis=1, keepdims=True)
    with np.errstate(invalid="ignore"):  # NaN is refused later
        alike: Mask = (embeddings @ unknown.T > (1 - _ROUNDING) * lengths).any(axis=1)
    return alike


def _embed(
    encoder: TextEncoder, texts: Sequence[str], method: str, options: dict[str, Any]
) -> Vectors:
    encode = getattr(encoder, method)
    options = {"show_progress_bar": False, **options}
    embeddings = np.asarray(encode(list_of_texts(texts), **options), np.float32)
    if not len(texts):
        return embeddings.reshape(0, encoder.get_embedding_dimension() or 0)
    return embeddings
