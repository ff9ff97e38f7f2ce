"""What the peers work on: sentences, a vocabulary, a random model, a pair store; made when they are not given."""

from __future__ import annotations

import hashlib
import itertools
import json
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from st_paragram.core.files import atomic, write_text
from st_paragram.core.pair_store import PairStore, PairStoreWriter
from st_paragram.core.sample import sample_pairs
from st_paragram.core.text.streams import read_lines
from st_paragram.core.tokenizers.base import Tokenizer
from st_paragram.core.tokenizers.sentencepiece import SentencePieceTokenizer, train_vocabulary
from st_paragram.errors import TextError

_BUILT_IN = 20_000  # different built-in sentences before variations of them are made
_LEXICON = 120_000  # invented words of the variations
_REPLACED = 0.6  # share of a variation's words that are invented ones
_VOCABULARY_SENTENCES = 120_000  # that train a vocabulary
_VERSION = 2  # of what this file makes
_SYLLABLES = [a + b for a in "b c d f g h k l m n p r s t v z br st tr".split() for b in "a e i o u an er in".split()]  # noqa: SIM905


@dataclass(frozen=True)
class Inputs:
    """Makes files under `folder` when they are first asked for, and finds them there afterwards.

    Args:
        folder: where they are kept.
        count: sentences to encode.
        text: a file of sentences, or None for built-in text.
        model: a model directory, or None for random ones.
        store: a pair store to train on, or None for one made of the sentences.
    """

    folder: Path
    count: int
    text: Path | None = None
    model: Path | None = None
    store: Path | None = None

    def sentences(self, length: float = 1.0) -> Path:
        """A file of `count` sentences, one a line, their words cut or repeated to `length` times their number."""
        path = self._named(f"sentences-{length:g}", "txt")
        if not path.is_file():
            if length != 1.0:
                lines = [_stretched(line, length) for line in read_sentences(self.sentences(), self.count)]
            else:
                lines = read_sentences(self.text, self.count) if self.text else list(built_in_sentences(self.count))
            write_text(path, "".join(f"{line}\n" for line in lines))
        return path

    def vocabulary(self, size: int) -> SentencePieceTokenizer:
        """A vocabulary of `size` pieces trained on the text; of fewer, if it does not give as many."""
        path = self._named(f"vocabulary-{size}", "model")
        if not path.is_file():
            wanted = min(_VOCABULARY_SENTENCES, max(self.count, 3 * size))  # whatever little is encoded
            lines = read_sentences(self.text)[:wanted] if self.text else built_in_sentences(wanted)
            proto = train_vocabulary((line.lower() for line in lines), size, num_threads=8)
            with atomic(path) as file:
                file.write(proto)
        return SentencePieceTokenizer(path.read_bytes())

    def model_directory(self, size: int, dim: int) -> Path:
        """The model given, or a random one of `size` pieces and `dim` components."""
        if self.model is not None:
            return self.model
        path = self._named(f"model-{size}-{dim}")
        if not path.is_dir():
            import torch

            from st_paragram.learning.models.directory import save
            from st_paragram.learning.models.sentence_transformers_encoder import pipeline
            from st_paragram.learning.modules.token_embedding import SentencePieceEmbedding

            torch.manual_seed(0)
            save(pipeline(SentencePieceEmbedding(self.vocabulary(size), dim), "cpu"), path)
        return path

    def pair_store(self, size: int, pairs: int | None = None, length: float = 1.0) -> Path:
        """A store to train on.

        Args:
            size: pieces of the vocabulary.
            pairs: how many; rows are repeated to reach it. None: as many as there are.
            length: factor on the length of the sentences, which are cut or repeated.

        Returns:
            The store given if nothing is to be changed in it, else one made of it or, where none is given, of the
            sentences: neighbours make a pair.
        """
        if self.store is not None and pairs is None and length == 1.0:
            return self.store
        path = self._named(f"pairs-{size}-{pairs or 'all'}-{length:g}", "h5")
        if not path.is_file():
            if self.store is None and pairs is None and length == 1.0:
                _store_of_sentences(read_sentences(self.sentences(), self.count), self.vocabulary(size), path)
            else:
                _changed_store(PairStore(self.pair_store(size)), path, pairs, length)
        return path

    def _named(self, what: str, suffix: str = "") -> Path:
        """A place that changes with everything its content depends on."""
        given: list[object] = [_VERSION, self.count]
        for path in (self.text, self.store):
            given.append([str(path.resolve()), path.stat().st_size, path.stat().st_mtime_ns] if path else None)
        digest = hashlib.sha256(json.dumps(given).encode()).hexdigest()[:10]
        self.folder.mkdir(parents=True, exist_ok=True)
        return self.folder / f"{what}-{digest}{'.' if suffix else ''}{suffix}"


def read_sentences(path: Path, count: int | None = None) -> list[str]:
    r"""The first `count` lines of a text that are not blank, split at `\n` alone; a shorter text is repeated.

    Raises:
        TextError: there is no such file, it is not UTF-8, or has only blank lines.
    """
    lines = [line for line in read_lines(str(path)) if line.strip()]
    if not lines:
        raise TextError(f"{path}: no sentences; give a text with one a line")
    return lines if count is None else list(itertools.islice(itertools.cycle(lines), count))


def built_in_sentences(count: int, seed: int = 0) -> Iterator[str]:
    """Sentences of the built-in bitext, English and Spanish, then variations with invented words.

    The invented words are as frequent as words are (Zipf's law), so that a vocabulary of 50,000 pieces can be trained
    on them and a table's rows are asked for about as unevenly as those of real text.
    """
    plain = max(2, min(_BUILT_IN, count // 6))  # the same mixture, however many
    base = [text for pair in sample_pairs("es", -(-plain // 2)) for text in pair]
    yield from itertools.islice(base, count)
    rng = np.random.default_rng(seed)
    words = invented_words(_LEXICON, seed)
    chances = 1 / np.arange(100, len(words) + 100)
    chances = np.cumsum(chances / chances.sum())
    for start in range(len(base), count, len(base)):
        for sentence in base[: count - start]:
            tokens = sentence.split(" ")
            replaced = rng.random(len(tokens)) < _REPLACED
            drawn = np.minimum(np.searchsorted(chances, rng.random(len(tokens))), len(words) - 1)
            yield " ".join(
                words[which] if new else token for token, new, which in zip(tokens, replaced, drawn, strict=True)
            )


def invented_words(count: int, seed: int = 0) -> list[str]:
    """So many different words of one to four syllables."""
    rng = random.Random(seed)
    words: dict[str, None] = {}
    while len(words) < count:
        words["".join(rng.choices(_SYLLABLES, k=rng.choices((1, 2, 3, 4), (1, 4, 4, 2))[0]))] = None
    return list(words)


def _stretched(sentence: str, length: float) -> str:
    words = sentence.split()
    return " ".join(itertools.islice(itertools.cycle(words), max(1, round(len(words) * length))))


def _store_of_sentences(sentences: Sequence[str], vocabulary: Tokenizer, path: Path) -> None:
    half = len(sentences) // 2
    with PairStoreWriter(path, ("en", "xx"), vocabulary, None, {"made for": "a benchmark"}) as writer:
        for start in range(0, half, 1 << 14):
            rows = range(start, min(start + (1 << 14), half))
            first, second = ([sentences[2 * row + side] for row in rows] for side in (0, 1))
            writer.append(*vocabulary.encode(first), *vocabulary.encode(second))


def _changed_store(store: PairStore, path: Path, pairs: int | None, length: float, block: int = 50_000) -> None:
    count = pairs or len(store)
    with PairStoreWriter(path, store.languages, store.tokenizers, None, {"made for": "a benchmark"}) as writer:
        for start in range(0, count, block):
            rows = np.arange(start, min(start + block, count)) % len(store)
            sides = []
            for side in ("a", "b"):
                ids, offsets = store.take(side, rows)
                begins, old = offsets[:-1], np.diff(offsets)
                new = np.maximum(1, np.round(old * length).astype(np.int64))
                ends = np.concatenate([[0], np.cumsum(new)])
                within = np.arange(ends[-1]) - np.repeat(ends[:-1], new)
                sides += [ids[np.repeat(begins, new) + within % np.repeat(old, new)], ends]
            writer.append(*sides)
