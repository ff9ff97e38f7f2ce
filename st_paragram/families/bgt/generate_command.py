"""`st-paragram generate`: sentences that a generative model writes."""

from __future__ import annotations

import argparse
import dataclasses
import sys
from collections.abc import Iterator
from itertools import islice, tee
from pathlib import Path
from typing import IO, TYPE_CHECKING, cast

from st_paragram.core.encoding.directory import read_configuration
from st_paragram.core.encoding.find import SHIPPED, find
from st_paragram.core.families import FAMILIES
from st_paragram.core.files import STDIN, check_output
from st_paragram.core.settings import add_setting_options, given
from st_paragram.errors import ModelDirectoryError, SettingsError
from st_paragram.families.bgt.generation.settings import NEEDED, TASKS, GenerationSettings
from st_paragram.tools.options.common import check_input, output_opened

if TYPE_CHECKING:
    from st_paragram.families.bgt.generation.generate import Route
    from st_paragram.families.bgt.generation.report import Report
    from st_paragram.families.bgt.generation.rows import Row
    from st_paragram.families.bgt.generation.settings import Task
    from st_paragram.families.bgt.sentence_transformers_encoder import GenerativeEncoder

DESCRIPTION = (
    "Write a new sentence for each line of FILE (plain, gz, xz, bz2, or - for standard input), in the same "
    "order. The model must come from `st-paragram train bgt`. It can reproduce the sentence (reconstruct), "
    "write its meaning in the other language (translate), or write its meaning in the style of another "
    "sentence (transfer). A blank line gives a blank line."
)
EPILOG = """\
  st-paragram generate bgt-es --task reconstruct --from es sentences.es
  st-paragram generate bgt-es --task translate --from en --to es --output out.es --measures --references ref.es in.en
  echo "We are late." | st-paragram generate bgt-es --task transfer --to en --style "Are you sure, my friend?" -
  st-paragram generate bgt-es --task transfer --to en --styles styles.en --measures sentences.es

With --measures, the command prints to standard error how similar the outputs are to their sources (the cosine by
--scorer), how much of them is copied, and how well they agree with the styles in length and punctuation. For
reconstructions, and for translations with --references, it also prints BLEU, the agreement with the reference in words
and phrases from 0 to 100. This needs pip install "st_paragram[generation]". Blank lines do not count.
"""


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    add = parser.add_argument
    add("model", metavar="MODEL", help="model directory, name or hub id")
    add("file", metavar="FILE", help="sentences, one per line; - for standard input")
    add("--task", choices=TASKS, required=True, help="what to write")
    add(
        "--from",
        dest="source",
        metavar="LANG",
        help="language of the sentences (default: the language other than --to)",
    )
    add(
        "--to",
        dest="target",
        metavar="LANG",
        help="language to write (default: the first language of the model; for a translation, the second)",
    )
    add("--style", metavar="SENTENCE", help="for a transfer: sentence whose style is used for all outputs")
    add(
        "--styles",
        metavar="FILE",
        help="for a transfer: file with one style sentence per line of FILE",
    )
    add("--output", type=Path, metavar="OUT.txt", help="output file (default: standard output)")
    add("--overwrite", action="store_true", help="replace an existing output")
    add_setting_options(parser.add_argument_group("search"), GenerationSettings)
    add = parser.add_argument_group("measures").add_argument
    add("--measures", action="store_true", help="print measures of the outputs to standard error")
    add(
        "--scorer",
        metavar="MODEL",
        default=SHIPPED,
        help="model for the cosines (default: %(default)s)",
    )
    add(
        "--references",
        metavar="FILE",
        help="for a translation: file with the reference translation of each line of FILE",
    )


def run(arguments: argparse.Namespace) -> int:
    """Write the sentences, and perhaps what was measured.

    Raises:
        ParagramError: Text, model, settings or output are refused.
    """
    settings = GenerationSettings(**given(arguments, GenerationSettings))
    folder = _check(arguments)

    from st_paragram.families.bgt.generation.generate import find_route
    from st_paragram.learning.models.directory import load

    model = cast("GenerativeEncoder", load(folder))  # _check has seen that it is one
    route = find_route(model, arguments.task, arguments.source, arguments.target)
    report = _report(arguments, route.language) if arguments.measures else None
    with output_opened(arguments.output, arguments.overwrite) as handle:
        _write(handle, model, route, arguments, settings, report)
    if report:
        print(report.table(), file=sys.stderr)
    return 0


def _check(arguments: argparse.Namespace) -> Path:
    """Refuse what can be refused before anything heavy is imported; returns the model's directory."""
    styles = [value for value in (arguments.style, arguments.styles) if value is not None]
    if arguments.task == "transfer" and len(styles) != 1:
        raise SettingsError("a transfer needs a style; give either --style SENTENCE or --styles FILE")
    if arguments.task != "transfer" and styles:
        raise SettingsError(
            f"there is a style for --task {arguments.task}; --style and --styles are for --task transfer"
        )
    if arguments.style is not None and not arguments.style.strip():
        raise SettingsError("the style is blank; give a sentence")
    if arguments.references and not (arguments.measures and arguments.task == "translate"):
        raise SettingsError("references are for --measures of --task translate; give these, or leave --references out")
    files = [path for path in (arguments.file, arguments.styles, arguments.references) if path]
    if files.count(STDIN) > 1:
        raise SettingsError("two files are standard input; give at most one as -")
    for path in files:
        check_input(path)
    if arguments.output:
        check_output(arguments.output, arguments.overwrite)
    if arguments.measures:
        find(arguments.scorer)
    return _generative_folder(arguments.model)


def _generative_folder(name: str) -> Path:
    folder = find(name)
    architecture = read_configuration(folder).architecture
    if architecture not in FAMILIES["bgt"].architectures:
        raise ModelDirectoryError(f"{folder}: a model of architecture {architecture!r}, an encoder alone; {NEEDED}")
    return folder


def _report(arguments: argparse.Namespace, language: str) -> Report:
    from st_paragram.families.bgt.generation.bleu import CorpusBleu
    from st_paragram.families.bgt.generation.report import Report
    from st_paragram.learning.models.directory import load

    compared = arguments.task == "reconstruct" or arguments.references
    return Report(load(arguments.scorer), CorpusBleu(language) if compared else None)


def _write(
    handle: IO[str],
    model: GenerativeEncoder,
    route: Route,
    arguments: argparse.Namespace,
    settings: GenerationSettings,
    report: Report | None,
) -> None:
    """Write sentences and measure them, batch by batch."""
    from tqdm import tqdm

    from st_paragram.families.bgt.generation.generate import generate

    rows, again = tee(_rows(arguments))
    to_screen = handle is sys.stdout and sys.stdout.isatty()
    with tqdm(unit="sentence", unit_scale=True, disable=to_screen or None) as bar:
        written = generate(model, route, ((row.source, row.style or "") for row in rows), settings, bar.update)
        both = zip(again, written, strict=True)
        while block := list(islice(both, settings.batch_size)):
            handle.writelines(f"{output}\n" for _, output in block)
            if report:
                _measure(report, [(row, output) for row, output in block if not row.blank], route.task)


def _measure(report: Report, block: list[tuple[Row, str]], task: Task) -> None:
    report.add(
        [output for _, output in block],
        [row.source for row, _ in block],
        [row.style or "" for row, _ in block] if task == "transfer" else None,
        [row.source if task == "reconstruct" else row.reference or "" for row, _ in block],
    )


def _rows(arguments: argparse.Namespace) -> Iterator[Row]:
    from st_paragram.families.bgt.generation.rows import read_rows

    rows = read_rows(arguments.file, arguments.styles, arguments.references)
    return rows if arguments.style is None else (dataclasses.replace(row, style=arguments.style) for row in rows)
