"""The masks of the compiled step's dropout: as written down here, alike everywhere, and random."""

import numpy as np
import pytest

from st_paragram.core.native import kernels

pytestmark = pytest.mark.skipif(kernels() is None, reason="the compiled kernels are not installed")


def mixed(x):
    """SplitMix64 on Python's integers."""
    x = (x + 0x9E3779B97F4A7C15) % 2**64
    x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9 % 2**64
    x = (x ^ x >> 27) * 0x94D049BB133111EB % 2**64
    return x ^ x >> 31


def expected(seed, step, occurrences, dim, p):
    """The definition: 32 bits of a hash for two components, compared with p in 65,536ths."""
    masks = np.zeros((occurrences, dim), np.float32)
    first = mixed((mixed(seed) + step) % 2**64)
    for i in range(occurrences):
        key = mixed((first + i) % 2**64)
        for d in range(dim):
            x = (key + (d // 64 * 32 + d % 32) * 0x9E3779B9) % 2**32
            x = (x ^ x >> 16) * 0x7FEB352D % 2**32 ^ key >> 32
            x = (x ^ x >> 15) * 0x846CA68B % 2**32
            x ^= x >> 16
            half = x >> 16 if d % 64 >= 32 else x % 2**16
            masks[i, d] = (half + 2**15) % 2**16 >= round(p * 2**16)
    return masks


@pytest.mark.parametrize("dim", [1, 31, 33, 64, 100, 200])
@pytest.mark.parametrize(
    ("seed", "step", "p"), [(0, 0, 0.1), (2**64 - 1, 10**12, 0.3), (42, 7, 0.99999)]
)
def test_is_what_is_written_down(dim, seed, step, p):
    np.testing.assert_array_equal(
        kernels().dropout_mask(seed, step, 9, dim, p), expected(seed, step, 9, dim, p)
    )


@pytest.mark.parametrize("p", [0.001, 0.1, 0.3, 0.5, 0.9, 0.999])
def test_keeps_its_share(p):
    """1.28 million draws: all of them within 3 standard deviations, so are components and tokens as
    a chi-square.
    """
    p = round(p * 2**16) / 2**16
    # centred on 0, of variance 1
    x = (kernels().dropout_mask(1, 0, 2000, 640, p) - (1 - p)) / np.sqrt(p * (1 - p))
    assert abs(x.sum()) < 3 * np.sqrt(x.size)
    for axis in (0, 1):
        sums = x.sum(axis)
        degrees = len(sums)
        chi_square = (sums**2).sum() / x.shape[axis]
        assert abs(chi_square - degrees) < 4 * np.sqrt(
            2 * degrees * (1 + 1 / (p * (1 - p) * x.shape[axis]))
        )
