"""`st-paragram embed`: the lines of a file to a matrix of embeddings."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from st_paragram.cli.common_options import add_model_option, check_input, model_folder
from st_paragram.files import check_output

DESCRIPTION = (
    "Encode each line of FILE (plain, gz, xz, bz2, or - for standard input) into a row of a float32 .npy matrix. A "
    'run that was interrupted is resumed by the same command. Read the result with numpy.load("X.npy", '
    'mmap_mode="r").'
)
EPILOG = ""


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    parser.add_argument("file", metavar="FILE", help="the text")
    add_model_option(parser)
    parser.add_argument("--output", required=True, metavar="X.npy", help="the file to make")
    parser.add_argument("--normalize", action="store_true", help="scale embeddings to length 1")
    parser.add_argument("--overwrite", action="store_true", help="replace an output that exists")


def run(arguments: argparse.Namespace) -> int:
    """Encode the file and say what was done.

    Raises:
        ParagramError: Text, model or output are refused.
    """
    check_input(arguments.file)
    check_output(Path(arguments.output), arguments.overwrite)
    folder = model_folder(arguments)

    from st_paragram.embed_files import embed_file
    from st_paragram.models import directory as model_directory

    report = embed_file(
        model_directory.load(folder),
        arguments.file,
        arguments.output,
        normalize=arguments.normalize,
        identity=model_directory.fingerprint(folder),
        overwrite=arguments.overwrite,
    )
    resumed = f", {report.resumed} of them by an earlier run" if report.resumed else ""
    print(
        f"{arguments.output}: {report.lines} lines{resumed}; {report.blank} blank (they have the unknown embedding)",
        file=sys.stderr,
    )
    return 0
