"""`st-paragram cache`: what is stored in the cache folder, and clearing it."""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING

from st_paragram.core.files import cache_folder
from st_paragram.core.plan import size
from st_paragram.core.words import counted
from st_paragram.errors import SettingsError, one_line

if TYPE_CHECKING:
    from st_paragram.core.cache import CacheEntry

DESCRIPTION = (
    "List what st_paragram has stored in its cache: the kind of each file, its size, when it was last "
    "used, and its source texts. `st-paragram cache clear` removes files that are rebuilt when needed. "
    "Models, and files that another run uses, stay."
)
EPILOG = """\
The kinds are:

- stores: pair stores of the texts that models were trained on, one for each state of a text;
- tasks: stores of questions, responses and inference, of `train muse`;
- built-in: the built-in text;
- unfinished: partial results of interrupted preparations, for resuming;
- digests: checksums of files that were read in full, so that each is read only once;
- lid: downloaded models of the language filter;
- models: models that you put there to load them by name; never cleared.

The cache is the folder $ST_PARAGRAM_CACHE, or $XDG_CACHE_HOME/st_paragram, or ~/.cache/st_paragram. What comes from the
Hugging Face hub is in the cache of the hub ($HF_HOME), which `hf cache` manages. The last use of a file is what the
file system recorded: many do so once a day, and some only when the file was made.

  st-paragram cache
  st-paragram cache clear --plan
  st-paragram cache clear --kind stores --older-than 30
"""
# As in `core.cache`, which is imported later.
_KINDS = ("stores", "tasks", "built-in", "unfinished", "digests", "lid")


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    parser.add_argument("--json", action="store_true", help="print JSON, one object for each file")
    parser.set_defaults(action=None)
    clear = parser.add_subparsers(metavar="[clear]", dest="action").add_parser(
        "clear", help="remove files that are rebuilt when needed", description="Remove files from the cache."
    )
    clear.add_argument(
        "--kind",
        action="append",
        choices=_KINDS,
        help="kind to remove; repeatable (default: all except lid, the downloaded models of the language filter)",
    )
    clear.add_argument(
        "--older-than",
        type=float,
        default=0.0,
        metavar="DAYS",
        help="remove only files not used for this many days (default: 0)",
    )
    clear.add_argument("--plan", action="store_true", help="list what would be removed, and stop")


def run(arguments: argparse.Namespace) -> int:
    """List or clear the cache; returns the exit status.

    Raises:
        ParagramError: No cache folder is known, or the number of days is refused.
    """
    from st_paragram.core.cache import REMADE, chosen, entries

    if arguments.action is None:
        return _show(entries(), arguments.json)
    if not 0 <= arguments.older_than < math.inf:
        raise SettingsError(f"--older-than is {arguments.older_than:g}; give a number of days, 0 or more")
    found = chosen(arguments.kind or REMADE, arguments.older_than)
    return _show(found) if arguments.plan else _clear(found)


def _clear(found: Sequence[CacheEntry]) -> int:
    from st_paragram.core.cache import clear

    gone = [each for each in found if clear(each)]
    for each in found:
        if each not in gone:
            print(f"{each.path}: in use, stays")
    print(f"{cache_folder()}: removed {_total(gone)}")
    return 0


def _show(found: Sequence[CacheEntry], as_json: bool = False) -> int:
    """Print a table, in which checksums are one row, or JSON."""
    if as_json:
        values = [{**vars(each), "path": str(each.path), "made_from": each.made_from()} for each in found]
        sys.stdout.write(json.dumps(values, indent=1) + "\n")
        return 0
    rows = [("kind", "size", "last use", "file", "made from")]
    rows += [_row([each], each.made_from()) for each in found if each.kind != "digests"]
    if digests := [each for each in found if each.kind == "digests"]:
        rows.append(_row(digests, ""))
    if found:
        kind, amount, _, file, _ = (max(map(len, column)) for column in zip(*rows, strict=True))
        lines = (f"{a:{kind}}  {b:>{amount}}  {c:10}  {d:{file}}  {e}".rstrip() for a, b, c, d, e in rows)
        print("\n".join(lines))
    print(f"{cache_folder()}: {_total(found)}")
    return 0


def _row(found: Sequence[CacheEntry], made_from: str) -> tuple[str, str, str, str, str]:
    """A row of the table: one entry, or all checksums together."""
    used = datetime.fromtimestamp(max(each.used for each in found)).strftime("%Y-%m-%d")
    path = found[0].path.relative_to(cache_folder())
    name = str(path) if len(found) == 1 else counted(len(found), "file")
    return found[0].kind, size(sum(each.size for each in found)), used, one_line(name), one_line(made_from, 80)


def _total(found: Sequence[CacheEntry]) -> str:
    return f"{counted(len(found), 'file')}, {size(sum(each.size for each in found))}" if found else "nothing"
