"""Commands that write, where a disk is full after some bytes a file: a line is said, and a rerun makes the output."""

from __future__ import annotations

import io
import os
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np

from hostile.commands import COMMANDS, make_inputs
from hostile.limits import largest_file
from hostile.together import TOGETHER
from st_paragram.cli.main import main

TRIES, QUICK = 300, 2
_ROWS = 400
_LARGEST = 1 << 20  # bytes


@dataclass
class Shared:
    """The inputs, and what commands make of them where there is room."""

    inputs: Path
    folder: Path
    made: dict[str, dict[str, str]]


def prepare(folder: Path) -> Shared:
    """Make the inputs; the outputs are made when they are first asked for."""
    (folder / "in").mkdir()
    make_inputs(folder / "in", COMMANDS, _ROWS)
    return Shared(folder / "in", folder, {})


def attempt(shared: Shared, rng: np.random.Generator, folder: Path) -> str:
    """Run a command where files may not grow beyond some bytes, and again where they may."""
    name = str(rng.choice(TOGETHER))
    command, expected = COMMANDS[name], _expected(shared, name)
    words = command.line(0, shared.inputs, folder)
    with largest_file(int(2 ** rng.uniform(0, np.log2(_LARGEST)))):
        status, said = _run(shared, words)
    if status == 0:
        return "there was room" if command.contents(folder) == expected else f"wrong: other bytes\n{name}: {said}"
    lines = [line for line in said.splitlines() if line.startswith("st-paragram ")]
    if status != 1 or len(lines) != 1 or "could not be made" not in lines[0]:
        return f"wrong: exit {status}, no plain line\n{name}: {said}"
    if command.made(folder) or list(folder.glob(".*.part")) or list(folder.glob(".*.lock")):
        return f"wrong: something is left\n{name}: {sorted(folder.rglob('*'))}"
    for option in ((), ("--resume",)):
        status, said = _run(shared, [*words, *option])
        if status == 0:
            break
    same = status == 0 and command.contents(folder) == expected
    return "told in a line, then made" if same else f"wrong: not made afterwards\n{name}: exit {status}\n{said}"


def _expected(shared: Shared, name: str) -> dict[str, str]:
    if name not in shared.made:
        folder = shared.folder / name
        folder.mkdir()
        status, said = _run(shared, COMMANDS[name].line(0, shared.inputs, folder))
        assert status == 0, said
        shared.made[name] = COMMANDS[name].contents(folder)
    return shared.made[name]


def _run(shared: Shared, words: list[str]) -> tuple[Any, str]:
    said = io.StringIO()
    cache = {"XDG_CACHE_HOME": str(shared.folder / "cache"), "HF_HUB_OFFLINE": "1"}
    with redirect_stderr(said), redirect_stdout(said), mock.patch.dict(os.environ, cache):
        status = main(words)
    return status, said.getvalue()
