"""Small data for all tests: parallel sentences of two invented languages, their vocabulary and their store."""

from __future__ import annotations

import os
import random

os.environ.setdefault("HF_HUB_OFFLINE", "1")

import hypothesis
import numpy as np
import pytest
import torch

from st_paragram.data.pair_store import PairStore, PairStoreWriter
from st_paragram.data.vocabulary import Vocabulary, train_vocabulary

# The same examples in every run, and no limit of time: the machine may be busy.
hypothesis.settings.register_profile("tests", derandomize=True, deadline=None, database=None)
hypothesis.settings.load_profile("tests")

_SYLLABLES = "ba ce di fo gu ha je ki lo mu na pe ri so tu va we xi yo zu".split()  # noqa: SIM905


def _words(rng: random.Random, count: int) -> list[str]:
    words: dict[str, None] = {}
    while len(words) < count:
        words["".join(rng.choices(_SYLLABLES, k=rng.randint(1, 3)))] = None
    return list(words)


def make_pairs(count: int, seed: int = 0, repeat_every: int = 9) -> list[tuple[str, str]]:
    """Sentences and their word-by-word translations; each `repeat_every`-th pair repeats an earlier first side."""
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


@pytest.fixture(autouse=True)
def _determinism(monkeypatch, tmp_path_factory):
    torch.manual_seed(0)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.getbasetemp() / "cache"))


@pytest.fixture(scope="session")
def pairs() -> list[tuple[str, str]]:
    return make_pairs(700)


@pytest.fixture(scope="session")
def vocabulary(pairs) -> Vocabulary:
    return Vocabulary(train_vocabulary((text for pair in pairs for text in pair), 300))


def write_store(path, pairs, vocabulary, **settings) -> PairStore:
    with PairStoreWriter(path, ("en", "xx"), vocabulary, 100, settings) as writer:
        writer.append(*vocabulary.encode([a for a, _ in pairs]), *vocabulary.encode([b for _, b in pairs]))
    return PairStore(path)


@pytest.fixture(scope="session")
def store(tmp_path_factory, pairs, vocabulary) -> PairStore:
    return write_store(tmp_path_factory.mktemp("store") / "en-xx.h5", pairs, vocabulary, note="made for tests")


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(0)
