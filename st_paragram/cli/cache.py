"""`st-paragram cache`: list or clear the cache folder."""

from __future__ import annotations

import argparse
import re
from pathlib import Path

from st_paragram.core.folders import cache_folder, is_own_folder, remove_own_folder, size
from st_paragram.core.formatting import size_in_words
from st_paragram.core.outputs import output_lock
from st_paragram.errors import one_line

DESCRIPTION = (
    "List the contents of st_paragram's cache, or remove everything in it that can be rebuilt."
)
EPILOG = """\
The cache is the folder $ST_PARAGRAM_CACHE, or $XDG_CACHE_HOME/st_paragram, or ~/.cache/st_paragram.
`clear` removes texts, pair stores and models such as p-sp-es, which are rebuilt when needed. It
keeps downloads (lid: models of the language filter), and it never removes files that st_paragram
did not make. So $ST_PARAGRAM_CACHE may name a folder with files of yours. Models from the Hugging
Face hub are in the hub's own cache ($HF_HOME); manage them with `hf cache`.

  st-paragram cache
  st-paragram cache clear
"""
_DOWNLOADS = "lid"  # folder of downloads of earlier versions
# Locks and unfinished work have the name of their output, too.
_NAMES = r"\.{{0,2}}(?P<output>{})(\.work)?(\.lock|\.[0-9a-f]{{12}}\.part)?"
_KEYED = r"[\w-]+-[0-9a-f]{16}"  # with the digest of everything that affects the contents
#: What this package writes: folder in the cache -> pattern of the names in it.
_OWN = {
    "": re.compile(_NAMES.format(r"built-in-\d+\.[\w-]+\.tsv")),
    "models": re.compile(_NAMES.format(_KEYED)),
    "stores": re.compile(_NAMES.format(rf"{_KEYED}\.h5") + r"|in-use\.lock"),
    "tasks": re.compile(_NAMES.format(rf"{_KEYED}\.arrow") + r"|in-use\.lock"),
}


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    parser.add_argument(
        "action", nargs="?", choices=["list", "clear"], default="list", help="(default: list)"
    )


def run(arguments: argparse.Namespace) -> int:
    """List or clear the cache; return the exit status."""
    root = cache_folder()
    for path in sorted(root.glob("*")):
        if path.name == _DOWNLOADS:
            _show(path.name, _size(path))
            continue
        own, foreign = _contents(path)
        if own or not foreign:
            amount = sum(_size(file) for file in own)
            note = ""
            if arguments.action == "clear":
                _remove(path, own)
                note = "removed"
            _show(path.name, amount, note)
        for file in foreign:
            _show(one_line(file.relative_to(root)), _size(file), "not made by st_paragram, kept")
    print(root)
    return 0


def _contents(path: Path) -> tuple[dict[Path, Path], list[Path]]:
    """Divide a file, or the files in a folder, into those of this package and others.

    Those of this package come with their outputs: a lock or unfinished work with the file that it
    is for.
    """
    is_folder = path.is_dir() and not path.is_symlink()
    names = _OWN.get(path.name if is_folder else "")
    if names is None:
        return {}, [path]
    own = dict[Path, Path]()
    foreign = list[Path]()
    for file in sorted(path.iterdir()) if is_folder else [path]:
        match = names.fullmatch(file.name)
        is_ours = is_own_folder(file) if file.is_dir() else not file.is_symlink()
        if match and is_ours:
            own[file] = file.with_name(match["output"] or file.name)
        else:
            foreign.append(file)
    return own, foreign


def _remove(path: Path, own: dict[Path, Path]) -> None:
    """Remove files of this package that no run is writing, and their folder if it is empty then."""
    for file, output in own.items():
        with output_lock(output):
            if file.is_dir():
                remove_own_folder(file)
            else:
                file.unlink(missing_ok=True)
    if path.is_dir() and not path.is_symlink() and not any(path.iterdir()):
        path.rmdir()


def _size(path: Path) -> int:
    return size(path) if path.is_dir() else path.lstat().st_size


def _show(name: str, amount: int, note: str = "") -> None:
    print(f"{name:10}  {size_in_words(amount):>10} {note}".rstrip())
