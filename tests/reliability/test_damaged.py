"""Damaged models and pair stores: what is read is as it should be, or refused in one line; nothing
crashes or hangs.
"""

from __future__ import annotations

import faulthandler
import multiprocessing
import random
import shutil
import sys
from concurrent.futures import ProcessPoolExecutor

import numpy as np
import pytest
from support.data import make_pairs, write_store

from st_paragram import Encoder, PairStore
from st_paragram.core.embedding_table import Table
from st_paragram.core.model_directory.model_files import AveragingModel
from st_paragram.errors import ParagramError

_KINDS = ("float32", "float16", "int8", "int4", "store.h5")
_READ = (
    "st_paragram.json",
    "config_sentence_transformers.json",
    "sentencepiece.model",
    "model.safetensors",
)
_TEXTS = ["", "ba ce di", "xo yo zu " * 50, "naïve 한국어", "\ud800\x00"]
_LIMIT = 60  # seconds for an example
# address space of a process: asking for more fails there, and not on a machine with more memory
_MEMORY = 8 << 30


@pytest.fixture(scope="module")
def originals(tmp_path_factory, vocabulary):
    folder = tmp_path_factory.mktemp("originals")
    rows = np.random.default_rng(0).standard_normal((len(vocabulary), 6)).astype(np.float32)
    for kind in _KINDS[:-1]:
        Encoder(AveragingModel(vocabulary, Table(rows))).save(folder / kind, dtype=kind)
    write_store(folder / _KINDS[-1], make_pairs(60), vocabulary)
    return folder


def damage(rng, path):
    """Remove a file, empty it, cut it, or change some bytes, often of its first ones."""
    content = bytearray(path.read_bytes())
    how = rng.choices(("removed", "emptied", "cut", "changed"), (1, 1, 6, 12))[0]
    within = min(len(content), rng.choice((100, 5000, len(content))))
    if how == "cut":
        del content[rng.randrange(within) :]
    for _ in range(rng.randint(1, 4) if how == "changed" else 0):
        content[rng.randrange(within)] = rng.choice((0, 255, rng.randrange(256)))
    path.write_bytes(b"" if how == "emptied" else content)
    if how == "removed":
        path.unlink()
    return f"{path.name} {how}"


def rows_of(store):
    return [
        part.tolist()
        for side in ("a", "b")
        for part in store.take(side, np.arange(len(store)), np.int32)
    ]


def example(seed, originals, folder):
    """Damage a file and read it; raises what users must never see."""
    faulthandler.dump_traceback_later(_LIMIT, exit=True)
    rng, kind = random.Random(seed), _KINDS[seed % len(_KINDS)]
    copy = folder / kind
    if kind.endswith(".h5"):
        damaged = shutil.copyfile(originals / kind, copy)
    else:
        shutil.rmtree(copy, ignore_errors=True)
        damaged = shutil.copytree(originals / kind, copy) / rng.choice(_READ)
    said = damage(rng, damaged)
    try:
        if kind.endswith(".h5"):
            (store := PairStore(copy)).check()
            assert rows_of(store) == rows_of(PairStore(originals / kind)), (
                f"{seed}, {said}: other rows"
            )
        else:
            vectors = (encoder := Encoder(copy)).encode(_TEXTS)
            assert (
                vectors.shape == (len(_TEXTS), encoder.dimension) and np.isfinite(vectors).all()
            ), f"{seed}, {said}"
    except (ParagramError, OSError) as error:
        assert "\n" not in str(error) and str(error), f"{seed}, {said}: {error!r}"


def limit_memory():
    if sys.platform == "linux":
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))


def test_a_damaged_file_is_refused_in_one_line_or_read_as_it_was(originals, tmp_path, pytestconfig):
    """In a separate process, which may crash or hang."""
    spawn = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, spawn, limit_memory) as pool:
        for seed in range(pytestconfig.getoption("examples")):
            pool.submit(example, seed, originals, tmp_path).result()
