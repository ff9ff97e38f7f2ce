"""`st-paragram embed`: embed the lines of files."""

from __future__ import annotations

import argparse
from contextlib import nullcontext

from st_paragram.cli.options import (
    add_columns_option,
    add_model_option,
    check_input,
    columns_of,
    is_standard_output,
    model_name,
    output_name,
    say,
    standard_output,
)
from st_paragram.core.formatting import counted
from st_paragram.core.settings import add_setting_options, given
from st_paragram.tools.embed_files.rows import EmbeddingSettings

DESCRIPTION = (
    "Turn each line of the files (plain, gz, xz, bz2, or - for standard input) into a vector. The"
    " file extension of --output sets the output format. For a table (CSV, JSON lines, Parquet),"
    " --columns names the text column. If a run is interrupted, the same command resumes it."
)
EPILOG = """\
X.npy is a matrix with one row per line, for numpy.load("X.npy", mmap_mode="r"). X.parquet is a
table with the columns `text` and `embedding` (needs st_paragram[parquet]). On standard output, each
line is a JSON object with `line`, `text` and `embedding`. A name without an extension is a folder
with one or more matrices per file; read it with st_paragram.read_embeddings.

  st-paragram embed lines.txt --output lines.npy --dtype float16
  st-paragram embed reviews.csv --columns review --output reviews.parquet --normalize
  st-paragram embed lines.txt --output - | head -1
  st-paragram embed wiki.en wiki.es --output vectors
"""


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    parser.add_argument("files", metavar="FILE", nargs="+", help="files with one text per line")
    add_columns_option(parser)
    add_model_option(parser)
    parser.add_argument(
        "--output",
        required=True,
        metavar="X.npy|X.parquet|FOLDER",
        help="output file or folder; `-`: standard output, as JSON lines",
    )
    parser.add_argument("--overwrite", action="store_true", help="replace an existing output")
    add_setting_options(parser, EmbeddingSettings)


def run(arguments: argparse.Namespace) -> int:
    """Embed the files and print the number of lines; return the exit status."""
    from st_paragram.tools.embed_files import embed_files

    for file in arguments.files:
        check_input(file)
    columns = columns_of(arguments.columns, arguments.files)
    to_stdout = is_standard_output(arguments.output)
    with standard_output() if to_stdout else nullcontext(arguments.output) as output:
        report = embed_files(
            model_name(arguments),
            arguments.files,
            output,
            columns=columns,
            overwrite=arguments.overwrite,
            **given(arguments, EmbeddingSettings),
        )
    counts = f"{counted(report.lines, 'line')} in {counted(report.files, 'file')}"
    if report.resumed:
        counts += f", {report.resumed:,} of them from an earlier run"
    counts += f"; {report.blank:,} blank"
    if report.unknown:
        counts += f", {report.unknown:,} without a known token"
    say(f"{output_name(arguments.output)}: {counts}")
    return 0
