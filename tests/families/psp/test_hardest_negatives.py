"""The search for hardest negatives in each precision, against a plain search in float64."""

import os

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from st_paragram.families.psp.hardest_negatives import (
    Precision,
    hardest_negatives,
    has_byte_products,
)

# The largest difference of cosines that rounding can make: see `Precision`. Vectors with a few
# large components are the worst case for INT8, whose scale is set by the largest.
SLACK = {Precision.FLOAT32: 1e-6, Precision.BFLOAT16: 0.012, Precision.INT8: 0.012}
PRECISIONS = [
    Precision.FLOAT32,
    Precision.BFLOAT16,
    pytest.param(
        Precision.INT8,
        marks=pytest.mark.skipif(not has_byte_products(), reason="no 8-bit products here"),
    ),
]


def make(n, dim, seed=0, labels=False):
    """Pairs that resemble each other and, somewhat, all others; some texts occur again."""
    generator = torch.Generator().manual_seed(seed)
    common = torch.randn(dim, generator=generator) * 0.3
    s = torch.randn(n, dim, generator=generator) + common
    t = s + 0.8 * torch.randn(n, dim, generator=generator)
    if not labels:
        return s, t, None
    names = torch.randint(0, n, (2, n), generator=generator), torch.tensor(0)
    return s, t, (names[0][0], names[0][1] + n * (torch.arange(n) % 3 > 0))


def check(s, t, texts, both, precision, slack):
    n = len(s)
    found = torch.cat(hardest_negatives(s, t, texts, both, block=64, precision=precision))
    rows = F.normalize(torch.cat([s, t]).double(), dim=1)
    pool = rows if both else torch.cat([rows[n:], rows[:n]])
    for i in range(2 * n):
        candidates = pool if both else (pool[:n] if i < n else pool[n:])
        pairs = torch.arange(len(candidates)) % n
        allowed = pairs != i % n
        if texts:
            for own in (texts[0][i % n], texts[1][i % n]):
                allowed &= (texts[0][pairs] != own) & (texts[1][pairs] != own)
        partner = (i + n) % (2 * n) if both else i % n
        if not allowed.any():
            assert found[i] == partner
            continue
        cosines = candidates @ rows[i]
        assert allowed[found[i]], (i, found[i])
        assert cosines[found[i]] >= cosines[allowed].max() - slack


@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize("both", [False, True])
@pytest.mark.parametrize("labels", [False, True])
@pytest.mark.parametrize(("n", "dim"), [(1, 3), (2, 5), (7, 16), (65, 33), (200, 64), (130, 300)])
def test_finds_the_hardest(precision, both, labels, n, dim):
    check(*make(n, dim, labels=labels), both, precision, SLACK[precision])


@pytest.mark.skipif(not has_byte_products(), reason="no 8-bit products here")
@pytest.mark.parametrize("both", [False, True])
def test_bytes_find_the_same_on_any_number_of_threads(both):
    s, t, texts = make(500, 48, labels=True)
    s[100:200] = s[:100]  # ties
    results = []
    for threads in (1, 2, 3, 7):
        torch.set_num_threads(threads)
        results.append(torch.cat(hardest_negatives(s, t, texts, both, precision=Precision.INT8)))
    torch.set_num_threads(1)
    assert all(torch.equal(results[0], other) for other in results)


@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize("both", [False, True])
def test_degenerate_embeddings_do_no_harm(precision, both):
    zero = torch.zeros(9, 8)
    for s, t in (
        (zero, zero),
        (torch.ones(9, 8), torch.ones(9, 8)),
        (torch.eye(9, 8) * 1e-30, zero + 1e30),
    ):
        of_s, of_t = hardest_negatives(s, t, None, both, precision=precision)
        limit = 18 if both else 9
        assert ((of_s >= 0) & (of_s < limit) & (of_t >= 0) & (of_t < limit)).all()
    same = torch.zeros(9, dtype=torch.long)
    of_s, of_t = hardest_negatives(
        torch.randn(9, 8), torch.randn(9, 8), (same, same), both, precision=precision
    )
    partners = torch.arange(9)
    assert torch.equal(of_s, partners + 9 * both) and torch.equal(of_t, partners)


def test_auto_takes_what_the_device_has():
    assert Precision.AUTO.on(torch.device("cuda")) is Precision.TF32
    assert Precision.FLOAT32.on(torch.device("cuda")) is Precision.FLOAT32


def test_without_kernels_auto_does_without_bytes(monkeypatch):
    monkeypatch.setattr("st_paragram.families.psp.hardest_negatives.kernels", lambda: None)
    assert Precision.AUTO.on(torch.device("cpu")) in (Precision.FLOAT32, Precision.BFLOAT16)
    check(*make(20, 8), False, Precision.AUTO, 0.012)


def test_tensor_float_leaves_torchs_setting_as_it_was():
    before = torch.get_float32_matmul_precision()
    check(*make(20, 8), False, Precision.TF32, 0.01)
    assert torch.get_float32_matmul_precision() == before


@pytest.mark.skipif(not has_byte_products(), reason="no 8-bit products here")
def test_a_forked_process_can_search(tmp_path):
    """A forked child has none of the threads of the compiled loops, and must start new threads."""
    if not hasattr(os, "fork"):
        pytest.skip("no fork here")
    s, t, _ = make(300, 32)
    torch.set_num_threads(2)
    expected = hardest_negatives(s, t, precision=Precision.INT8)
    program = os.fork()
    if program == 0:
        same = all(map(torch.equal, hardest_negatives(s, t, precision=Precision.INT8), expected))
        os._exit(0 if same else 1)
    torch.set_num_threads(1)
    assert os.waitstatus_to_exitcode(os.waitpid(program, 0)[1]) == 0
    assert np.array_equal(expected[0], hardest_negatives(s, t, precision=Precision.INT8)[0])
