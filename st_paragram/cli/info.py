"""`st-paragram info`: describe a model, a store, an index, embeddings or this installation."""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from st_paragram.cli.options import check_input, language_code
from st_paragram.core.files import is_hdf5
from st_paragram.core.formatting import MOST, are_counts, in_words
from st_paragram.core.languages import check_codes
from st_paragram.errors import SettingsError

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
  st-paragram info p-sp-es --text en:held-out.en es:held-out.es
  st-paragram info
"""

_WANTED = "name a model, a pair store (.h5), an index or a folder of embeddings"
_TEXT = re.compile(r"([A-Za-z_-]{2,}):(.+)", re.DOTALL)
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
    text = (
        "for models: also print the share of unknown tokens in text of each language, files with"
        " one text per line"
    )
    parser.add_argument(
        "--text", nargs="+", action="extend", default=[], metavar="LANG:FILE", help=text
    )


def run(arguments: argparse.Namespace) -> int:
    """Print descriptions; return the exit status."""
    texts = [_language_and_file(text) for text in arguments.text]
    if texts and not arguments.names:
        raise SettingsError("--text needs a model; name it before --text")
    if arguments.check and not arguments.names:
        raise SettingsError("nothing to check; name a model, pair store, index or embeddings")
    descriptions = []
    for name in arguments.names:
        descriptions.append(_describe(name, arguments.check, texts))
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


def _language_and_file(text: str) -> tuple[str, Path]:
    """Parse `LANG:FILE`."""
    match = _TEXT.fullmatch(text)
    if match is None:
        raise SettingsError(f"{text}: no language; write it before the file, such as es:{text}")
    language = language_code(match[1])
    check_codes(("en", language))
    check_input(match[2])
    return language, Path(match[2])


def _describe(
    name: str, check: bool, texts: Sequence[tuple[str, Path]] = ()
) -> tuple[str, dict[str, Any]]:
    """Return what kind of thing a name is, and its description.

    It includes the result of a check, and the unknown tokens in texts, if wanted.
    """
    kind, path, describe, check_content = _kind(name)
    if texts and kind != "model":
        raise SettingsError(f"{name} is a {kind}, not a model; leave --text out")
    values = describe(path)
    if texts:
        from st_paragram.core.encoding.models import load_encoder
        from st_paragram.tools.inspection import unknown_tokens

        values["unknown_tokens"] = unknown_tokens(load_encoder(path), texts)
    if check:
        values["checked"] = check_content(path)
    return kind, values


def _kind(name: str) -> tuple[str, Path, Callable[[Path], dict[str, Any]], Callable[[Path], str]]:
    """Return the kind of a thing, its path, and the functions that describe and check it."""
    path = Path(name)
    if path.is_file() and not is_hdf5(path):
        raise SettingsError(f"{name}: a file, but not a pair store; {_WANTED}")
    if path.is_file() or path.suffix in (".h5", ".hdf5"):
        from st_paragram.tools.inspection import check, inspect

        return "pair store", path, inspect, check
    if (path / "sentences.lance").is_dir():
        from st_paragram.tools.search.table import check_index, describe_index

        return "index", path, describe_index, check_index
    if (path / "embeddings.json").is_file():
        from st_paragram.tools.embed_files.reader import check_embeddings, describe_embeddings

        return "embeddings", path, describe_embeddings, check_embeddings
    from st_paragram.core.model_directory.configuration import is_model_directory
    from st_paragram.core.model_directory.find import find

    if path.is_dir() and not is_model_directory(path):
        raise SettingsError(f"{name}: a folder, but not a model directory; {_WANTED}")
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
