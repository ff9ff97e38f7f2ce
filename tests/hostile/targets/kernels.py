"""Calls of the compiled kernels with arguments that do not fit: an exception and nothing changed, or numpy's result."""

from __future__ import annotations

import functools
import itertools

import numpy as np
import pytest
from support.data import make_pairs

from hostile.arrays import spoilt, unequal
from st_paragram.core.encoding import nibbles
from st_paragram.core.native import kernels
from st_paragram.core.tokenizers.sentencepiece import SentencePieceTokenizer, train_vocabulary
from st_paragram.core.tokenizers.word_cache import WordEncoder
from st_paragram.errors import ParagramError

TRIES, QUICK = 10_000, 300

_REFUSALS = (TypeError, ValueError, OverflowError, MemoryError, RuntimeError, ParagramError)
_THREADS = (1, 1, 1, 2, 2, 3, 8, 0, -1)


def prepare(folder):
    """Nothing is shared; there must be kernels."""
    if kernels() is None:
        pytest.skip("the compiled kernels are not installed")


def attempt(shared, rng, folder):
    """One call, its arguments as they should be or not."""
    call, arguments, outputs, check = _CALLS[rng.integers(len(_CALLS))](rng)
    if rng.random() < 0.75:
        for number in rng.integers(len(arguments), size=rng.integers(1, 3)):
            arguments[number] = spoilt(arguments[number], rng, arguments)
    before = [np.array(arguments[number]) for number in outputs]
    try:
        result = call(*arguments)
    except _REFUSALS as error:
        if any(unequal(arguments[number], was) for number, was in zip(outputs, before, strict=True)):
            return f"wrong: {call.__name__} refused its arguments and has changed them"
        plain = "\n" not in str(error) or isinstance(error, TypeError)  # pybind11 lists what it would take
        return f"{call.__name__}: {type(error).__name__}" if plain else f"wrong: {error}"
    wrong = check(result, *arguments)
    return f"wrong: {call.__name__}: {wrong}" if wrong else f"{call.__name__}: done"


def _offsets(rng, count, longest=6):
    return np.concatenate([[0], np.cumsum(rng.integers(0, longest, count))]).astype(np.int64)


def _gather(rng):
    ids = rng.integers(0, 200, rng.integers(0, 60)).astype(rng.choice([np.uint8, np.uint16, np.uint32]))
    begins = rng.integers(0, len(ids) + 1, rng.integers(0, 9))
    counts = [rng.integers(0, len(ids) - begin + 1) for begin in begins]
    offsets = np.concatenate([[0], np.cumsum(counts, dtype=np.int64)]).astype(np.int64)
    return kernels().gather, [ids, begins, offsets, np.empty(offsets[-1], np.int32)], [3], _check_gather


def _check_gather(result, ids, begins, offsets, out):
    counts = np.diff(offsets)
    wanted = [ids[int(b) : int(b) + int(c)] for b, c in zip(begins, counts, strict=True)]
    wanted = np.concatenate([np.zeros(0, np.int32), *wanted]).astype(np.int32)
    return None if np.array_equal(out, wanted) else "other ids"


def _means(rng):
    rows, dim, count = rng.integers(1, 30), rng.choice([0, 1, 7, 8, 31, 33, 96, 130]), rng.integers(0, 70)
    table, offsets = rng.normal(size=(rows, dim)).astype(np.float32), _offsets(rng, count)
    ids = rng.integers(0, rows, offsets[-1]).astype(np.int32)
    rest = [ids, offsets, np.empty((count, dim), np.float32), bool(rng.integers(2)), int(rng.choice(_THREADS))]
    kind = rng.integers(4)
    if kind == 0:
        return kernels().mean_rows, [table, *rest], [3], _check_means
    if kind == 1:
        return kernels().mean_rows_f16, [table.astype(np.float16).view(np.uint16), *rest], [3], _check_halves
    scales = rng.random(rows).astype(np.float32)
    if kind == 2:
        packed = rng.integers(0, 256, (rows, dim // 2)).astype(np.uint8)
        rest[2] = np.empty((count, 2 * packed.shape[1]), np.float32)
        return kernels().mean_rows_i4, [packed, scales, *rest], [4], _check_nibbles
    return kernels().mean_rows_i8, [(table * 40).astype(np.int8), scales, *rest], [4], _check_bytes


def _check_means(result, table, ids, offsets, out, normalized, threads):
    if not np.isfinite(table).all():
        return None
    means = np.zeros(out.shape)
    for i, (begin, end) in enumerate(itertools.pairwise(offsets)):
        if end > begin:
            means[i] = table[ids[begin:end]].astype(float).mean(0)
            means[i] /= max(np.linalg.norm(means[i]), 1e-12) if normalized else 1
    size = max(1, np.abs(table.astype(float)).max(initial=0))
    close = np.allclose(out, means, atol=(1e-4 if normalized else 1e-5 * size))
    return None if close or size > 1e15 else "other means"  # squares of larger numbers overflow


def _check_halves(result, table, *rest):
    return _check_means(result, table.view(np.float16).astype(np.float32), *rest)


def _check_bytes(result, table, scales, *rest):
    with np.errstate(over="ignore", invalid="ignore"):
        return _check_means(result, table * scales[:, None], *rest)


def _check_nibbles(result, table, scales, *rest):
    return _check_bytes(result, nibbles.unpack(table), scales, *rest)


def _mining(rng):
    n, dim = rng.integers(0, 90), rng.choice([0, 1, 5, 16, 40])
    sides = [rng.normal(size=(n, dim)).astype(np.float32) for _ in range(2)]
    none, labels = np.zeros(0, np.int64), [rng.integers(0, 40, n) for _ in range(2)]
    shares = [np.zeros(0, np.uint8), np.ones(n, np.uint8)][rng.integers(2)]
    labels = labels if len(shares) else [none, none]
    found = [np.empty(n, np.int64) for _ in range(2)]
    arguments = [*sides, *labels, shares, bool(rng.integers(2)), int(rng.choice(_THREADS)), *found]
    return kernels().hardest_negatives, arguments, [7, 8], _check_mining


def _check_mining(result, first, second, first_labels, second_labels, shares, both, threads, of_first, of_second):
    n = len(first)
    for side, found in enumerate((of_first, of_second)):
        if ((found < 0) | (found >= (2 if both else 1) * n)).any():
            return "a negative that is no sentence"
        if len(shares) or not np.isfinite(first).all() or not np.isfinite(second).all() or first.shape[1] == 0:
            continue
        rows, other = ((first, second), (second, first))[side]
        candidates = np.concatenate([first, second]) if both else other
        similarity = _unit(rows) @ _unit(candidates).T
        for own in (0, n)[: 1 + bool(both)]:
            similarity[np.arange(n), np.arange(n) + own] = -2
        short = similarity.max(1) - similarity[np.arange(n), found] if n > 1 else np.zeros(n)
        if (short > 0.1).any() and max(np.abs(first).max(), np.abs(second).max()) < 1e15:
            return f"a negative that is less similar by {short.max():.3f}"
    return None


def _unit(vectors):
    vectors = vectors.astype(float)
    return vectors / np.maximum(np.linalg.norm(vectors, axis=1), 1e-30)[:, None]


def _mask(rng):
    arguments = [int(rng.integers(1 << 62)), int(rng.integers(99)), 5, int(rng.integers(0, 70)), float(rng.random())]
    return kernels().dropout_mask, arguments, [], lambda mask, *rest: None if np.isin(mask, (0, 1)).all() else "no mask"


def _training(rng):
    rows, dim, width, step = rng.integers(1, 40), int(rng.choice([1, 8, 70])), 50, int(rng.integers(0, 50))
    table, moment, square = rng.normal(size=(3, rows, dim)).astype(np.float32)
    last, sums = rng.integers(0, step + 1, rows), rng.random((4, width))
    state = [table.copy(), moment.copy(), square**2 + 1, last, np.array(step), sums, np.array(0)]
    offsets = _offsets(rng, rng.integers(1, 20))
    offsets += np.arange(len(offsets))  # no sentence without a token
    ids = rng.integers(0, rows, offsets[-1]).astype(np.int32)
    columns = rng.integers(0, len(offsets) - 1, (4, rng.integers(1, 12)))
    batch = [ids, offsets, columns, 0.4, 1e-3, int(rng.choice(_THREADS)), float(rng.choice([0, 0.3])), 5]
    return _training_step, [*state, 0.9, 0.999, 1e-8, 264, *batch], list(range(7)), _check_training


def _training_step(*arguments):
    step = kernels().TrainingStep(*arguments[:11])
    step.train(*arguments[11:])
    return step


def _check_training(step, *arguments):
    step.catch_up(arguments[11], arguments[16])
    return "rows ahead of the step" if (arguments[3] > arguments[4]).any() else None


@functools.cache
def _vocabulary():
    return SentencePieceTokenizer(train_vocabulary([text for pair in make_pairs(100) for text in pair], 120))


def _words(rng):
    words = ["ba", "Ce", "straße", "x" * 70, "河水", "\x00", "", "☃", "☃" * 700]
    texts = [" ".join(rng.choice(words, rng.integers(0, 60))) for _ in range(rng.integers(0, 150))]
    arguments = [int(rng.choice([0, 300, 1 << 20])), texts, int(rng.choice([-1, 0, 5])), int(rng.choice(_THREADS))]
    return _encoded, [*arguments, bool(rng.integers(2))], [], _check_words


def _encoded(limit, texts, max_length, threads, wide):
    """Texts through an empty table."""
    encoder = WordEncoder(_vocabulary().content, True, limit)
    most = None if max_length < 0 else max_length
    return encoder.encode(texts, most, threads, np.int64 if wide else np.int32)


def _ids_of(texts):
    rows = [_vocabulary().processor.encode(text.lower()) for text in texts]
    offsets = np.concatenate([[0], np.cumsum([len(row) for row in rows], dtype=np.int64)]).astype(np.int64)
    return np.array(list(itertools.chain.from_iterable(rows)), np.int32), offsets


def _check_words(result, limit, texts, max_length, threads, wide):
    (ids, offsets, cut), (wanted, bounds) = (result.ids, result.offsets, result.cut), _ids_of(texts)
    most, unknown = max_length if max_length >= 0 else len(wanted), _vocabulary().unknown_id
    rows = [wanted[a:b][:most].tolist() for a, b in itertools.pairwise(bounds)]
    expected = [[i for i in row if i != unknown] or [unknown] for row in rows]
    found = [ids[a:b].tolist() for a, b in itertools.pairwise(offsets)]
    same = found == expected and cut == (np.diff(bounds) > most).sum()
    return None if same and ids.dtype == (np.int64 if wide else np.int32) else "other ids"


def _best(rng):
    height, width, kept = rng.integers(0, 20), rng.integers(0, 90), rng.integers(1, 9)
    tile, of_columns = rng.normal(size=(height, width)).astype(np.float32), bool(rng.integers(2))
    shape = (width if of_columns else height, kept)
    values, ids = np.full(shape, -np.inf, np.float32), np.full(shape, -1)
    return kernels().keep_best, [tile, 7, values, ids, of_columns, int(rng.choice(_THREADS))], [2, 3], _check_best


def _check_best(result, tile, first, values, ids, of_columns, threads):
    tile = tile.T if of_columns else tile
    own, place = np.nonzero(np.isfinite(values) & (ids >= first) & (ids - first < tile.shape[1]))
    same = values[own, place] == tile[own, ids[own, place] - first]
    return None if same.all() else "values of other places"


def _cosines(rng):
    dim, size, count = rng.choice([0, 1, 7, 16, 33]), rng.integers(1, 9), rng.integers(1, 30)
    stored = (rng.normal(size=(count, dim)) * 30).astype(rng.choice(["float32", "float16", "int8"]))
    stored = stored.view(np.uint16) if stored.dtype == np.float16 else stored
    queries = rng.normal(size=(rng.integers(0, 9), dim)).astype(np.float32)
    rows = rng.integers(-1, count, (len(queries), rng.integers(0, 5)))
    arguments = [queries, stored, np.ones(count, np.float32), rows, np.zeros(rows.shape, np.float32), int(size)]
    return _cosines_of_shards, arguments, [4], _check_cosines


def _cosines_of_shards(queries, stored, lengths, rows, out, size):
    shards = [stored[begin : begin + size] for begin in range(0, len(stored), size)]
    kernels().candidate_cosines(queries, shards, lengths, rows, out, 2)


def _check_cosines(result, queries, stored, lengths, rows, out, size):
    vectors = stored.view(np.float16) if stored.dtype == np.uint16 else stored
    with np.errstate(all="ignore"):
        vectors = vectors.astype(np.float32) / lengths[:, None]
        expected = np.einsum("nd,nkd->nk", queries.astype(float), vectors[rows].astype(float))
    finite = np.isfinite(expected).all() and np.abs(vectors).max(initial=0) < 1e3
    close = not finite or np.allclose(out, np.where(rows < 0, out, expected), rtol=1e-4, atol=1e-3, equal_nan=True)
    return None if close or np.abs(queries).max(initial=0) > 1e3 else "other cosines"


_CALLS = (_best, _cosines, _gather, _means, _means, _mining, _mask, _training, _training, _words)
