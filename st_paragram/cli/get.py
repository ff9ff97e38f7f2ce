"""`st-paragram get`: a model that comes with the package, as a directory that any reader opens."""

from __future__ import annotations

import argparse
import sys

from st_paragram.core.encoding.directory import check_free
from st_paragram.core.encoding.find import SHIPPED, SHIPPED_MODELS, shipped_folder

DESCRIPTION = (
    f"Write {' or '.join(SHIPPED_MODELS)}, the models of eight languages that come with st_paragram, to a directory "
    "that SentenceTransformer opens, with or without st_paragram. Nothing is downloaded."
)
EPILOG = f"""\
  st-paragram get {SHIPPED}
  python -c "from sentence_transformers import SentenceTransformer as S; print(S('{SHIPPED}').encode(['hello']).shape)"

Where st_paragram is installed, `st_paragram.load("{SHIPPED}")` and `--model {SHIPPED}` need no such directory.
"""


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    names = ", ".join(SHIPPED_MODELS)
    parser.add_argument("name", choices=SHIPPED_MODELS, metavar="NAME", help=f"model to write: {names}")
    parser.add_argument("--output", metavar="DIR", help="output directory (default: its name)")
    parser.add_argument("--overwrite", action="store_true", help="replace an existing model directory")


def run(arguments: argparse.Namespace) -> int:
    """Write the directory; returns the exit status."""
    output = arguments.output or arguments.name
    check_free(output, arguments.overwrite)

    from st_paragram.core.encoding.encoder import Encoder
    from st_paragram.core.encoding.record import training_text
    from st_paragram.core.encoding.table import for_any_reader

    folder = shipped_folder(arguments.name)
    encoder, card = Encoder(folder), (folder / "README.md").read_text(encoding="utf-8")
    dtype = for_any_reader(encoder.model.table.kind)
    encoder.save(output, card, arguments.overwrite, dtype, training=training_text(folder))
    print(f"{output}: {encoder.dimension} components; its README.md is the model card", file=sys.stderr)
    return 0
