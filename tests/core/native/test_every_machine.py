"""What is the same on every processor, whatever its instruction set and compiler.

Sums of means and of searches run in a fixed order. Lengths are not here: a sum of squares is added
up in as many lanes as a processor has.
"""

import hashlib
import os
import subprocess
import sys

import numpy as np
import pytest

from st_paragram.core.native import kernels

pytestmark = pytest.mark.skipif(kernels() is None, reason="the compiled kernels are not installed")

DIGESTS = {
    "means of float32": "eee60a373b62cc74",
    "means of float16": "26ed0b4965fed63d",
    "means of int4": "350d0aed9e55dd62",
    "cosines of float32": "b8814cf4828ac140",
    "cosines of float16": "d022b1e1c5ca8d9f",
    "cosines of int8": "5713fc45ffb36a0c",
    "dropout": "ab00d3e8c6ef5566",
}


def hashed(count, salt):
    """The same numbers everywhere, uint64 (count,): SplitMix64 on a counter."""
    x = np.arange(count, dtype=np.uint64) + np.uint64(salt << 32)
    x = (x ^ x >> np.uint64(30)) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ x >> np.uint64(27)) * np.uint64(0x94D049BB133111EB)
    return x ^ x >> np.uint64(31)


def below(limit, count, salt):
    return (hashed(count, salt) % np.uint64(limit)).astype(np.int64)


def vectors(rows, dim, salt):
    """Multiples of 2^-22 from -1 to 1, float32 (rows, dim)."""
    return (below(1 << 23, rows * dim, salt) / 2.0**22 - 1).astype(np.float32).reshape(rows, dim)


def results():
    """Names and arrays of all that is compared, the names more than once."""
    native = kernels()
    offsets = np.concatenate([[0], np.cumsum(below(30, 400, 3))])
    ids = below(1000, int(offsets[-1]), 4).astype(np.int32)
    rows, lengths = (
        below(1000, 50 * 20, 5).reshape(50, 20),
        np.abs(vectors(1, 1000, 6)[0]) + np.float32(0.5),
    )
    for dim in (7, 100, 1024):
        table = vectors(1000, dim, 7)
        kinds = {"float32": table, "float16": table.astype(np.float16).view(np.uint16)}
        for kind, mean in (("float32", native.mean_rows), ("float16", native.mean_rows_f16)):
            out = np.empty((400, dim), np.float32)
            mean(kinds[kind], ids, offsets, out, False, 2)
            yield f"means of {kind}", out
        if dim % 2 == 0:
            packed, scales = (
                below(256, 1000 * dim // 2, 9).astype(np.uint8).reshape(1000, -1),
                vectors(1, 1000, 10)[0],
            )
            out = np.empty((400, dim), np.float32)
            native.mean_rows_i4(
                packed, np.round(scales * 2.0**15) / np.float32(2**15), ids, offsets, out, False, 2
            )
            yield "means of int4", out
        for kind, shard in (kinds | {"int8": np.round(table * 127).astype(np.int8)}).items():
            out = np.full(rows.shape, -1, np.float32)
            native.candidate_cosines(vectors(50, dim, 8), [shard], lengths, rows, out, 2)
            yield f"cosines of {kind}", out
    yield "dropout", native.dropout_mask(7, 3, 500, 200, 0.3)


def digests():
    hashes = {}
    for name, array in results():
        hashes.setdefault(name, hashlib.sha256()).update(array.tobytes())
    return {name: found.hexdigest()[:16] for name, found in hashes.items()}


def test_the_same_bytes_here():
    assert digests() == DIGESTS


@pytest.mark.parametrize("instructions", ["generic", "avx2"])
def test_the_same_bytes_with_fewer_instructions(instructions):
    """A wish that the processor cannot fulfil falls back on another set."""
    code = "import test_every_machine as test; assert test.digests() == test.DIGESTS"
    env = os.environ | {
        "ST_PARAGRAM_INSTRUCTIONS": instructions,
        "PYTHONPATH": os.pathsep.join(sys.path),
    }
    subprocess.run([sys.executable, "-c", code], env=env, check=True)
