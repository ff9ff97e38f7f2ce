"""`st-paragram cache`: list or clear the cache folder."""

from __future__ import annotations

import argparse
import shutil

from st_paragram.core.files import cache_folder, locked, output_lock, size
from st_paragram.core.words import size_in_words

DESCRIPTION = "List the contents of st_paragram's cache, or remove everything in it that can be rebuilt."
EPILOG = """\
The cache is the folder $ST_PARAGRAM_CACHE, or $XDG_CACHE_HOME/st_paragram, or ~/.cache/st_paragram. `clear` removes
texts and pair stores, which are rebuilt when needed. It keeps downloads (lid: models of the language filter). Models
from the Hugging Face hub are in the hub's own cache ($HF_HOME); manage them with `hf cache`.

  st-paragram cache
  st-paragram cache clear
"""
_DOWNLOADS = ("lid",)


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    parser.add_argument("action", nargs="?", choices=["list", "clear"], default="list", help="(default: list)")


def run(arguments: argparse.Namespace) -> int:
    """List or clear the cache; returns the exit status."""
    root = cache_folder()
    for path in sorted(root.glob("*")):
        amount, removed = size(path) if path.is_dir() else path.stat().st_size, ""
        if arguments.action == "clear" and path.name not in _DOWNLOADS:
            with locked(path) if path.is_dir() else output_lock(path):
                shutil.rmtree(path) if path.is_dir() else path.unlink()
            removed = " removed"
        print(f"{path.name:10}  {size_in_words(amount):>10}{removed}")
    print(root)
    return 0
