"""Small data for all tests: parallel sentences of two invented languages, their vocabulary and
their store.
"""

from __future__ import annotations

import gc
import os
import sys

os.environ.setdefault("HF_HUB_OFFLINE", "1")
# The processes of the tests share the cores: more threads in each only wait for each other.
os.environ.setdefault("OMP_NUM_THREADS", "1")
# threads that wait leave the cores to the other processes
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

import hypothesis
import numpy as np
import pytest
from support.data import make_pairs, write_store

from st_paragram.core.native import usable_cores
from st_paragram.core.pair_store import PairStore
from st_paragram.core.tokenizers.sentencepiece import SentencePieceTokenizer, train_vocabulary

# The same examples in every run, and no limit of time: the machine may be busy.
hypothesis.settings.register_profile(
    "tests", max_examples=60, derandomize=True, deadline=None, database=None
)
hypothesis.settings.load_profile("tests")


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers():
    """As many as there are cores: each imports all libraries, which takes ten seconds."""
    return min(4, usable_cores())


def pytest_addoption(parser):
    parser.addoption(
        "--examples",
        type=int,
        default=200,
        help="damaged files that reliability/test_damaged.py tries",
    )


def pytest_collection_modifyitems(items):
    """Slow tests first, so that no process is left with one at the end."""
    items.sort(key=lambda item: item.get_closest_marker("slow") is None)


def pytest_configure():
    """Imports leave little garbage, and looking for it takes a tenth of their time. What is
    compiled is kept for the many processes that tests start.
    """
    gc.disable()
    sys.dont_write_bytecode = False
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)


def pytest_collection_finish():
    """Take what was imported out of the garbage collector's sight: trainers call it often, each
    time for nothing.
    """
    gc.enable()
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True)
def _determinism(monkeypatch, tmp_path_factory):
    import torch

    # without a GPU, `torch.manual_seed` would keep a stack trace for each test
    seed = torch.manual_seed if torch.cuda.is_available() else torch.default_generator.manual_seed
    seed(0)
    monkeypatch.delenv("ST_PARAGRAM_CACHE", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.getbasetemp() / "cache"))


@pytest.fixture(scope="session")
def pairs() -> list[tuple[str, str]]:
    return make_pairs(700)


@pytest.fixture(scope="session")
def vocabulary(pairs) -> SentencePieceTokenizer:
    return SentencePieceTokenizer(train_vocabulary((text for pair in pairs for text in pair), 300))


@pytest.fixture(scope="session")
def store(tmp_path_factory, pairs, vocabulary) -> PairStore:
    return write_store(
        tmp_path_factory.mktemp("store") / "en-xx.h5", pairs, vocabulary, note="made for tests"
    )


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(0)


@pytest.fixture(scope="module")
def one_thread():
    """One thread of torch: an LSTM's many small steps gain nothing by more, and lose much on a busy
    machine.
    """
    import torch

    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)
