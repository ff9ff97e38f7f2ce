"""Commands that are killed, that run twice at once, or whose disk is full: an output is whole, or is not there."""

from __future__ import annotations

import os
import random
import signal
import sys
import time
from pathlib import Path

import pytest
from filelock import FileLock
from support.limits import largest_file

from reliability.commands import COMMANDS, make_inputs, start
from st_paragram.cli.main import main

if sys.platform == "win32":
    pytest.skip("signals and limits as those of POSIX", allow_module_level=True)

_LIMIT = 120  # seconds for a run
_QUICK = ("embed", "prepare")


@pytest.fixture(scope="module")
def inputs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("inputs")
    make_inputs(folder, rows=400)
    return folder


def begin(words, folder):
    """Start a command and wait for the first file in the folder of its output, or for its end."""
    folder.mkdir(exist_ok=True)
    child = start(words, folder.with_suffix(".log"))
    while child.poll() is None and not any(folder.iterdir()):
        time.sleep(0.001)
    return child


def finish(child, folder):
    """Wait for the end; returns the exit status and the last line that was printed."""
    status = child.wait(_LIMIT)
    return status, folder.with_suffix(".log").read_text().strip().split("\n")[-1]


@pytest.mark.parametrize("name", [pytest.param(n, marks=() if n in _QUICK else pytest.mark.slow) for n in COMMANDS])
def test_killed_and_run_again(name, inputs, tmp_path):
    command, whole, rng = COMMANDS[name], tmp_path / "whole", random.Random(name)
    child, begun = begin(command.line(0, inputs, whole), whole), time.perf_counter()
    assert finish(child, whole)[0] == 0
    expected, seconds = command.contents(whole), time.perf_counter() - begun
    for number in range(3):
        folder = tmp_path / f"try {number}"
        words = command.line(0, inputs, folder)
        child = begin(words, folder)
        time.sleep(rng.uniform(0, seconds))
        if child.poll() is None:
            os.killpg(child.pid, signal.SIGKILL)
        killed = finish(child, folder)[0] == -signal.SIGKILL
        made = {
            path: sha256 for path, sha256 in command.contents(folder).items() if Path(path).parts[0] == command.output
        }
        assert made in ({}, expected) or (name == "train" and killed)  # whose folder grows by whole checkpoints
        if made != expected:  # else it was killed while it removed its working files
            again = [*words, "--resume"] if name == "train" and made else words
            assert finish(begin(again, folder), folder)[0] == 0
            assert command.contents(folder) == expected


@pytest.mark.parametrize("name", [pytest.param(n, marks=() if n in _QUICK else pytest.mark.slow) for n in COMMANDS])
def test_two_at_once(name, inputs, tmp_path):
    command, folder, other = COMMANDS[name], tmp_path / "out", tmp_path / "other"
    folder.mkdir()
    second = start(command.line(1, inputs, folder), other.with_suffix(".log"))
    endings = [finish(begin(command.line(0, inputs, folder), folder), folder), finish(second, other)]
    assert sorted(status for status, _ in endings) == [0, 1], endings
    winner = [status for status, _ in endings].index(0)
    assert any(reason in endings[1 - winner][1] for reason in ("another run is writing", "exists"))
    assert finish(begin(command.line(winner, inputs, other), other), other)[0] == 0
    assert command.contents(folder) == command.contents(other)


def refusal(words, capsys):
    """The one line that a command ends with."""
    capsys.readouterr()
    assert main(words) == 1
    (line,) = (line for line in capsys.readouterr().err.splitlines() if line.startswith("st-paragram "))
    return line.removeprefix(f"st-paragram {words[0]}: ")


@pytest.mark.parametrize("name", COMMANDS)
def test_an_output_that_another_run_is_writing(name, inputs, tmp_path, capsys):
    output = tmp_path / COMMANDS[name].output
    with FileLock(tmp_path / f".{output.name}.lock"):
        said = refusal(COMMANDS[name].line(0, inputs, tmp_path), capsys)
    assert said == f"another run is writing {output}; wait for it, or name another output"
    assert not output.exists()


@pytest.mark.parametrize("name", COMMANDS)
def test_a_full_disk(name, inputs, tmp_path, capsys):
    with largest_file(1024):
        said = refusal(COMMANDS[name].line(0, inputs, tmp_path), capsys)
    assert "File too large" in said
    assert not (tmp_path / COMMANDS[name].output).exists() and not list(tmp_path.rglob(".*.part"))
