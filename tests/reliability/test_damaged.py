"""Damaged models and pair stores: what is read is as it should be, or refused in one line; nothing crashes or hangs."""

from __future__ import annotations

import contextlib
import multiprocessing
import random
import shutil
import sys
from collections import Counter

import numpy as np
import pytest
from support.data import make_pairs, write_store

from st_paragram import Encoder, PairStore
from st_paragram.core.encoding.model_files import AveragingModel
from st_paragram.core.encoding.table import Table
from st_paragram.errors import ParagramError

_KINDS = ("float32", "float16", "int8", "int4", "store.h5")
_READ = ("st_paragram.json", "config_sentence_transformers.json", "sentencepiece.model", "model.safetensors")
_TEXTS = ["", "ba ce di", "xo yo zu " * 50, "naïve 한국어", "\ud800\x00"]
_LIMIT = 60  # seconds for an example
_MEMORY = 8 << 30  # address space of a process: asking for more fails there, and not on a machine with more memory


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
    return [part.tolist() for side in ("a", "b") for part in store.take(side, np.arange(len(store)), np.int32)]


def example(seed, originals, folder):
    """What one damage led to; it raises what users must never see."""
    rng, kind = random.Random(seed), _KINDS[seed % len(_KINDS)]
    copy, expected = folder / kind, None
    if kind.endswith(".h5"):
        expected = rows_of(PairStore(originals / kind))
        damaged = shutil.copyfile(originals / kind, copy)
    else:
        shutil.rmtree(copy, ignore_errors=True)
        damaged = shutil.copytree(originals / kind, copy) / rng.choice(_READ)
    said = damage(rng, damaged)
    try:
        if expected is not None:
            (store := PairStore(copy)).check()
            assert rows_of(store) == expected, "other rows"
        else:
            vectors = (encoder := Encoder(copy)).encode(_TEXTS)
            assert vectors.shape == (len(_TEXTS), encoder.dimension) and np.isfinite(vectors).all(), vectors
    except (ParagramError, OSError) as error:
        assert "\n" not in str(error) and str(error), repr(error)
        return f"{kind}, {said}: refused"
    return f"{kind}, {said}: read"


def work(seeds, originals, folder, pipe):
    """Try examples one after another; say which one begins, and what came of it."""
    if sys.platform == "linux":
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))
    for seed in seeds:
        pipe.send((seed, None))
        try:
            pipe.send((seed, example(seed, originals, folder)))
        except Exception as error:
            pipe.send((seed, f"FAILED with {type(error).__name__}: {error}"))


def test_a_damaged_file_is_refused_in_one_line_or_read_as_it_was(originals, tmp_path, pytestconfig):
    count, found = pytestconfig.getoption("examples"), {}
    context = multiprocessing.get_context("spawn")
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=work, args=(range(count), originals, tmp_path, sender))
    process.start()
    sender.close()
    with contextlib.suppress(EOFError):  # when the process has ended
        while receiver.poll(_LIMIT):
            seed, said = receiver.recv()
            found[seed] = said or "FAILED: it hung or crashed"
    process.kill()
    failed = {seed: said for seed, said in found.items() if "FAILED" in said}
    print(*sorted(Counter(found.values()).items()), sep="\n")  # noqa: T201 - seen with `-s`
    assert len(found) == count and not failed, failed
