"""The vocabulary of a store, trained on its first rows, jointly or separately for each language."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice
from typing import Any

from st_paragram.core.text.parallel import TextSource
from st_paragram.core.tokenizers.base import Tokenizer
from st_paragram.core.tokenizers.bilingual import BilingualTokenizer, Sharing, both
from st_paragram.core.tokenizers.character_trigrams import train_trigrams
from st_paragram.core.tokenizers.loading import load_tokenizer
from st_paragram.core.tokenizers.sentencepiece import train_vocabulary
from st_paragram.core.tokenizers.string_lists import read_characters
from st_paragram.core.tokenizers.words import train_words
from st_paragram.errors import SettingsError, TextError
from st_paragram.tools.preparation.buckets import sources_of, texts_of
from st_paragram.tools.preparation.order import Order
from st_paragram.tools.preparation.settings import PrepareSettings


def train(order: Order, sources: Sequence[TextSource], settings: PrepareSettings) -> bytes:
    """Train a tokenizer on the first `sample_pairs` pairs, a uniform sample, and return its
    content.

    With several languages, it uses twice as many sentences as `sample_pairs`, the same number for
    each language (or all sentences if there are fewer), since languages with more sentences in the
    sample get more pieces.
    """
    size = settings.pieces(sum(order.quotas))
    if settings.sharing is not Sharing.JOINT:
        first = _train((pair[0] for pair in _sample(order, settings)), size, settings)
        second = _train((pair[1] for pair in _sample(order, settings)), size, settings)
        return both(first, second)
    if settings.even_sample:
        sentences = _even_sample(order, sources, settings)
    else:
        sentences = chain.from_iterable(_sample(order, settings))
    return _train(sentences, size, settings)


def load_tokenizers(content: bytes, settings: PrepareSettings) -> tuple[Tokenizer, Tokenizer]:
    """Return the tokenizers of both sides; the same object if they share a vocabulary."""
    own: dict[str, Any] = {"lower_case": settings.lower_case}
    if settings.tokens == "sentencepiece":
        own["segmentation"] = settings.segmentation.value
    else:
        own["characters"] = True
    if settings.tokens == "word":
        own |= {"splitter": settings.splitter.value, "language": "en"}
    if settings.sharing is Sharing.JOINT:
        tokenizer = load_tokenizer(settings.tokens, content, own)
        return tokenizer, tokenizer
    inner = {"kind": settings.tokens, "options": own}
    options = {"inner": inner, "sharing": settings.sharing.value, "languages": settings.languages}
    kind = BilingualTokenizer.kind
    first, second = settings.languages
    return (
        load_tokenizer(kind, content, options | {"language": first}),
        load_tokenizer(kind, content, options | {"language": second}),
    )


def _sample(order: Order, settings: PrepareSettings) -> Iterator[list[str]]:
    pairs = chain.from_iterable(texts_of(rows) for rows in order)
    return islice(pairs, settings.sample_pairs)


def _even_sample(
    order: Order, sources: Sequence[TextSource], settings: PrepareSettings
) -> Iterator[str]:
    """Yield the first sentences of each language, in the order of the rows."""
    languages = [source.pair_without_regions for source in sources]
    distinct = set(chain.from_iterable(languages))
    remaining = dict.fromkeys(distinct, 2 * settings.sample_pairs // len(distinct))
    for rows in order:
        for source, texts in zip(sources_of(rows), texts_of(rows), strict=True):
            for code, text in zip(languages[source], texts, strict=True):
                if remaining[code]:
                    remaining[code] -= 1
                    yield text
        if not any(remaining.values()):
            return


def _train(sentences: Iterable[str], size: int, settings: PrepareSettings) -> bytes:
    if settings.tokens == "word":
        return train_words(
            read_characters(sentences), size, settings.lower_case, splitter=settings.splitter
        )
    if settings.tokens == "trigram":
        return train_trigrams(read_characters(sentences), size, settings.lower_case)
    try:
        return train_vocabulary(
            sentences,
            size=size,
            character_coverage=settings.coverage,
            num_threads=settings.vocab_threads,
            max_sentence_bytes=settings.max_sentence_bytes,
            seed=settings.seed,
        )
    # there are rows, so another setting helps, and the rows need not be cleaned again
    except TextError as error:
        raise SettingsError(f"{error}; choose another vocabulary size") from error
