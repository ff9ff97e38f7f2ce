"""Some kills, and the campaign itself. Each starts a process of its own: what has used threads must not be forked."""

import os
import subprocess
import sys

from hostile.children import Child
from hostile.commands import COMMANDS


def run_apart(module, *arguments):
    """Run a campaign; its table as rows of cells."""
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-m", f"hostile.{module}", *map(str, arguments)]
    ended = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    head, _, *rows = (line.strip("| ").split(" | ") for line in ended.stdout.splitlines() if line.startswith("|"))
    return [dict(zip(head, row, strict=True)) for row in rows]


def test_some_kills():
    (row,) = run_apart("kill", "pivot", "--kills", 4, "--rows", 100)
    assert row["kills"] == "4" and not any(outcome.startswith("wrong") for outcome in row)


def test_every_command_line_names_its_inputs_and_its_output(tmp_path):
    for command in COMMANDS.values():
        first, second = (command.line(kind, tmp_path / "in", tmp_path, overwrite=True) for kind in (0, 1))
        assert first != second and str(tmp_path / command.output) in first
        assert ("--overwrite" in first) is not command.replaces


def test_a_child_that_fails_says_why(tmp_path):
    child = Child(lambda: 1 // 0, tmp_path / "log")
    child.wait(5)
    assert child.status == 70 and "ZeroDivisionError" in child.said
