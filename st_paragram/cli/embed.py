"""`st-paragram embed`: the lines of a file to a matrix of embeddings."""

from __future__ import annotations

import argparse
import sys


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command."""
    parser = subparsers.add_parser(
        "embed",
        help="encode the lines of a file into a .npy matrix",
        description="Encode each line of FILE (plain, gz, xz, bz2, or - for standard input) into a row of a float32 "
        ".npy matrix. Run again after an interruption, it goes on where it stopped. Read the result with "
        'numpy.load(X, mmap_mode="r").',
    )
    parser.add_argument("file", metavar="FILE")
    parser.add_argument("--model", help="model directory, name or hub id (the only ./p-sp-* if not given)")
    parser.add_argument("--output", required=True, metavar="X.npy")
    parser.add_argument("--normalize", action="store_true", help="scale embeddings to length 1")
    parser.add_argument("--overwrite", action="store_true", help="replace an existing output")


def run(arguments: argparse.Namespace) -> int:
    """Encode the file and say what was done."""
    from st_paragram.embed_files import embed_file
    from st_paragram.models import directory as model_directory
    from st_paragram.models.find import find, only_model_here

    folder = find(arguments.model or only_model_here())
    model = model_directory.load(folder)
    report = embed_file(
        model,
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
