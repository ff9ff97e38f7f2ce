"""`st-paragram cache`: what is stored in the cache folder, and clearing it."""

from __future__ import annotations

import argparse
import shutil
from pathlib import Path

from st_paragram.core.files import cache_folder, locked, size
from st_paragram.core.words import size_in_words

DESCRIPTION = "List what st_paragram has stored in its cache, or clear what it can rebuild."
EPILOG = """\
The cache is the folder $ST_PARAGRAM_CACHE, or $XDG_CACHE_HOME/st_paragram, or ~/.cache/st_paragram. It holds:

- stores: pair stores of the texts that models were trained on; cleared;
- tasks: questions, responses and inference as ids, of `train muse`; cleared;
- lid: downloaded models of the language filter; kept.

Models from the Hugging Face hub are in the cache of the hub ($HF_HOME), which `hf cache` manages.

  st-paragram cache
  st-paragram cache clear
"""
_REBUILT = ("stores", "tasks")


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    parser.add_argument("action", nargs="?", choices=["list", "clear"], default="list", help="default: list")


def run(arguments: argparse.Namespace) -> int:
    """List or clear the cache; returns the exit status.

    Raises:
        ParagramError: No cache folder is known, or another run is building a store there.
    """
    root = cache_folder()
    for folder in sorted(path for path in root.glob("*") if path.is_dir()):
        if arguments.action == "list":
            print(f"{folder.name:10}  {size_in_words(size(folder)):>10}")
        elif folder.name in _REBUILT:
            amount = size(folder)
            _clear(folder)
            print(f"{folder.name:10}  {size_in_words(amount):>10} removed")
    print(root)
    return 0


def _clear(folder: Path) -> None:
    with locked(folder):
        for path in folder.iterdir():
            if path.is_dir():
                shutil.rmtree(path)
            elif path.name != "in-use.lock":
                path.unlink()
