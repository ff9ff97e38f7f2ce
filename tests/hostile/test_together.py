"""Some rounds of two processes on one output."""

import pytest

from hostile.test_kill import run_apart
from hostile.together import TOGETHER


def test_some_rounds():
    (row,) = run_apart("together", "pivot", "--rounds", 4, "--rows", 100)
    assert row["rounds"] == "4"


@pytest.mark.slow
def test_a_round_of_every_command():
    rows = run_apart("together", "--rounds", 1, "--rows", 1000)
    assert [row["command"] for row in rows] == sorted(TOGETHER)
