"""Every command that writes: refused in a line where another run writes the output, and where the disk is full."""

from __future__ import annotations

import pytest
from filelock import FileLock
from support.data import write_store

from hostile.commands import COMMANDS, make_inputs
from hostile.limits import largest_file
from hostile.together import TOGETHER
from st_paragram.cli.main import main


@pytest.fixture(scope="module")
def inputs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("inputs")
    make_inputs(folder, COMMANDS, rows=400)
    return folder


def refusal(words, capsys):
    """The one line that a command ends with."""
    capsys.readouterr()
    assert main(words) == 1
    lines = [line for line in capsys.readouterr().err.splitlines() if line.startswith("st-paragram ")]
    assert len(lines) == 1
    return lines[0].removeprefix(f"st-paragram {words[0]}: ")


@pytest.mark.parametrize("name", TOGETHER)
def test_an_output_that_another_run_is_writing(name, inputs, tmp_path, capsys):
    output = tmp_path / COMMANDS[name].output
    with FileLock(tmp_path / f".{output.name}.lock"):
        said = refusal(COMMANDS[name].line(0, inputs, tmp_path), capsys)
        assert [path.name for path in tmp_path.iterdir()] == [f".{output.name}.lock"]
    assert said == f"another run is writing {output}; wait for it, or name another output"


@pytest.mark.parametrize("name", TOGETHER)
def test_a_full_disk(name, inputs, tmp_path, capsys):
    output = tmp_path / COMMANDS[name].output
    with largest_file(1024):
        said = refusal(COMMANDS[name].line(0, inputs, tmp_path), capsys)
    assert said.startswith(f"{output}: could not be made (") and said.endswith("and start again")
    assert "File too large" in said
    assert not output.exists() and not list(tmp_path.rglob(".*.part")) and not list(tmp_path.glob(".*.lock"))


def test_a_store_for_which_there_is_no_room(vocabulary, pairs, tmp_path):
    """libhdf5 crashes at some of these sizes when it closes the file."""
    write_store(tmp_path / "whole.h5", pairs, vocabulary)
    size = (tmp_path / "whole.h5").stat().st_size
    for room in range(0, size, size // 40):
        with largest_file(room), pytest.raises(OSError, match="File too large"):
            write_store(tmp_path / "s.h5", pairs, vocabulary)
    assert [path.name for path in tmp_path.iterdir()] == ["whole.h5"]
