"""The best path through two documents, within a band around a rough path.

A node (i, j) lies after the first i units of the source and the first j units of the target. A unit
is a sentence or a group of sentences. A band has the same number of columns j in each row i, so
time and memory are linear in the number of units.

The rough path is found from coarse to fine, as in Vecalign (Thompson and Koehn, EMNLP 2019): groups
of groups of sentences are aligned first, and their path is the middle of the band of their parts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np

from st_paragram.core.arrays import Floats, Integers
from st_paragram.tools.neighbors.results import Vectors

Gains = Floats
Nodes = Integers
#: Blocks of a path, (blocks, 4): first source unit, first target unit, and numbers of both units.
Steps = Integers

#: Columns of a band on each side of the rough path.
REACH = 60
_ROWS_AT_A_TIME = 128
_COLUMNS_AT_A_TIME = 256
_ROUGH_UNITS = 2  # maximum units of one side of a rough block
_GROUP = 4  # units of one level in a unit of the next
_MOST_CELLS = 1_000_000  # source times target units of the coarsest level, which is searched whole
# Cosine below which units are skipped: above that of unrelated units, which is about 0.
_ROUGH_LEAST = 0.1


def kinds_of_blocks(max_units: int) -> list[tuple[int, int]]:
    """Return source and target units of each kind of block.

    A block has at most `max_units` + 1 units, at least one of them on each side.
    """
    kinds = []
    for total in range(2, max_units + 2):
        for height in range(1, total):
            kinds.append((height, total - height))
    return kinds


class Band(NamedTuple):
    """The columns in which a path is searched.

    Attributes:
        lows: First column of each row, (n + 1,), not decreasing.
        width: Number of columns in a row.
    """

    lows: Nodes
    width: int


def band_around(middle: Floats, columns: int, reach: int = REACH) -> Band:
    """Return the band that reaches so far to both sides of a path.

    Args:
        middle: Column of the path in each row, (n + 1,).
        columns: Number of target units, m.
        reach: Columns on each side of the path.
    """
    width = min(2 * reach, columns) + 1
    lows = middle.round().astype(np.int64) - reach
    return Band(np.clip(lows, 0, columns + 1 - width), width)


def gains_in_band(gains: Callable[[Nodes, Nodes], Gains], band: Band) -> Iterator[Gains]:
    """Yield the gains of blocks that end in each row but row 0, float64 (kinds, width).

    `gains` returns those of rows and columns, (kinds, rows, columns).
    """
    rows = np.arange(1, len(band.lows))
    lows = band.lows[1:]
    # fewer rows where the band is steep
    parts = rows // _ROWS_AT_A_TIME + lows // _COLUMNS_AT_A_TIME
    for part in np.split(rows, np.flatnonzero(np.diff(parts)) + 1):
        columns = np.arange(band.lows[part[0]], band.lows[part[-1]] + band.width)
        tile = gains(part, columns)
        for row, low in enumerate(band.lows[part] - columns[0]):
            yield tile[:, row, low : low + band.width]


def best_path(
    gains: Iterable[Gains], kinds: Sequence[tuple[int, int]], band: Band, columns: int
) -> Steps:
    """Find the blocks with the highest total gain in a band, in order and without overlap.

    Skipping a unit gains nothing, so skipped target units are a running maximum over the columns,
    and the best value of a row stays the same to the right of the band.

    Among equally good paths it chooses, from the end, at every step the first possible of: a block,
    in the order of `kinds`; a skipped source unit; a skipped target unit.

    Args:
        gains: For each row but row 0, the gains of blocks that end in it, by kind and last column,
            float64 (kinds, width).
        kinds: Source and target units of each kind of block.
        band: The columns of each row.
        columns: Number of target units, m.
    """
    lows, width = band
    moves = [*kinds, (1, 0), (0, 1)]
    skip_target = len(moves) - 1
    heights, widths = np.array(moves[:-1]).T
    places = np.arange(width)
    chosen = np.empty((len(lows), width), dtype=np.uint8)
    best = np.zeros((len(lows), width))
    for row, row_gains in enumerate(gains, 1):
        rows = np.maximum(row - heights, 0)
        starts = places + (lows[row] - widths - lows[rows])[:, None]
        reached = best[rows[:, None], np.clip(starts, 0, width - 1)]
        reached[:-1] += row_gains
        reached[starts < 0] = -np.inf
        reached[row < heights] = -np.inf
        most = reached.max(axis=0)
        best[row] = np.maximum.accumulate(most)
        chosen[row] = np.where(best[row] > most, skip_target, reached.argmax(axis=0))
    steps = []
    row = len(lows) - 1
    column = columns
    while row and column:
        column = min(column, int(lows[row]) + width - 1)
        move = int(chosen[row, column - lows[row]])
        height, across = moves[move]
        row -= height
        column -= across
        if height and across:
            steps.append((row, column, height, across))
    return np.array(steps[::-1], np.int64).reshape(-1, 4)


def rough_path(source: Vectors, target: Vectors) -> Steps:
    """Align n and m units, float32 (n, D) and (m, D), in blocks of up to three units.

    The vector of a group is the sum of the vectors of its units.
    """
    levels = [(source, target)]
    while len(source) * len(target) > _MOST_CELLS:
        source = np.add.reduceat(source, np.arange(0, len(source), _GROUP))
        target = np.add.reduceat(target, np.arange(0, len(target), _GROUP))
        levels.append((source, target))
    steps = np.empty((0, 4), np.int64)
    reach = len(target)
    for source, target in reversed(levels):
        columns = path_columns(_GROUP * steps, len(source), len(target))
        band = band_around(columns, len(target), reach)
        means = (source.mean(axis=0), target.mean(axis=0))
        gains = gains_in_band(partial(_rough_gains, source, target, means), band)
        steps = best_path(gains, kinds_of_blocks(_ROUGH_UNITS), band, columns=len(target))
        reach = REACH
    return steps


def path_columns(steps: Steps, n: int, m: int) -> Floats:
    """Return the column of a path through n and m units in each row, (n + 1,)."""
    starts = steps[:, :2]
    ends = starts + steps[:, 2:]
    rows, columns = np.hstack([starts, ends]).reshape(-1, 2).T
    return np.interp(np.arange(n + 1), [0, *rows, n], [0, *columns, m])


def _rough_gains(
    source: Vectors, target: Vectors, means: tuple[Vectors, Vectors], rows: Nodes, columns: Nodes
) -> Gains:
    """Compute gains from cosines, without the mean that all units of a document share."""
    sources = vectors_of_runs(source, rows, _ROUGH_UNITS, mean=means[0])
    targets = vectors_of_runs(target, columns, _ROUGH_UNITS, mean=means[1])
    tiles = []
    for height, width in kinds_of_blocks(_ROUGH_UNITS):
        cosines = cosines_of(sources[height - 1], targets[width - 1])
        tiles.append((height + width) * (cosines - _ROUGH_LEAST))
    return np.stack(tiles)


def units_before(nodes: Nodes, size: int) -> Nodes:
    """Return the number of the first of 1 to `size` units that end at each node, (size, nodes).

    Where there are fewer units, it is 0, and the result means nothing.
    """
    return np.maximum(nodes - np.arange(1, size + 1)[:, None], 0)


def vectors_of_runs(
    vectors: Vectors, nodes: Nodes, size: int, mean: Vectors | float = 0.0
) -> Floats:
    """Return vectors of length 1 of 1 to `size` units that end at each node, (size, nodes, D).

    The vector of several units is the sum of theirs.

    Args:
        vectors: Vectors of the units, float32 (n, D).
        nodes: Numbers of the nodes.
        size: Maximum number of units.
        mean: Vector to subtract from each, (D,).
    """
    units = vectors[units_before(nodes, size)] - mean
    sums = np.cumsum(units, axis=0, dtype=np.float64)
    lengths = np.linalg.norm(sums, axis=-1, keepdims=True)
    runs: Floats = sums / np.maximum(lengths, 1e-9)
    return runs


def cosines_of(source: Floats, target: Floats) -> Vectors:
    """Compute cosines of vectors of length 1, (r, D) and (c, D), float32 (r, c).

    They are rounded once, so they do not depend on threads or on positions in the product.
    """
    return (source @ target.T).astype(np.float32)
