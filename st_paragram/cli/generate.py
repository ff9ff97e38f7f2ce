"""`st-paragram generate`: generate sentences with a generative model."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, cast

from st_paragram.cli.options import MODEL, check_input, output_opened
from st_paragram.core.files import STDIN
from st_paragram.core.model_directory.configuration import GENERATIVE, read_configuration
from st_paragram.core.model_directory.find import find
from st_paragram.core.outputs import check_output
from st_paragram.core.settings import add_setting_options, given
from st_paragram.core.text.streams import read_lines
from st_paragram.errors import ModelDirectoryError, SettingsError, TextError
from st_paragram.families.bgt.settings import NEEDED, TASKS, GenerationSettings

if TYPE_CHECKING:
    from st_paragram.families.bgt.sentence_transformers_encoder import GenerativeEncoder

DESCRIPTION = (
    "Generate a sentence for each line of FILE (plain, gz, xz, bz2, or - for standard input), in"
    " the same order. The model must come from `st-paragram train bgt`. It can reproduce the"
    " sentence (reconstruct), write it in the other language (translate), or express its meaning in"
    " the style of another sentence (transfer). A blank line gives a blank line."
)
EPILOG = """\
  st-paragram generate bgt-es --task reconstruct --from es sentences.es
  st-paragram generate bgt-es --task translate --from en --to es --output out.es in.en
  echo "We are late." | st-paragram generate bgt-es --task transfer --to en --style "Are you?" -
  st-paragram generate bgt-es --task transfer --to en --styles styles.en sentences.es
"""


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    add = parser.add_argument
    add("model", metavar="MODEL", help=MODEL)
    add("file", metavar="FILE", help="sentences, one per line; - for standard input")
    add("--task", choices=TASKS, required=True, help="task to perform")
    source = "language of the sentences (default: the language other than --to)"
    add("--from", dest="source", metavar="LANG", help=source)
    target = (
        "language of the output (default: the model's first language; for a translation, the"
        " second)"
    )
    add("--to", dest="target", metavar="LANG", help=target)
    add(
        "--style",
        metavar="SENTENCE",
        help="for transfer: sentence whose style is used for all outputs",
    )
    add(
        "--styles",
        metavar="FILE",
        help="for transfer: file with one style sentence per line of FILE",
    )
    add("--output", type=Path, metavar="OUT.txt", help="output file (default: standard output)")
    add("--overwrite", action="store_true", help="replace an existing output")
    add_setting_options(parser.add_argument_group("search"), GenerationSettings)


def run(arguments: argparse.Namespace) -> int:
    """Generate the sentences."""
    settings = GenerationSettings(**given(arguments, GenerationSettings))
    styles = [value for value in (arguments.style, arguments.styles) if value is not None]
    if arguments.task == "transfer" and len(styles) != 1:
        raise SettingsError(
            "--task transfer needs a style; give either --style SENTENCE or --styles FILE"
        )
    if arguments.task != "transfer" and styles:
        raise SettingsError(
            f"--task {arguments.task} does not use a style; --style and --styles are for --task"
            " transfer"
        )
    if arguments.style is not None and not arguments.style.strip():
        raise SettingsError("the style is blank; give a sentence")
    if arguments.file == arguments.styles == STDIN:
        raise SettingsError("both files are standard input; give - for only one of them")
    check_input(arguments.file)
    if arguments.styles:
        check_input(arguments.styles)
    if arguments.output:
        check_output(arguments.output, arguments.overwrite)
    folder = find(arguments.model)
    architecture = read_configuration(folder).architecture
    if architecture != GENERATIVE:
        raise ModelDirectoryError(
            f"{folder}: a model of architecture {architecture!r} has no decoders; {NEEDED}"
        )

    from tqdm import tqdm

    from st_paragram.families.bgt.generate import generate
    from st_paragram.families.loading import load

    model = cast("GenerativeEncoder", load(folder))
    rows = _rows(arguments.file, arguments.style, arguments.styles)
    to_screen = arguments.output is None and sys.stdout.isatty()
    with tqdm(unit="sentence", unit_scale=True, disable=to_screen or None) as bar:
        sentences = generate(
            model,
            arguments.task,
            rows,
            arguments.source,
            arguments.target,
            settings,
            bar.update,
        )
        with output_opened(arguments.output, arguments.overwrite) as handle:
            handle.writelines(f"{sentence}\n" for sentence in sentences)
    return 0


def _rows(sources: str, style: str | None, styles: str | None) -> Iterator[tuple[str, str]]:
    """Yield each sentence and the sentence whose style is used, by default the same."""
    number = 0
    paths = [sources] if styles is None else [sources, styles]
    for number, lines in enumerate(zip_longest(*map(read_lines, paths)), 1):
        if None in lines:
            path = paths[lines.index(None)]
            raise TextError(
                f"{path}: ends after line {number - 1}, but the other file goes on; give a line"
                " for each"
            )
        yield lines[0], style or lines[-1]
    if not number:
        raise TextError(f"{sources}: empty; give a text with at least one line")
