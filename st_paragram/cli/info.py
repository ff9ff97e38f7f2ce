"""`st-paragram info`: what a model, a pair store, an index or this installation is."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

DESCRIPTION = (
    "Tell what a model directory, a pair store or an index folder holds: vocabulary, dimension, languages, training "
    "record, licence, sizes and SHA-256 checksums. Nothing is loaded. Without a name, tell which version is installed, "
    "which compiled kernels run, and which optional packages are there."
)
EPILOG = """\
  st-paragram info p-sp-es
  st-paragram info data/en-es.h5 lines.index --json
  st-paragram info
"""


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    parser.add_argument("names", nargs="*", metavar="MODEL|STORE|INDEX", help="what to describe")
    parser.add_argument("--json", action="store_true", help="print JSON, one list of descriptions")


def run(arguments: argparse.Namespace) -> int:
    """Print descriptions; returns the exit status.

    Raises:
        ParagramError: A name is none of these, or a file is damaged.
    """
    found = [_describe(name) for name in arguments.names] or [_installation()]
    if arguments.json:
        sys.stdout.write(json.dumps([{"kind": kind, **values} for kind, values in found], indent=1) + "\n")
        return 0
    blocks = ["\n".join([f"{kind} {values['name']}", *_lines(values)]) for kind, values in found]
    sys.stdout.write("\n\n".join(blocks) + "\n")
    return 0


def _describe(name: str) -> tuple[str, dict[str, Any]]:
    """The kind of thing that a name is, and its description."""
    path = Path(name)
    if path.is_file():
        from st_paragram.data.description import describe_store

        return "pair store", asdict(describe_store(path))
    if (path / "index.json").is_file():
        from st_paragram.search.description import describe_index

        return "index", asdict(describe_index(path))
    from st_paragram.models.description import describe_model
    from st_paragram.models.find import find

    return "model", asdict(describe_model(find(name)))


def _installation() -> tuple[str, dict[str, Any]]:
    from st_paragram.installation import describe_installation

    return "installation of", asdict(describe_installation())


def _lines(values: Mapping[str, Any], indent: str = "  ") -> Iterator[str]:
    """One line a value; mappings are indented below their name, long lists and texts are cut."""
    for name, value in values.items():
        label = f"{indent}{name.replace('_', ' ')}"
        if name == "files":
            yield label
            yield from _files(value, indent * 2)
        elif isinstance(value, Mapping) and value:
            yield label
            yield from _lines(value, indent + "  ")
        elif name != "name" or indent != "  ":
            yield f"{label}: {_shown(value)}"


def _files(files: Mapping[str, Mapping[str, Any]], indent: str) -> Iterator[str]:
    width = max(map(len, files), default=0)
    for name, file in files.items():
        yield f"{indent}{name.ljust(width)}  {file['size']:>15,} bytes  sha256 {file['sha256']}"


def _shown(value: Any) -> str:  # noqa: ANN401
    if value is None or value in ({}, [], (), ""):
        return "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, Mapping):
        return ", ".join(f"{name.replace('_', ' ')} {_shown(part)}" for name, part in value.items())
    if isinstance(value, Sequence) and not isinstance(value, str):
        shown = ", ".join(map(_shown, value[:12]))
        return shown + (f", ... ({len(value)} in all)" if len(value) > 12 else "")
    return " ".join(str(value).split())
