"""Description of a pair store: lengths, use of the vocabulary, languages, labels, examples.

Also the share of unknown tokens in text.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from tqdm import trange

from st_paragram.core.arrays import Integers, Mask
from st_paragram.core.encoding.models import TextEncoder
from st_paragram.core.encoding.unit_embeddings import count_tokens
from st_paragram.core.files import describe_files
from st_paragram.core.pair_store import FORMAT_VERSION, SIDES, PairStore
from st_paragram.core.text.streams import read_lines
from st_paragram.core.tokenizers.base import Tokenizer
from st_paragram.errors import TextError

Counts = Integers

#: Quantiles of sentence lengths.
SHARES = (0.01, 0.25, 0.5, 0.75, 0.99, 1.0)
_FREQUENT = 10  # number of frequent pieces to name
_BLOCK = 1 << 16  # pairs read together
_LINES = 1 << 14  # lines read together


def inspect(path: str | Path, examples: int = 3) -> dict[str, Any]:
    """Describe a pair store in JSON values.

    The store is read in full, and memory does not grow with the number of pairs.

    Args:
        path: The store.
        examples: Number of random pairs to decode.

    Returns:
        For each side: pieces per sentence (mean and quantiles), the shares of sentences at the
        length limit and of entirely unknown sentences, and how many pieces of the vocabulary
        occur. For pairs: pairs per language pair, and minimum, mean and maximum of labels.
    """
    store = PairStore(path)
    store.check_rows()
    sides = [_Side(store, number) for number in (0, 1)]
    languages = Counter[str]()
    labels = list[tuple[float, float, float]]()
    for start in trange(0, len(store), _BLOCK, desc="reading", disable=None):
        rows = np.arange(start, min(start + _BLOCK, len(store)))
        for side in sides:
            side.add(rows)
        languages.update("-".join(pair) for pair in store.row_languages(rows))
        values = store.labels(rows)
        if values is not None:
            total = float(values.sum(dtype=np.float64))
            labels.append((float(values.min()), total, float(values.max())))
    vocabularies = []
    if store.shared_tokenizer:
        pieces = sides[0].pieces + sides[1].pieces
        vocabularies.append(_vocabulary(sides[0].tokenizer, sides[0].ordinary, pieces))
    else:
        for side in sides:
            vocabularies.append(_vocabulary(side.tokenizer, side.ordinary, side.pieces))
    return {
        "name": store.path.name,
        "format_version": FORMAT_VERSION,
        "languages": store.languages,
        "pairs": len(store),
        "pairs_of_languages": dict(languages.most_common()),
        "max_length": store.max_length,
        "seed": store.seed,
        "sides": [side.description() for side in sides],
        "labels": _labels(labels, len(store)),
        "vocabularies": vocabularies,
        "settings": store.settings,
        "examples": _examples(store, examples),
        "content_sha256": store.digest,
        "files": describe_files(store.path),
    }


def check(path: Path) -> str:
    """Read the whole store, and raise StoreError if its content does not match its checksum."""
    PairStore(path).check()
    return "the content matches its checksum"


def unknown_tokens(encoder: TextEncoder, texts: Sequence[tuple[str, Path]]) -> dict[str, Any]:
    """Count the tokens in texts of each language, and the share that a model does not know.

    The paper of multilingual USE reports less than 1% for held-out text (ACL 2020).

    Args:
        encoder: The model.
        texts: Languages and files with one text per line, plain or compressed.

    Returns:
        Language -> number of texts, number of tokens, and share of unknown tokens, 0 .. 1.
    """
    counts = Counter[str]()
    tokens = Counter[str]()
    unknown = Counter[str]()
    for language, path in texts:
        lines = (line for line in read_lines(str(path)) if line.strip())
        while block := list(islice(lines, _LINES)):
            block_tokens = count_tokens(encoder, block, language)
            counts[language] += len(block)
            tokens[language] += block_tokens.tokens
            unknown[language] += block_tokens.unknown
        if not counts[language]:
            raise TextError(f"{path}: no text; give a file with one text per line")
    return {
        "texts": dict(counts),
        "tokens": dict(tokens),
        "share_unknown": {name: unknown[name] / max(tokens[name], 1) for name in counts},
    }


def _labels(blocks: list[tuple[float, float, float]], pairs: int) -> dict[str, float] | None:
    """Describe labels, given the minimum, sum and maximum of blocks of pairs."""
    if not blocks:
        return None
    minima, sums, maxima = zip(*blocks, strict=True)
    return {"minimum": min(minima), "mean": sum(sums) / pairs, "maximum": max(maxima)}


class _Side:
    """Counts of one side.

    Attributes:
        tokenizer: Tokenizer of the side, with V pieces.
        ordinary: Whether each piece is ordinary, (V,).
        pieces: Number of times that each piece occurs, (V,).
    """

    def __init__(self, store: PairStore, number: int) -> None:
        self.tokenizer = store.tokenizers[number]
        size = len(self.tokenizer)
        ordinary = [self.tokenizer.piece(piece) is not None for piece in range(size)]
        text = [bool(self.tokenizer.decode([piece]).strip()) for piece in range(size)]
        self.ordinary = np.array(ordinary)
        self.pieces: Counts = np.zeros(size, np.int64)
        self._is_text = self.ordinary & text  # pieces other than white space
        self._store = store
        self._name = SIDES[number]
        self._language = store.languages[number]
        self._lengths = Counter[int]()  # number of pieces -> number of sentences
        self._unknown = 0

    def add(self, rows: Integers) -> None:
        ids, offsets = self._store.take(self._name, rows, np.int32)
        self.pieces += np.bincount(ids, minlength=len(self.pieces))
        has_text = np.logical_or.reduceat(self._is_text[ids], offsets[:-1])
        self._unknown += int((~has_text).sum())
        self._lengths.update(np.diff(offsets).tolist())

    def description(self) -> dict[str, Any]:
        sentences = len(self._store)
        lengths, counts = np.array(sorted(self._lengths.items())).T
        # the minimum length that a share of the sentences does not exceed
        ranks = np.ceil(np.array(SHARES) * sentences - 1e-9)
        quantiles = lengths[np.searchsorted(np.cumsum(counts), ranks)]
        names = [f"{share:.0%}" for share in SHARES]
        return {
            "language": self._language,
            "pieces": int(self.pieces.sum()),
            "mean_length": float(lengths @ counts / counts.sum()),
            "lengths": dict(zip(names, quantiles.tolist(), strict=True)),
            "share_at_limit": self._lengths[self._store.max_length or -1] / sentences,
            "share_unknown": self._unknown / sentences,
        }


def _vocabulary(tokenizer: Tokenizer, ordinary: Mask, pieces: Counts) -> dict[str, Any]:
    counts = np.where(ordinary, pieces, 0)
    most_frequent = np.argsort(-counts, kind="stable")[:_FREQUENT]
    return {
        "kind": tokenizer.kind,
        "ids": len(tokenizer),
        **tokenizer.options,
        "used": int((counts > 0).sum()),
        "most_frequent": [
            tokenizer.piece(piece) for piece in most_frequent.tolist() if counts[piece]
        ],
    }


def _examples(store: PairStore, count: int) -> list[dict[str, Any]]:
    sample = random.Random(0).sample(range(len(store)), min(count, len(store)))
    rows = np.array(sorted(sample), np.int64)
    languages = store.row_languages(rows)
    first = list(store.texts("a", rows))
    second = list(store.texts("b", rows))
    labels = store.labels(rows)
    examples = []
    for place, row in enumerate(rows.tolist()):
        example = {
            "row": row,
            "languages": "-".join(languages[place]),
            "first": first[place],
            "second": second[place],
        }
        if labels is not None:
            example["label"] = labels[place].item()
        examples.append(example)
    return examples
