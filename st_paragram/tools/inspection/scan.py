"""Go through a pair store and count lengths, pieces, languages and labels of rows; draw some pairs."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray
from tqdm import tqdm

from st_paragram.core.pair_store import SIDES, PairStore
from st_paragram.core.tokenizers.base import Tokenizer
from st_paragram.errors import SettingsError
from st_paragram.tools.inspection.statistics import (
    Example,
    LabelUse,
    SideInspection,
    StoreInspection,
    TokenizerUse,
    quantiles,
)

_RATIO_QUANTILES = (0.01, 0.05, 0.25, 0.5, 0.75, 0.95, 0.99)
_BLOCK = 1 << 16  # pairs looked at together
_LONGEST = 255  # pieces; longer sentences are counted with these where the lengths of both sides are counted together
_MOST_LABELS = 100  # different ones that are counted one by one


def inspect(store: PairStore, sample: int = 10, seed: int = 0, frequent: int = 20) -> StoreInspection:
    """Look through a store; memory does not grow with the number of pairs.

    Args:
        store: the store.
        sample: how many pairs to draw at random and decode.
        seed: of that drawing.
        frequent: how many of the most frequent pieces to name.

    Raises:
        SettingsError: the number of pairs or pieces is negative.
    """
    if min(sample, frequent) < 0:
        raise SettingsError(f"{sample} pairs and {frequent} pieces to show; give numbers from 0 up")
    limit = min(store.max_length or _LONGEST, _LONGEST)
    joint = np.zeros((limit + 1) ** 2, np.int64)
    vocabularies = [_Vocabulary(tokenizer) for tokenizer in store.tokenizers[: 1 if store.shared_tokenizer else 2]]
    a, b = _SideCounts(vocabularies[0], limit), _SideCounts(vocabularies[-1], limit)
    languages, labels = Counter[tuple[str, str]](), _LabelCounts()
    for rows in _blocks(len(store)):
        lengths_a, lengths_b = (
            np.minimum(counts.add(*store.take(side, rows, np.int32)), limit)
            for side, counts in zip(SIDES, (a, b), strict=True)
        )
        joint += np.bincount(lengths_a * (limit + 1) + lengths_b, minlength=len(joint))
        languages.update(store.row_languages(rows))
        labels.add(store.labels(rows))
    square: NDArray[np.int64] = joint.reshape(limit + 1, limit + 1)
    uses = [a.pieces + b.pieces] if store.shared_tokenizer else [a.pieces, b.pieces]
    return StoreInspection(
        path=str(store.path),
        size=store.path.stat().st_size,
        pairs=len(store),
        row_languages=dict(languages.most_common()),
        max_length=store.max_length,
        seed=store.seed,
        settings=store.settings,
        sides=(a.inspection(store, 0), b.inspection(store, 1)),
        tokenizers=tuple(each.use(pieces, frequent) for each, pieces in zip(vocabularies, uses, strict=True)),
        joint=square,
        ratio=_ratios(square),
        labels=labels.use(len(store)),
        examples=_examples(store, sample, seed),
    )


def _blocks(pairs: int) -> Iterator[NDArray[np.int64]]:
    """Go through the rows of a store."""
    with tqdm(total=pairs, unit="pair", unit_scale=True, desc="inspecting", disable=None) as bar:
        for start in range(0, pairs, _BLOCK):
            rows = np.arange(start, min(start + _BLOCK, pairs))
            yield rows
            bar.update(len(rows))


class _Vocabulary:
    """A tokenizer and its ids.

    Attributes:
        ordinary: which ids stand for text, bool (V,).
        telling: which of these stand for more than white space, bool (V,).
    """

    def __init__(self, tokenizer: Tokenizer) -> None:
        self.tokenizer = tokenizer
        ids = range(len(tokenizer))
        self.ordinary = np.array([tokenizer.piece(piece) is not None for piece in ids])
        self.telling = self.ordinary & np.array([bool(tokenizer.decode([piece]).strip()) for piece in ids])

    def use(self, pieces: NDArray[np.int64], frequent: int) -> TokenizerUse:
        """What occurs: occurrences of all ids, int64 (V,), and how many of the most frequent to name."""
        ids = np.flatnonzero(self.ordinary)
        ids = ids[np.argsort(-pieces[ids], kind="stable")]
        frequencies = pieces[ids]
        named = ((self.tokenizer.piece(int(piece)) or "", int(pieces[piece])) for piece in ids[:frequent])
        return TokenizerUse(
            kind=self.tokenizer.kind,
            options=self.tokenizer.options,
            size=len(pieces),
            ordinary=len(ids),
            used=int((frequencies > 0).sum()),
            once=int((frequencies == 1).sum()),
            frequencies=frequencies,
            most_frequent=tuple((piece, count) for piece, count in named if count),
        )


class _SideCounts:
    """What is counted of one side; `pieces`, int64 (V,), are the occurrences of ids."""

    def __init__(self, vocabulary: _Vocabulary, limit: int) -> None:
        self._vocabulary = vocabulary
        self.pieces = np.zeros(len(vocabulary.ordinary), np.int64)
        self._lengths = np.zeros(limit + 1, np.int64)
        self._unknown = 0

    def add(self, ids: NDArray[np.int32], offsets: NDArray[np.int64]) -> NDArray[np.int64]:
        """Count sentences; returns their lengths, int64 (n,)."""
        self.pieces += np.bincount(ids, minlength=len(self.pieces))
        telling = self._vocabulary.telling[ids]
        self._unknown += np.count_nonzero(~np.logical_or.reduceat(telling, offsets[:-1]))
        lengths = np.diff(offsets)
        counts = np.bincount(lengths, minlength=len(self._lengths))
        counts[: len(self._lengths)] += self._lengths
        self._lengths = counts
        return lengths

    def inspection(self, store: PairStore, side: int) -> SideInspection:
        """What was counted."""
        lengths, most, used = self._lengths, store.max_length, self.pieces[self._vocabulary.ordinary] > 0
        return SideInspection(
            language=store.languages[side],
            pieces=int(self.pieces.sum()),
            lengths=lengths,
            at_limit=float(lengths[most]) / len(store) if most and most < len(lengths) else 0.0,
            unknown=self._unknown / len(store),
            used=float(used.mean()) if len(used) else 0.0,
        )


class _LabelCounts:
    """What is counted of labels."""

    def __init__(self) -> None:
        self._counts: Counter[float] | None = Counter()
        self._sum, self._least, self._greatest = 0.0, np.inf, -np.inf

    def add(self, labels: NDArray[np.generic] | None) -> None:
        if labels is None:
            return
        values, times = np.unique(labels.astype(np.float64), return_counts=True)
        self._sum += float(values @ times)
        self._least, self._greatest = min(self._least, values[0]), max(self._greatest, values[-1])
        if self._counts is not None:
            self._counts.update(dict(zip(values.tolist(), times.tolist(), strict=True)))
            if len(self._counts) > _MOST_LABELS:
                self._counts = None

    def use(self, rows: int) -> LabelUse | None:
        if self._least > self._greatest:
            return None
        counts = None if self._counts is None else dict(sorted(self._counts.items()))
        return LabelUse(float(self._least), self._sum / rows, float(self._greatest), counts)


def _ratios(joint: NDArray[np.int64]) -> dict[float, float]:
    a, b = np.nonzero(joint)
    ratio = b / np.maximum(a, 1)
    order = np.argsort(ratio)
    places = quantiles(joint[a, b][order], _RATIO_QUANTILES)
    return {share: float(ratio[order[place]]) for share, place in zip(_RATIO_QUANTILES, places, strict=True)}


def _examples(store: PairStore, sample: int, seed: int) -> tuple[Example, ...]:
    rows = sorted(random.Random(seed).sample(range(len(store)), min(sample, len(store))))
    numbers = np.array(rows, np.int64)
    texts = zip(store.texts("a", numbers), store.texts("b", numbers), strict=True)
    labels = store.labels(numbers)
    values = [None] * len(rows) if labels is None else labels.tolist()
    return tuple(map(Example, rows, store.row_languages(numbers), texts, values))
