"""Description of a pair store: lengths, vocabulary use, unknown text, languages, labels, and some
pairs.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tqdm import trange

from st_paragram.core.files import describe_files
from st_paragram.core.pair_store import FORMAT_VERSION, SIDES, PairStore
from st_paragram.core.tokenizers.base import Tokenizer

Counts = NDArray[np.int64]

#: Quantiles of sentence lengths.
SHARES = (0.01, 0.25, 0.5, 0.75, 0.99, 1.0)
_FREQUENT = 10  # number of frequent pieces to name
_BLOCK = 1 << 16  # pairs read together


def inspect(path: str | Path, examples: int = 3) -> dict[str, Any]:
    """Describe a pair store in JSON values; it is read in full, and memory does not grow with the
    number of pairs.

    Args:
        path: The store.
        examples: Number of random pairs to decode.

    Returns:
        For each side: pieces per sentence (mean and quantiles), the shares of sentences at the
            length limit and of
        entirely unknown sentences, and how many pieces of the vocabulary occur. For pairs: pairs
        per language pair, and minimum, mean and maximum of labels.
    """
    store = PairStore(path)
    store.check_rows()
    sides = [_Side(store, number) for number in (0, 1)]
    languages, labels = Counter[str](), []
    for start in trange(0, len(store), _BLOCK, desc="reading", disable=None):
        rows = np.arange(start, min(start + _BLOCK, len(store)))
        for side in sides:
            side.add(rows)
        languages.update(map("-".join, store.row_languages(rows)))
        if (values := store.labels(rows)) is not None:
            labels.append(
                (float(values.min()), float(values.sum(dtype=np.float64)), float(values.max()))
            )
    vocabularies = [
        _vocabulary(store.tokenizer(side.name), side.ordinary, side.pieces) for side in sides
    ]
    if store.shared_tokenizer:
        vocabularies = [
            _vocabulary(store.tokenizer(), sides[0].ordinary, sides[0].pieces + sides[1].pieces)
        ]
    low, sums, high = zip(*labels, strict=True) if labels else ((), (), ())
    return {
        "name": store.path.name,
        "format_version": FORMAT_VERSION,
        "languages": store.languages,
        "pairs": len(store),
        "pairs_of_languages": dict(languages.most_common()),
        "max_length": store.max_length,
        "seed": store.seed,
        "sides": [side.description() for side in sides],
        "labels": (
            {"minimum": min(low), "mean": sum(sums) / len(store), "maximum": max(high)}
            if labels
            else None
        ),
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


class _Side:
    """Counts of one side: `pieces`, (V,), are counts of ids, and `lengths` counts of sentences by
    number of pieces.
    """

    def __init__(self, store: PairStore, number: int) -> None:
        self.store, self.name, self.language = store, SIDES[number], store.languages[number]
        tokenizer = store.tokenizers[number]
        self.ordinary = np.array(
            [tokenizer.piece(piece) is not None for piece in range(len(tokenizer))]
        )
        # Pieces other than white space.
        self._text = self.ordinary & [
            bool(tokenizer.decode([piece]).strip()) for piece in range(len(tokenizer))
        ]
        self.pieces: Counts = np.zeros(len(tokenizer), np.int64)
        self._lengths, self._unknown = Counter[int](), 0

    def add(self, rows: NDArray[np.int64]) -> None:
        ids, offsets = self.store.take(self.name, rows, np.int32)
        self.pieces += np.bincount(ids, minlength=len(self.pieces))
        self._unknown += int((~np.logical_or.reduceat(self._text[ids], offsets[:-1])).sum())
        self._lengths.update(np.diff(offsets).tolist())

    def description(self) -> dict[str, Any]:
        lengths, counts = np.array(sorted(self._lengths.items())).T
        # The minimum length that a share of the sentences does not exceed.
        places = np.searchsorted(
            np.cumsum(counts), np.ceil(np.array(SHARES) * len(self.store) - 1e-9)
        )
        return {
            "language": self.language,
            "pieces": int(self.pieces.sum()),
            "mean_length": float(lengths @ counts / counts.sum()),
            "lengths": dict(
                zip(map("{:.0%}".format, SHARES), lengths[places].tolist(), strict=True)
            ),
            "share_at_limit": self._lengths[self.store.max_length or -1] / len(self.store),
            "share_unknown": self._unknown / len(self.store),
        }


def _vocabulary(
    tokenizer: Tokenizer, ordinary: NDArray[np.bool_], pieces: Counts
) -> dict[str, Any]:
    counts = np.where(ordinary, pieces, 0)
    frequent = [
        piece for piece in np.argsort(-counts, kind="stable")[:_FREQUENT].tolist() if counts[piece]
    ]
    return {
        "kind": tokenizer.kind,
        "ids": len(tokenizer),
        **tokenizer.options,
        "used": int((counts > 0).sum()),
        "most_frequent": [tokenizer.piece(piece) for piece in frequent],
    }


def _examples(store: PairStore, count: int) -> list[dict[str, Any]]:
    rows = np.array(
        sorted(random.Random(0).sample(range(len(store)), min(count, len(store)))), np.int64
    )
    found: dict[str, Iterable[Any]] = {
        "row": rows.tolist(),
        "languages": list(map("-".join, store.row_languages(rows))),
        "first": store.texts("a", rows),
        "second": store.texts("b", rows),
    }
    if (labels := store.labels(rows)) is not None:
        found["label"] = labels.tolist()
    return [dict(zip(found, values, strict=True)) for values in zip(*found.values(), strict=True)]
