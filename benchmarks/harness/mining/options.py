"""The command line of benchmarks/mining.py: options that parts share, and their own."""

from __future__ import annotations

import argparse
import importlib
from pathlib import Path

from st_paragram.tools.bitext_mining.margin import DEFAULT_K
from st_paragram.tools.search.settings import AUTO

#: Part -> the module with its `add_options(parser)` and `run(arguments, folder)`.
PARTS = {"planted": "harness.mining.known", "scaling": "harness.mining.scaling", "peers": "harness.mining.peers"}


def build_parser(description: str) -> argparse.ArgumentParser:
    """The parser, a subcommand a part."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parts = parser.add_subparsers(dest="part", required=True)
    for name, place in PARTS.items():
        module = importlib.import_module(place)
        text = (module.__doc__ or "").strip()
        part = parts.add_parser(
            name, help=text, description=text, formatter_class=argparse.ArgumentDefaultsHelpFormatter
        )
        _add_shared(part, name)
        module.add_options(part)
    return parser


def _add_shared(parser: argparse.ArgumentParser, part: str) -> None:
    add = parser.add_argument
    add("--model", required=True, help="directory or name of a model")
    add("--bitext", required=True, type=Path, help="source TAB target, plain or compressed")
    add("--k", type=int, default=DEFAULT_K, help="neighbours")
    add("--memory", default="4G", help="that mining may take")
    add("--folder", type=Path, default=Path(), help="for temporary files: some 5 KB a sentence")
    add("--json", type=Path, metavar="FILE", help="write a record")
    if part != "peers":
        add("--index", default=AUTO, help="see `st-paragram mine --help`")
