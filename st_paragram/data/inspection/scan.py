"""Look through a pair store: what it says of itself, lengths, use of the vocabulary, some pairs."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tqdm import tqdm

from st_paragram.data.inspection.statistics import SideInspection, StoreInspection, VocabularyUse, quantiles
from st_paragram.data.pair_store import SIDES, PairStore
from st_paragram.errors import SettingsError

_RATIO_QUANTILES = (0.01, 0.05, 0.25, 0.5, 0.75, 0.95, 0.99)
_WORD_BEGINS = "▁"
_BLOCK = 1 << 16  # pairs looked at together
_LONGEST = 255  # pieces; longer sentences stand with these where the lengths of both sides are counted together


def inspect(store: PairStore, sample: int = 10, seed: int = 0, frequent: int = 20) -> StoreInspection:
    """Look through a store; memory does not grow with the number of pairs.

    Args:
        store: The store.
        sample: Pairs to draw at random and decode.
        seed: Of the drawing.
        frequent: Most frequent pieces to name.

    Raises:
        SettingsError: A negative number of pairs or pieces.
    """
    if min(sample, frequent) < 0:
        raise SettingsError(f"{sample} pairs and {frequent} pieces to show; give numbers from 0 up")
    vocabulary = store.tokenizer()
    limit = min(store.max_length or _LONGEST, _LONGEST)
    lengths = [np.zeros(limit + 1, np.int64) for _ in SIDES]
    counts = np.zeros((len(SIDES), len(vocabulary)), np.int64)
    unknown = np.zeros(len(SIDES), np.int64)
    joint = np.zeros((limit + 1) ** 2, np.int64)
    nothing = (vocabulary.unknown_id, vocabulary.processor.piece_to_id(_WORD_BEGINS))
    for sizes in _blocks(store, counts, unknown, nothing):
        capped = [np.minimum(size, limit) for size in sizes]
        joint += np.bincount(capped[0] * (limit + 1) + capped[1], minlength=len(joint))
        lengths = [_add(total, np.bincount(size)) for total, size in zip(lengths, sizes, strict=True)]
    square: NDArray[np.int64] = joint.reshape(limit + 1, limit + 1)
    ordinary = np.array([_is_ordinary(vocabulary.processor, piece) for piece in range(len(vocabulary))])
    sides = [
        SideInspection(
            language=language,
            pieces=int(counts[side].sum()),
            lengths=lengths[side],
            at_limit=float(lengths[side][store.max_length]) / len(store) if store.max_length else 0.0,
            unknown=float(unknown[side]) / len(store),
            used=float((counts[side, ordinary] > 0).mean()) if ordinary.any() else 0.0,
        )
        for side, language in enumerate(store.languages)
    ]
    return StoreInspection(
        path=str(store.path),
        size=store.path.stat().st_size,
        pairs=len(store),
        max_length=store.max_length,
        lower_case=store.lower_case,
        segmentation=store.segmentation.value,
        seed=store.seed,
        settings=store.settings,
        sides=(sides[0], sides[1]),
        vocabulary=_use(vocabulary.processor, counts.sum(axis=0), ordinary, frequent),
        joint=square,
        ratio=_ratios(square),
        examples=_examples(store, sample, seed),
    )


def _blocks(
    store: PairStore, counts: NDArray[np.int64], unknown: NDArray[np.int64], nothing: tuple[int, int]
) -> Iterator[list[NDArray[np.int64]]]:
    """Go through a store and yield the lengths of both sides.

    Occurrences of pieces are added to `counts`, int64 (2, V), sentences made of the two pieces `nothing` to `unknown`.
    """
    with tqdm(total=len(store), unit="pair", unit_scale=True, desc="look", disable=None) as bar:
        for start in range(0, len(store), _BLOCK):
            rows = np.arange(start, min(start + _BLOCK, len(store)))
            sizes = []
            for number, side in enumerate(SIDES):
                ids, offsets = store.take(side, rows, np.int32)
                counts[number] += np.bincount(ids, minlength=counts.shape[1])
                known = (ids != nothing[0]) & (ids != nothing[1])
                unknown[number] += np.count_nonzero(~np.logical_or.reduceat(known, offsets[:-1]))
                sizes.append(np.diff(offsets))
            yield sizes
            bar.update(len(rows))


def _add(total: NDArray[np.int64], more: NDArray[np.int64]) -> NDArray[np.int64]:
    if len(more) > len(total):
        total, more = more, total
    total = total.astype(np.int64)
    total[: len(more)] += more
    return total


def _ratios(joint: NDArray[np.int64]) -> dict[float, float]:
    a, b = np.nonzero(joint)
    ratio = b / np.maximum(a, 1)
    order = np.argsort(ratio)
    places = quantiles(joint[a, b][order], _RATIO_QUANTILES)
    return {share: float(ratio[order[place]]) for share, place in zip(_RATIO_QUANTILES, places, strict=True)}


def _is_ordinary(processor: Any, piece: int) -> bool:  # noqa: ANN401 - sentencepiece has no types
    return not (processor.is_unknown(piece) or processor.is_control(piece) or processor.is_unused(piece))


def _use(processor: Any, counts: NDArray[np.int64], ordinary: NDArray[np.bool_], frequent: int) -> VocabularyUse:  # noqa: ANN401
    ids = np.flatnonzero(ordinary)
    ids = ids[np.argsort(-counts[ids], kind="stable")]
    frequencies = counts[ids]
    named = ((processor.id_to_piece(int(piece)), int(counts[piece])) for piece in ids[:frequent])
    return VocabularyUse(
        size=len(counts),
        ordinary=len(ids),
        used=int((frequencies > 0).sum()),
        once=int((frequencies == 1).sum()),
        frequencies=frequencies,
        most_frequent=tuple((piece, count) for piece, count in named if count),
    )


def _examples(store: PairStore, sample: int, seed: int) -> tuple[tuple[int, str, str], ...]:
    rows = sorted(random.Random(seed).sample(range(len(store)), min(sample, len(store))))
    numbers = np.array(rows, np.int64)
    return tuple(zip(rows, store.texts("a", numbers), store.texts("b", numbers), strict=True))
