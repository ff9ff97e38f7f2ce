"""Short campaigns on every target, and the campaigns themselves."""

import types

import pytest

from hostile.campaign import TARGETS, is_defect, load, one_try, run_here
from st_paragram.errors import StoreError


@pytest.mark.parametrize("name", TARGETS)
def test_nothing_but_plain_refusals(name):
    assert sum(run_here(name, load(name).QUICK).values()) == load(name).QUICK


def _attempt(error):
    def attempt(shared, rng, folder):
        raise error

    return types.SimpleNamespace(attempt=attempt)


def test_errors_of_one_line_are_refusals():
    assert one_try(_attempt(StoreError("a.h5: truncated")), None, 0) == "refused"


@pytest.mark.parametrize("error", [StoreError("a.h5:\ntruncated"), KeyError("a"), RecursionError()])
def test_other_errors_are_defects(error):
    assert is_defect(one_try(_attempt(error), None, 0))


def test_tries_have_numbers_of_their_own():
    target = types.SimpleNamespace(attempt=lambda shared, rng, folder: str(rng.integers(1 << 40)))
    first, second = one_try(target, None, 0), one_try(target, None, 1)
    assert first != second
    assert first == one_try(target, None, 0)
