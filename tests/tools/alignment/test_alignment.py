import itertools
from dataclasses import replace
from functools import lru_cache

import numpy as np
import pytest
from alignment import make_document
from hypothesis import given, settings
from hypothesis import strategies as st

from st_paragram import Encoder, sample_pairs
from st_paragram.errors import MiningError, SettingsError
from st_paragram.tools.alignment import align as module
from st_paragram.tools.alignment import path
from st_paragram.tools.alignment.align import Block, align
from st_paragram.tools.alignment.path import (
    Band,
    band_around,
    best_path,
    gains_in_band,
    kinds_of_blocks,
    path_columns,
    rough_path,
)
from st_paragram.tools.alignment.settings import AlignmentSettings


class Bag:
    """Embeds a text as the sum of random vectors of its words; a word `es:x` is near `x`, a word
    `?` unknown.
    """

    def encode(self, texts, **_):
        rows = np.zeros((len(texts), 24), np.float32)
        for row, text in zip(rows, texts, strict=True):
            for word in text.replace("?", "").split():
                row += _word(word)
        return rows

    def get_embedding_dimension(self):
        return 24


@lru_cache
def _word(word):
    base, foreign = word.removeprefix("es:"), word.startswith("es:")
    seeds = [sum(ord(c) * 257**i for i, c in enumerate(name)) for name in (base, base + "'")]
    vectors = [np.random.default_rng(seed % 2**32).standard_normal(24) for seed in seeds]
    return vectors[0] + 0.3 * foreign * vectors[1]


BAG = Bag()
KINDS = ((1, 1), (1, 2), (2, 1), (2, 2))


def test_the_name_of_a_model_is_refused():
    with pytest.raises(SettingsError, match=r"give Encoder\('p-sp-mini'\)"):
        align(["A house."], ["Una casa."], "p-sp-mini")


def rows_of(blocks):
    return [(block.source, block.target) for block in blocks]


def plain_path(gain, n, m, kinds):
    """The tie rule: read from the end, the first move that keeps the best value.

    `gain` has the gain of a block of a kind that ends at node (i, j).
    """
    best = np.zeros((n + 1, m + 1))
    moves = [*kinds, (1, 0), (0, 1)]

    def value(i, j, kind):
        height, width = moves[kind]
        if i < height or j < width:
            return -np.inf
        return best[i - height, j - width] + (gain(kind, i, j) if kind < len(kinds) else 0.0)

    for i, j in itertools.product(range(1, n + 1), range(1, m + 1)):
        best[i, j] = max(value(i, j, kind) for kind in range(len(moves)))
    steps, i, j = [], n, m
    while i and j:
        kind = next(kind for kind in range(len(moves)) if value(i, j, kind) == best[i, j])
        height, width = moves[kind]
        i, j = i - height, j - width
        steps += [[i, j, height, width]] if kind < len(kinds) else []
    return steps[::-1]


@settings(max_examples=60)
@given(st.data(), st.integers(1, 7), st.integers(1, 7))
def test_the_best_path_and_of_equally_good_ones_the_first_by_the_rule(data, n, m):
    value = st.sampled_from([-1.0, -0.5, 0.0, 0.25, 0.5, 1.0])  # ties are frequent, and sums exact
    count = n * len(KINDS) * (m + 1)
    gains = np.array(data.draw(st.lists(value, min_size=count, max_size=count)))
    gains = gains.reshape(n, len(KINDS), m + 1)
    band = Band(np.zeros(n + 1, int), m + 1)
    steps = best_path(gains, KINDS, band, m)
    assert steps.tolist() == plain_path(lambda kind, i, j: gains[i - 1, kind, j], n, m, KINDS)


def test_in_a_band_units_to_the_right_are_skipped():
    lows = np.array([0, 0, 5, 6])
    gains = np.full((3, 1, 2), -1.0)
    gains[0, 0, 1] = 1  # ends at node (1, 1)
    gains[1, 0, 1] = 1  # (2, 6), begins right of the band of row 1
    gains[2, 0, 1] = 1  # (3, 7)
    steps = best_path(gains, [(1, 1)], Band(lows, 2), 9)
    assert steps.tolist() == [[0, 0, 1, 1], [1, 5, 1, 1], [2, 6, 1, 1]]


def test_gains_of_a_band_are_computed_in_small_parts():
    lows = np.concatenate([np.arange(100), np.arange(5000, 5600, 4), np.full(200, 5600)])
    sizes = []

    def gains(rows, columns):
        sizes.append(len(rows) * len(columns))
        return np.add.outer(1000 * rows, columns)[None]

    rows = list(gains_in_band(gains, Band(lows, 7)))
    assert max(sizes) < 128 * 300 and len(rows) == len(lows) - 1
    for number, row in enumerate(rows, 1):
        assert row.tolist() == [
            list(range(1000 * number + lows[number], 1000 * number + lows[number] + 7))
        ]


def test_a_band_keeps_its_width():
    band = band_around(np.array([0.0, 4.4, 9.0]), 9, reach=2)
    assert band.lows.tolist() == [0, 2, 5] and band.width == 5
    assert band_around(np.array([0.0, 2.0]), 2, reach=9) == (pytest.approx([0, 0]), 3)


def plain_gain(source, target, chosen, kind, i, j):
    """The gain of a block that ends at node (i, j), by the book, for lengths of equal scale."""

    def unit(sentences):
        total = np.zeros(24)
        for sentence in sentences:
            [vector] = BAG.encode([sentence]).astype(float)
            total += vector / np.linalg.norm(vector) * np.sqrt(len(sentence))
        return total / np.linalg.norm(total)

    def background(side, others):
        cosines = sorted((float(unit([other]) @ unit(side)) for other in others), reverse=True)
        return np.mean(np.clip(cosines[: chosen.neighbors], 0.25, 0.999))

    def distance(first, second):
        return (1 - unit(first) @ unit(second)) / (
            2 - background(first, target) - background(second, source)
        )

    a, b = kind
    first, second = source[i - a : i], target[j - b : j]
    d = distance(first, second)
    if d > 0.65:
        return -np.inf
    x, y = (sum(map(len, side)) for side in (first, second))
    cost = (a + b) / 2 * d + 0.13 * (a + b - 2) + (x - y) ** 2 / (100 * (x + y))
    for sentence in (first[0], first[-1]) if a > 1 else ():
        cost += 0.6 * max(distance([sentence], second) - 0.6, 0)
    for sentence in (second[0], second[-1]) if b > 1 else ():
        cost += 0.6 * max(distance(first, [sentence]) - 0.6, 0)
    return (a + b) * chosen.skip_cost - cost


SENTENCES = st.lists(
    st.sampled_from(["ay bo", "cy", "do ef", "gi hu", "es:ay es:bo", "es:cy", "es:do es:ef"]),
    min_size=1,
    max_size=5,
)


@settings(max_examples=40)
@given(SENTENCES, SENTENCES, st.integers(1, 3), st.integers(1, 3), st.sampled_from([0.2, 0.44]))
def test_alignments_are_optimal_by_the_book(source, target, max_sentences, neighbors, skip_cost):
    chosen = AlignmentSettings(
        max_sentences=max_sentences, neighbors=neighbors, skip_cost=skip_cost
    )
    kinds = kinds_of_blocks(max_sentences)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("st_paragram.tools.alignment.gains.np.median", lambda _: 1.0)
        blocks = align(source, target, BAG, chosen)

    @lru_cache
    def gain(kind, i, j):
        return plain_gain(source, target, chosen, kinds[kind], i, j)

    def total(steps):
        return sum(gain(kinds.index((a, b)), i + a, j + b) for i, j, a, b in steps)

    found = [(b.source[0], b.target[0], len(b.source), len(b.target)) for b in blocks]
    best = plain_path(gain, len(source), len(target), kinds)
    assert total(found) == pytest.approx(total(best), abs=1e-5)
    every = align(source, target, BAG, replace(chosen, with_skipped=True))
    for side, sentences in enumerate((source, target)):
        rows = [row for block in rows_of(every) for row in block[side]]
        assert rows == list(range(len(sentences)))


def test_the_score_is_the_cosine_of_the_joined_sides():
    [block] = align(["ay bo", "cy"], ["es:ay es:bo es:cy"], BAG)
    first, second = BAG.encode(["ay bo cy", "es:ay es:bo es:cy"]).astype(float)
    cosine = first @ second / np.linalg.norm(first) / np.linalg.norm(second)
    assert rows_of([block]) == [((0, 1), (0,))] and block.score == pytest.approx(cosine, abs=1e-6)


@pytest.fixture(scope="module")
def documents():
    return make_document(list(sample_pairs("es", 500)), np.random.default_rng(0))


def test_a_band_gives_the_same_result_as_the_full_search(documents, monkeypatch):
    source, target, _ = documents
    check_same(source[:250], target[:250], monkeypatch)


@pytest.mark.slow
def test_a_band_gives_the_same_result_as_the_full_search_of_2000_sentences(monkeypatch):
    source, target, _ = make_document(list(sample_pairs("es", 2400)), np.random.default_rng(1))
    assert len(source) >= 2000 and len(target) >= 2000
    check_same(source[:2000], target[:2000], monkeypatch)


def check_same(source, target, monkeypatch):
    model = Encoder("p-sp-mini")
    in_band = align(source, target, model)
    monkeypatch.setattr(module, "band_around", lambda rough, m: band_around(rough, m, reach=m))
    assert align(source, target, model) == in_band and len(in_band) > len(source) / 2


def test_a_missing_chapter_is_skipped(documents):
    source, target, gold = documents
    missing = set(range(120, 330))
    rest = [text for row, text in enumerate(target) if row not in missing]
    blocks = rows_of(align(source, rest, Encoder("p-sp-mini")))
    before = {block for block in gold if all(block) and block[1][-1] < 120}
    after = {(s, tuple(j - 210 for j in t)) for s, t in gold if s and t and t[0] >= 330}
    for kept in (before, after):
        assert len(kept & set(blocks)) > 0.85 * len(kept)


def test_an_excerpt_is_found(documents):
    source, target, gold = documents
    blocks = rows_of(align(source[200:220], target, Encoder("p-sp-mini")))
    kept = {(tuple(i - 200 for i in s), t) for s, t in gold if s and t}
    kept = {(s, t) for s, t in kept if s[0] >= 0 and s[-1] < 20}
    assert len(kept & set(blocks)) > 0.85 * len(kept) > 10


@pytest.mark.parametrize("cells", [1_000_000, 2_000])
def test_a_rough_path_finds_where_a_translation_begins(cells, monkeypatch):
    monkeypatch.setattr(path, "_MOST_CELLS", cells)
    vectors = np.random.default_rng(0).standard_normal((400, 24)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    nodes = path_columns(rough_path(vectors, vectors[100:]), 400, 300)
    assert np.abs(nodes[100:] - np.arange(301)).max() <= 3 and nodes[:98].max() == 0


def test_the_path_between_groups_is_straight():
    nodes = path_columns(4 * np.array([[1, 2, 1, 1]]), 8, 16)
    assert nodes.tolist() == [0, 2, 4, 6, 8, 9, 10, 11, 16]


def test_blocks_do_not_cross_the_ends_of_sections():
    source = ["ay bo", "cy", ".EOA", "do ef"]
    target = ["es:ay es:bo", ".EOA", "es:cy", "es:do es:ef"]
    settings = AlignmentSettings(boundary=".EOA")
    assert rows_of(align(source, target, BAG, settings)) == [((0,), (0,)), ((3,), (3,))]
    every = rows_of(align(source, target, BAG, replace(settings, with_skipped=True)))
    assert every == [((0,), (0,)), ((1,), ()), ((), (2,)), ((3,), (3,))]
    with pytest.raises(MiningError, match="source has 2 sections, the target 1 section; write as"):
        align(source, target[2:], BAG, settings)


@pytest.mark.parametrize(
    ("source", "target"), [(["?", "?"], ["cy"]), (["cy"], ["?"]), (["?"], ["?"]), ([], ["cy"])]
)
def test_documents_without_known_tokens_have_only_skipped_sentences(source, target):
    assert align(source, target, BAG) == []
    every = align(source, target, BAG, AlignmentSettings(with_skipped=True))
    skipped = [Block((row,), (), 0.0) for row in range(len(source))]
    assert every == [*skipped, *(Block((), (row,), 0.0) for row in range(len(target)))]


def test_a_sentence_without_a_known_token_is_skipped():
    source, target = ["ay bo", "?", "cy", "do ef"], ["es:ay es:bo", "es:cy", "?", "es:do es:ef"]
    blocks = align(source, target, BAG)
    without = align(["ay bo", "cy", "do ef"], ["es:ay es:bo", "es:cy", "es:do es:ef"], BAG)
    assert rows_of(blocks) == [((0,), (0,)), ((2,), (1,)), ((3,), (3,))]
    assert [block.score for block in blocks] == [block.score for block in without]
    every = align(source, target, BAG, AlignmentSettings(with_skipped=True))
    assert every == [blocks[0], Block((1,), (), 0.0), *blocks[1:2], Block((), (2,), 0.0), blocks[2]]


def test_a_skipped_sentence_within_a_block_is_not_lost():
    source, target = ["ay bo", "?", "cy do"], ["es:ay es:bo es:cy es:do"]
    every = align(source, target, BAG, AlignmentSettings(with_skipped=True))
    assert rows_of(every) == [((0, 2), (0,)), ((1,), ())]
