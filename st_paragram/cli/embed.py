"""`st-paragram embed`: the lines of a file to a matrix of embeddings, or those of many files to a folder of shards."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from st_paragram.core.files import check_output
from st_paragram.core.settings import add_setting_options, given
from st_paragram.core.words import counted
from st_paragram.errors import SettingsError
from st_paragram.tools.embed_files.settings import CollectionSettings, RowSettings
from st_paragram.tools.options.columns import add_columns_option, columns_of
from st_paragram.tools.options.common import (
    add_model_option,
    check_input,
    is_standard_output,
    model_folder,
    model_name,
    output_name,
    say,
    standard_output,
)
from st_paragram.tools.options.executor import add_executor_options, executor_from

if TYPE_CHECKING:
    from collections.abc import Sequence

    from st_paragram.tools.embed_files import EncodingReport

DESCRIPTION = (
    "Turn each line of FILE (plain, gz, xz, bz2, or - for standard input) into a vector: a row of a .npy "
    "matrix or a line of JSON. For a table (CSV, JSON lines, Parquet), --columns names the text column. "
    "With --sharded, the lines of several files become a folder of smaller matrices, called shards. Any "
    "number of processes or machines can work on them together. If a run is interrupted, the same command "
    "resumes it."
)
EPILOG = """\
A matrix is read with numpy.load("X.npy", mmap_mode="r"). A folder of shards is read with
st_paragram.tools.embed_files.read_embeddings("FOLDER"), whatever its format and the type of its numbers.

  st-paragram embed lines.txt --output lines.npy --dtype float16
  st-paragram embed reviews.csv --columns review --output - --format jsonl --with-text | head -1
  st-paragram embed part-*.gz --sharded --output vectors --workers 8 --dtype int8 --normalize
  st-paragram embed lines.txt --sharded --output vectors --format parquet --with-text

A folder of shards has the files shard-00000.npy, shard-00001.npy, ... and embeddings.json, which says what is in them.
Its bytes depend neither on the number of workers nor on the executor.
"""

#: Options that mean something with --sharded alone.
_OF_FOLDERS = ("shard_lines", "work", "ranks", "executor_option")
_JSONL = "jsonl"


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    parser.add_argument("files", metavar="FILE", nargs="+", help="the text; with --sharded, several are allowed")
    add_columns_option(parser)
    add_model_option(parser)
    parser.add_argument(
        "--output",
        required=True,
        metavar="X.npy|FOLDER",
        help="output file or folder; `-`: standard output, as JSON lines",
    )
    parser.add_argument("--overwrite", action="store_true", help="replace an existing output")
    parser.add_argument(
        "--format",
        choices=("npy", _JSONL, "parquet"),
        default=argparse.SUPPRESS,
        help="format of the file: a NumPy matrix, or JSON lines with line number and `embedding`; format of a "
        "shard: a NumPy matrix, or a Parquet table (needs st_paragram[parquet]) (default: jsonl for "
        "X.jsonl and `-`, otherwise npy)",
    )
    add_setting_options(parser, CollectionSettings, only=("with_text", "dtype", "dim", "normalize"))
    shards = parser.add_argument_group("folders of shards")
    shards.add_argument("--sharded", action="store_true", help="make a folder of shards")
    add_setting_options(shards, CollectionSettings, only=("shard_lines",))
    shards.add_argument(
        "--work",
        type=Path,
        metavar="DIR",
        help="folder for intermediate results; later runs embed only files that have changed",
    )
    add_executor_options(parser)


def run(arguments: argparse.Namespace) -> int:
    """Encode the files and say what was done.

    Raises:
        ParagramError: Texts, settings, model or output are refused.
    """
    for file in arguments.files:
        check_input(file)
    columns = columns_of(arguments.columns, arguments.files)
    if arguments.sharded:
        return _run_sharded(arguments, columns)
    _check_one(arguments)
    settings = RowSettings(**given(arguments, RowSettings))
    json_lines = _is_json(arguments)
    if not is_standard_output(arguments.output):
        check_output(Path(arguments.output), arguments.overwrite)
    report = _run_one(arguments, settings, columns[0], json_lines)
    resumed = f", {report.resumed:,} of them by an earlier run" if report.resumed else ""
    lines = f"{counted(report.lines, 'line')}{resumed}"
    say(f"{output_name(arguments.output)}: {lines}; {report.blank:,} blank (they have the unknown embedding)")
    return 0


def _run_one(
    arguments: argparse.Namespace, settings: RowSettings, column: str | None, json_lines: bool
) -> EncodingReport:
    from st_paragram.tools.embed_files.one_file import check_one_file, embed_file, embed_to_stream

    check_one_file(settings)
    folder, with_text = model_folder(arguments), getattr(arguments, "with_text", False)
    from st_paragram.core.encoding.directory import fingerprint
    from st_paragram.core.encoding.models import load_encoder

    model = load_encoder(folder)
    if is_standard_output(arguments.output):
        with standard_output() as stream:
            return embed_to_stream(model, arguments.files[0], stream, settings, column, with_text)
    return embed_file(
        model,
        arguments.files[0],
        arguments.output,
        normalize=settings.normalize,
        identity=fingerprint(folder),
        overwrite=arguments.overwrite,
        dtype=settings.dtype,
        dim=settings.dim,
        column=column,
        json_lines=json_lines,
        with_text=with_text,
    )


def _run_sharded(arguments: argparse.Namespace, columns: Sequence[str | None]) -> int:
    if getattr(arguments, "format", None) == _JSONL or is_standard_output(arguments.output):
        raise SettingsError("JSON lines go to one file or to standard output; leave --sharded out")
    from st_paragram.tools.embed_files.collection import check_collection, embed_collection
    from st_paragram.tools.stages.work import Work

    settings, output = CollectionSettings(**given(arguments, CollectionSettings)), Path(arguments.output)
    check_collection(arguments.files, output, settings, arguments.overwrite)
    executor = executor_from(arguments, arguments.work)
    work = Work(arguments.work, arguments.work is not None, executor=executor)
    model = model_name(arguments)
    report = embed_collection(arguments.files, output, model, settings, arguments.overwrite, work, columns)
    resumed = f", {report.resumed:,} of them by an earlier run" if report.resumed else ""
    made = f"{counted(report.lines, 'line')} to {counted(report.shards, 'shard')}{resumed}, {report.bytes:,} bytes"
    say(f"{output}: {made}; {report.blank:,} blank (they have the unknown embedding)")
    return 0


def _check_one(arguments: argparse.Namespace) -> None:
    """Refuse what makes sense for folders alone."""
    if len(arguments.files) > 1:
        raise SettingsError(f"{len(arguments.files)} files do not go into one matrix; add --sharded")
    if getattr(arguments, "format", None) == "parquet":
        raise SettingsError("--format parquet is for a folder of shards; add --sharded")
    told = [name for name in _OF_FOLDERS if getattr(arguments, name, None)]
    told += ["workers"] * (arguments.workers != 1) + ["executor"] * (arguments.executor != "local")
    if told:
        raise SettingsError(f"--{told[0].replace('_', '-')} is for a folder of shards; add --sharded")


def _is_json(arguments: argparse.Namespace) -> bool:
    """Whether the file is to be JSON lines.

    Raises:
        SettingsError: The ending of the file means another format.
    """
    output, suffix = arguments.output, Path(arguments.output).suffix.lower()
    stdout = is_standard_output(output)
    form = getattr(arguments, "format", _JSONL if stdout or suffix == f".{_JSONL}" else "npy")
    if stdout and form != _JSONL:
        raise SettingsError("a matrix cannot go to standard output; choose --format jsonl, or name a file")
    if suffix not in ("", f".{form}"):
        seen = f"{output}: the format is {form}, and the ending is {suffix}"
        raise SettingsError(f"{seen}; name X.npy, X.jsonl (JSON lines), or with --sharded a folder (npy or parquet)")
    if form != _JSONL and getattr(arguments, "with_text", False):
        raise SettingsError("--with-text is for --format jsonl, or for a folder of Parquet shards; choose one of them")
    return bool(form == _JSONL)
