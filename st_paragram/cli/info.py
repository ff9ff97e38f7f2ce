"""`st-paragram info`: describe a model, a store, an index, embeddings or this installation."""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from st_paragram.core.formatting import MOST, are_counts, in_words

DESCRIPTION = (
    "Describe a model directory, a pair store, an index folder or a folder of embeddings:"
    " vocabulary, dimension, languages, training record, license, sizes and SHA-256 checksums. For"
    " a pair store, also show sentence lengths, vocabulary use, unknown text and random pairs. No"
    " model is loaded unless --check is given. Without a name, show the installed version, the"
    " compiled kernels in use, and the required packages."
)
EPILOG = """\
  st-paragram info p-sp-es
  st-paragram info data/en-es.h5 lines.index --json
  st-paragram info data/en-es.h5 --check
  st-paragram info
"""

#: Control characters except line feeds: those of a file could control the terminal.
_CONTROL = re.compile(r"[\x00-\x09\x0b-\x1f\x7f-\x9f]")


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    parser.add_argument(
        "names", nargs="*", metavar="MODEL|STORE|INDEX|EMBEDDINGS", help="item to describe"
    )
    parser.add_argument("--json", action="store_true", help="print the descriptions as a JSON list")
    check = "also read all content: verify SHA-256 checksums, and load models"
    parser.add_argument("--check", action="store_true", help=check)


def run(arguments: argparse.Namespace) -> int:
    """Print descriptions; return the exit status."""
    descriptions = [_describe(name, arguments.check) for name in arguments.names]
    if not descriptions:
        descriptions.append(_installation())
    if arguments.json:
        listed = [{"kind": kind, **values} for kind, values in descriptions]
        sys.stdout.write(json.dumps(listed, indent=1, default=vars) + "\n")
        return 0
    blocks = []
    for kind, values in descriptions:
        blocks.append("\n".join([f"{kind} {values.pop('name')}", *_lines(values)]))
    sys.stdout.write(_CONTROL.sub("?", "\n\n".join(blocks)) + "\n")
    return 0


def _describe(name: str, check: bool) -> tuple[str, dict[str, Any]]:
    """Return what kind of thing a name is, and its description with the result of a check."""
    kind, path, describe, check_content = _kind(name)
    values = describe(path)
    if check:
        values["checked"] = check_content(path)
    return kind, values


def _kind(name: str) -> tuple[str, Path, Callable[[Path], dict[str, Any]], Callable[[Path], str]]:
    """Return the kind of a thing, its path, and the functions that describe and check it."""
    path = Path(name)
    if path.is_file():
        from st_paragram.tools.inspection import check, inspect

        return "pair store", path, inspect, check
    if (path / "sentences.lance").is_dir():
        from st_paragram.tools.search.table import check_index, describe_index

        return "index", path, describe_index, check_index
    if (path / "embeddings.json").is_file():
        from st_paragram.tools.embed_files.reader import check_embeddings, describe_embeddings

        return "embeddings", path, describe_embeddings, check_embeddings
    from st_paragram.core.model_directory.find import find
    from st_paragram.learning.models.description import check_model, describe_model

    return "model", find(name), describe_model, check_model


def _installation() -> tuple[str, dict[str, Any]]:
    """Return the versions of this package and its dependencies, and the compiled kernels."""
    from importlib.metadata import requires

    from st_paragram.core.extras import installed_version
    from st_paragram.core.native import kernels, obstacle

    required = [line for line in requires("st_paragram") or [] if "extra ==" not in line]
    names = sorted(re.split(r"[^\w.-]", line, maxsplit=1)[0] for line in required)
    native = kernels()
    return "installation of", {
        "name": f"st_paragram {installed_version()}",
        "kernels": f"compiled, {native.instructions()}" if native else obstacle(),
        "packages": {name: installed_version(name) for name in names},
    }


def _lines(values: Mapping[str, Any], indent: str = "  ") -> Iterator[str]:
    """Yield one line per value; mappings and lists of mappings are indented below their name.

    Long lists are cut.
    """
    inner = indent + "  "
    for name, value in values.items():
        label = f"{indent}{name.replace('_', ' ')}"
        if name == "files":
            yield label
            width = max(map(len, value), default=0)
            for path, file in value.items():
                yield f"{inner}{path.ljust(width)}  {file.size:>15,} bytes  sha256 {file.sha256}"
        elif isinstance(value, Mapping) and value and not are_counts(value):
            yield label
            yield from _lines(value, inner)
        elif isinstance(value, Sequence) and any(isinstance(part, Mapping) for part in value):
            yield label
            for part in value[:MOST]:
                yield f"{inner}{in_words(part)}"
            if len(value) > MOST:
                yield f"{inner}... ({len(value)} in all)"
        else:
            yield f"{label}: {in_words(value)}"
