"""Some rounds of two processes on one output."""

from hostile.test_kill import run_apart


def test_some_rounds():
    (row,) = run_apart("together", "pivot", "--rounds", 4, "--rows", 100)
    assert row["rounds"] == "4"
