"""Small data: parallel sentences of two invented languages, and their store."""

from __future__ import annotations

import random

from st_paragram.core.pair_store import PairStore, PairStoreWriter

_SYLLABLES = "ba ce di fo gu ha je ki lo mu na pe ri so tu va we xi yo zu".split()  # noqa: SIM905


def _words(rng: random.Random, count: int) -> list[str]:
    words: dict[str, None] = {}
    while len(words) < count:
        words["".join(rng.choices(_SYLLABLES, k=rng.randint(1, 3)))] = None
    return list(words)


def make_pairs(count: int, seed: int = 0, repeat_every: int = 9) -> list[tuple[str, str]]:
    """Sentences and their word-by-word translations; each `repeat_every`-th pair repeats an earlier
    first side.
    """
    rng = random.Random(seed)
    first, second = _words(rng, 80), _words(rng, 80)
    pairs: list[tuple[str, str]] = []
    for index in range(count):
        chosen = rng.choices(range(80), k=rng.randint(3, 8))
        source = " ".join(first[i] for i in chosen)
        target = " ".join(second[i] for i in reversed(chosen))
        if index and index % repeat_every == 0:
            source = pairs[rng.randrange(index)][0]
        pairs.append((source, target))
    return pairs


def write_store(path, pairs, vocabulary, **settings) -> PairStore:
    with PairStoreWriter(path, ("en", "xx"), vocabulary, 100, settings) as writer:
        writer.append(
            *vocabulary.encode([a for a, _ in pairs]), *vocabulary.encode([b for _, b in pairs])
        )
    return PairStore(path)
