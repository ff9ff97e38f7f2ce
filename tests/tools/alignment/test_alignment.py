import itertools
from dataclasses import replace
from functools import lru_cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from st_paragram.tools.alignment.align import KINDS, Block, align, best_path
from st_paragram.tools.alignment.settings import AlignmentSettings
from st_paragram.tools.bitext_mining.margin import Margin


def bag(texts):
    """Embed a text as the sum of random vectors of its words, scaled; a word `es:x` is near `x`, a
    word `?` unknown.
    """
    rows = np.zeros((len(texts), 24))
    for row, text in zip(rows, texts, strict=True):
        for word in text.replace("?", "").split():
            row += _word(word)
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    return (rows / np.where(lengths == 0, 1, lengths)).astype(np.float32)


@lru_cache
def _word(word):
    base, foreign = word.removeprefix("es:"), word.startswith("es:")
    seeds = [sum(ord(c) * 257**i for i, c in enumerate(name)) for name in (base, base + "'")]
    vectors = [np.random.default_rng(seed % 2**32).standard_normal(24) for seed in seeds]
    return vectors[0] + 0.3 * foreign * vectors[1]


def plain_score(source, target, block, embed, margin, k):
    """The score of a block by the book."""
    unit = lambda texts: [v / np.linalg.norm(v) for v in embed(texts).astype(np.float64)]  # noqa: E731
    one = unit([" ".join(source[i] for i in block.source)])[0]
    other = unit([" ".join(target[j] for j in block.target)])[0]
    own = np.mean(sorted((float(one @ v) for v in unit(target)), reverse=True)[:k])
    others = np.mean(sorted((float(other @ v) for v in unit(source)), reverse=True)[:k])
    cosine, background = float(one @ other), (own + others) / 2
    return {
        Margin.RATIO: cosine / max(background, 1e-6),
        Margin.DISTANCE: cosine - background,
        Margin.ABSOLUTE: cosine,
    }[margin]


def gain_matrices(draw, n, m):
    value = st.sampled_from([-1.0, -0.5, 0.0, 0.25, 0.5, 1.0])  # ties are frequent, and sums exact
    rows = [
        tuple(np.array(draw(st.lists(value, min_size=w, max_size=w))) for w in (m, m - 1, m))
        for _ in range(n)
    ]
    return rows


def plain_path(rows, n, m):
    """The tie rule: read from the end, the first move that keeps the best value."""
    best = np.zeros((n + 1, m + 1))
    moves = [*KINDS, (1, 0), (0, 1)]

    def value(i, j, kind):
        ahead, across = moves[kind]
        if i < ahead or j < across:
            return -np.inf
        return best[i - ahead, j - across] + (rows[i - 1][kind][j - across] if kind < 3 else 0.0)

    for i, j in itertools.product(range(1, n + 1), range(1, m + 1)):
        best[i, j] = max(value(i, j, kind) for kind in range(5))
    way, i, j = [], n, m
    while i and j:
        kind = next(kind for kind in range(5) if value(i, j, kind) == best[i, j])
        i, j = i - moves[kind][0], j - moves[kind][1]
        way += [(i, j, kind)] if kind < 3 else []
    return way[::-1]


@settings(max_examples=60)
@given(st.data(), st.integers(1, 8), st.integers(1, 8))
def test_the_best_path_and_of_equally_good_ones_the_first_by_the_rule(data, n, m):
    rows = gain_matrices(data.draw, n, m)
    found = [(i, j, kind) for kind, i, j in best_path(iter(rows), n, m)]
    assert found == plain_path(rows, n, m)


sentences = st.lists(
    st.sampled_from(["a b", "c", "d e f", "g h", "es:a es:b", "es:c", "es:d es:e", "es:f es:g"]),
    min_size=1,
    max_size=4,
)


@settings(max_examples=40)
@given(
    sentences,
    sentences,
    st.sampled_from(Margin),
    st.integers(1, 3),
    st.sampled_from([None, -1.0, 0.2, 1.3]),
)
def test_alignments_are_optimal_by_the_book(source, target, margin, k, skip):
    chosen = AlignmentSettings(k, margin, skip)
    blocks = align(source, target, bag, chosen)
    for block in blocks:
        expected = plain_score(source, target, block, bag, margin, k)
        assert block.score == pytest.approx(expected, rel=1e-5, abs=1e-5)
        assert (len(block.source), len(block.target)) in KINDS

    def gain(i, j, kind):
        """Of the block that ends with source sentence i and begins with target sentence j."""
        ahead, across = KINDS[kind]
        block = Block(tuple(range(max(i - ahead + 1, 0), i + 1)), tuple(range(j, j + across)), 0.0)
        return plain_score(source, target, block, bag, margin, k) - chosen.least

    n, m = len(source), len(target)
    rows = [
        [[gain(i, j, kind) for j in range(m - KINDS[kind][1] + 1)] for kind in range(3)]
        for i in range(n)
    ]
    best = sum(rows[i + KINDS[kind][0] - 1][kind][j] for i, j, kind in plain_path(rows, n, m))
    assert sum(block.score - chosen.least for block in blocks) == pytest.approx(
        best, rel=1e-4, abs=1e-4
    )
    every = align(source, target, bag, replace(chosen, with_skipped=True))
    assert [block for block in every if block.source and block.target] == blocks
    for side, sentences in enumerate((source, target)):
        rows = [row for block in every for row in (block.source, block.target)[side]]
        assert rows == list(range(len(sentences)))


@pytest.mark.parametrize(
    ("source", "target"), [(["?", "?"], ["c"]), (["c"], ["?"]), (["?"], ["?"])]
)
def test_documents_without_known_tokens_have_only_skipped_sentences(source, target):
    assert align(source, target, bag) == []
    every = align(source, target, bag, AlignmentSettings(with_skipped=True))
    skipped = [Block((row,), (), 0.0) for row in range(len(source))]
    assert every == [*skipped, *(Block((), (row,), 0.0) for row in range(len(target)))]


def test_a_sentence_without_a_known_token_costs_what_a_missing_sentence_costs():
    source, target = ["a b", "?", "c", "d e f"], ["es:a es:b", "es:c", "?", "es:d es:e"]
    blocks = align(source, target, bag)
    without = align(["a b", "c", "d e f"], ["es:a es:b", "es:c", "es:d es:e"], bag)
    assert [(block.source, block.target) for block in blocks] == [
        ((0,), (0,)),
        ((2,), (1,)),
        ((3,), (3,)),
    ]
    assert [block.score for block in blocks] == [block.score for block in without]
    every = align(source, target, bag, AlignmentSettings(with_skipped=True))
    assert every == [blocks[0], Block((1,), (), 0.0), *blocks[1:2], Block((), (2,), 0.0), blocks[2]]


def test_a_skipped_sentence_within_a_block_is_not_lost():
    source, target = ["a b", "?", "c d"], ["es:a es:b es:c es:d"]
    every = align(source, target, bag, AlignmentSettings(with_skipped=True))
    assert [(block.source, block.target) for block in every] == [((0, 2), (0,)), ((1,), ())]
