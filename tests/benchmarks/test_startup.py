"""The benchmark of start-up, with two small processes; its peers start torch, which takes too long here."""

import sys

import pytest
from harness.speed.startup import OURS, Process, measure, processes

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")


def test_processes_are_timed_and_failures_are_named():
    held = "held = bytearray(60 << 20)"
    started = [Process(OURS, "pass"), Process("large", held, note="60 MiB"), Process("absent", "import no_such_module")]
    small, large, absent = measure(started, 2).rows
    assert [len(row.rounds) for row in (small, large, absent)] == [2, 2, 0]
    peaks = [int(row.columns["peak memory, MiB"]) for row in (small, large)]
    assert 55 < peaks[1] - peaks[0] < 65 and large.note == "60 MiB"
    assert absent.note == "cannot run: ModuleNotFoundError: No module named 'no_such_module'" and not absent.columns


def test_what_starts_with_numpy_runs(tmp_path):
    made = {process.name: process for process in processes("p-sp-mini", tmp_path, 20)}
    names = [OURS, "st-paragram score", "st-paragram search"]
    table = measure([made[name] for name in names], 1)
    assert [(row.name, len(row.rounds)) for row in table.rows] == [(name, 1) for name in names]
    assert (tmp_path / "scored.tsv").read_text().startswith("0.95")
