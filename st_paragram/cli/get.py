"""`st-paragram get`: write an included model, or some of its languages, to a directory."""

from __future__ import annotations

import argparse
import sys

from st_paragram.core.formatting import listed
from st_paragram.core.languages import LARGE_LANGUAGES, MODEL_LANGUAGES
from st_paragram.core.model_directory.configuration import check_free
from st_paragram.core.model_directory.find import (
    LANGUAGE_MODELS,
    SHIPPED,
    SHIPPED_MODELS,
    shipped_folder,
    whole_model,
)
from st_paragram.errors import SettingsError

DESCRIPTION = (
    f"Write a model included in st_paragram ({listed(SHIPPED_MODELS)}), or some of its languages,"
    " to a directory that SentenceTransformer opens with or without st_paragram. p-sp-es is"
    " p-sp-base with only the tokens of English and Spanish: it is smaller, and texts in these"
    " languages keep their embeddings. p-sp-it is the same for p-sp-large, which knows"
    f" {len(LARGE_LANGUAGES)} languages. Nothing is downloaded or trained."
)
EPILOG = f"""\
Languages: {" ".join(LARGE_LANGUAGES)}
p-sp-mini and p-sp-base know {" ".join(MODEL_LANGUAGES)}.

  st-paragram get p-sp-es
  st-paragram get --languages en it pt --output en-it-pt
  st-paragram get {SHIPPED} --languages en es tr --output small
  st-paragram embed lines.txt --model small --output lines.npy

With st_paragram installed, `st_paragram.load("p-sp-es")` and `--model p-sp-es` work without this
directory: the first use cuts the model into the cache. SentenceTransformer("p-sp-es") needs it.
"""


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    name = f"{', '.join(SHIPPED_MODELS)}, or p-sp-LANG for English and another language"
    default = "without it, p-sp-base or p-sp-large, whichever knows --languages"
    parser.add_argument("name", nargs="?", metavar="NAME", help=f"{name}; {default}")
    parser.add_argument(
        "--languages",
        nargs="+",
        metavar="LANG",
        help="languages to keep, e.g. en es (default: all)",
    )
    parser.add_argument(
        "--output", metavar="DIR", help="output directory (default: NAME; needed without NAME)"
    )
    parser.add_argument(
        "--overwrite", action="store_true", help="replace an existing model directory"
    )


def run(arguments: argparse.Namespace) -> int:
    """Write the directory; return the exit status."""
    from st_paragram.core.model_directory.languages import write_model

    name = arguments.name
    languages = arguments.languages
    output = arguments.output or name
    if name is None:
        if not languages or output is None:
            raise SettingsError("give NAME, or --languages and --output")
        name = whole_model(languages)
    check_free(output, arguments.overwrite)
    if name not in SHIPPED_MODELS:
        if name not in LANGUAGE_MODELS:
            names = ", ".join(SHIPPED_MODELS)
            codes = " ".join(LARGE_LANGUAGES[1:])
            raise SettingsError(
                f"{name} does not come with st_paragram; choose {names}, or p-sp-LANG for one of"
                f" {codes}"
            )
        if languages:
            choice = " or ".join(SHIPPED_MODELS)
            raise SettingsError(f"{name} has its languages; choose {choice} with --languages")
        languages = LANGUAGE_MODELS[name]
        name = whole_model(languages)
    model = write_model(
        shipped_folder(name), output, languages=languages, overwrite=arguments.overwrite
    )
    size = f"{len(model.tokenizer):,} tokens, {model.table.dimension} dimensions"
    print(f"{output}: {size}; its README.md is the model card", file=sys.stderr)
    return 0
