"""What a user runs, in a process of its own."""

from __future__ import annotations

import os
import runpy
import sys
from pathlib import Path

from st_paragram.cli.main import main


def run_command(words: list[str]) -> None:
    """Run a command line of st-paragram; the process ends with its status."""
    sys.exit(main(words))


def run_script(script: Path, words: list[str], folder: Path) -> None:
    """Run a script in a folder, with words of a command line."""
    os.chdir(folder)
    sys.argv = [str(script), *words]
    runpy.run_path(str(script), run_name="__main__")
