"""What the scripts that measure memory and preparation are made of, and the options of the speed benchmark."""

import argparse
import sys
from pathlib import Path

import pytest
from harness.output import print_growing
from harness.processes import anonymous_kib, watch
from harness.speed.options import Options, add_options, options_of
from harness.speed.preparation import COMPARED_HEAD, Compared, Preparation, compare

needs_linux = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
HOLD = "import sys, time; held = bytearray(int(sys.argv[1]) << 20); print('held'); sys.stdout.flush(); time.sleep(0.6)"
PARENT = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {HOLD!r}, sys.argv[1]])"


@needs_linux
def test_memory_of_a_process_and_its_children_is_watched():
    small, large = (watch([sys.executable, "-c", PARENT, str(mib)]) for mib in (1, 101))
    for run in (small, large):
        assert run.output == "held\n" and 0.6 < run.seconds < 60
        assert 0 < run.peak_anonymous_mb < run.peak_resident_mb
    assert large.peak_anonymous_mb - small.peak_anonymous_mb == pytest.approx(100, abs=8)
    assert large.peak_resident_mb - small.peak_resident_mb == pytest.approx(100, abs=8)


@needs_linux
def test_a_command_that_fails_says_why():
    with pytest.raises(SystemExit, match=r"-c .* failed:\n.*no such thing"):
        watch([sys.executable, "-c", "raise SystemExit('no such thing')"])
    assert anonymous_kib(2**30) == 0  # no such process


def test_ours_beside_the_baseline_by_hand():
    found = Compared(1000, 900, 20.0, {"read": 20.0}, {1: 10.0, 2: 5.0})
    assert found.rows() == [
        ["baseline, row by row", "20.0", "50", "1.0"],
        ["ours, workers: 1", "10.0", "100", "2.0"],
        ["ours, workers: 2", "5.0", "200", "4.0"],
    ]
    assert all(len(cells) == len(COMPARED_HEAD) for cells in found.rows())
    with pytest.raises(SystemExit, match=r"needs --vocab.*--baseline-pairs 0"):
        compare(Preparation(Path("t.tsv"), "es", Path()), 10, [1], 1)


def test_a_table_grows_row_by_row(capsys):
    seen = []

    def rows():
        for number in (1, 2):
            seen.append(capsys.readouterr().out)
            yield [str(number), "x"]

    print_growing(("n", "what"), rows())
    assert seen == ["", "| n | what |\n| --- | ---: |\n| 1 | x |\n"]
    assert capsys.readouterr().out == "| 2 | x |\n"


def test_options_of_a_speed_run():
    parser = argparse.ArgumentParser()
    add_options(parser)
    assert options_of(parser.parse_args([])) == Options(Path("build/speed"))
    quick = options_of(parser.parse_args(["--quick", "--dim", "64", "--peers", "stock,LASER"]))
    assert (quick.dim, quick.count, quick.rounds, quick.quick) == (64, 6_000, 2, True)
    assert quick.peers == ("stock", "LASER")
