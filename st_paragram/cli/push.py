"""`st-paragram push`: upload a model directory to the Hugging Face hub."""

from __future__ import annotations

import argparse

from st_paragram.cli.options import MODEL, say

DESCRIPTION = (
    "Upload a model to the Hugging Face hub, in one commit. The model is checked first; only its"
    " files and its card are uploaded, nothing else in its directory. A new repository is private"
    " unless --public is given."
)
EPILOG = """\
  st-paragram push p-sp-es owner/p-sp-es --dry-run    # what would be uploaded; nothing is sent
  HF_TOKEN=... st-paragram push p-sp-es owner/p-sp-es --license cc-by-4.0
  python -c "import st_paragram; print(st_paragram.load('owner/p-sp-es'))"

The token is read only from the environment variable HF_TOKEN, so it never appears in process
listings.
"""


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    add = parser.add_argument
    add("model", metavar="MODEL", help=MODEL)
    add("repository", metavar="OWNER/NAME", help="repository on the hub; created if missing")
    add("--public", action="store_true", help="make a new repository public (default: private)")
    add("--message", metavar="TEXT", help="commit message")
    add(
        "--license",
        metavar="ID",
        type=str.lower,
        help="license of the model, a hub identifier such as cc-by-4.0",
    )
    datasets = "hub datasets that the model was trained on, for the card's metadata"
    add("--datasets", nargs="+", default=[], metavar="OWNER/NAME", help=datasets)
    scores = "score files from `st-paragram evaluate --json`, for the model card"
    add("--scores", nargs="+", default=[], metavar="FILE", help=scores)
    add(
        "--dry-run",
        action="store_true",
        help="show what would be uploaded, without sending anything",
    )


def run(arguments: argparse.Namespace) -> int:
    """Upload, and print the files with their sizes and the commit's address."""
    from st_paragram.hub import push

    report = push(
        arguments.model,
        arguments.repository,
        public=arguments.public,
        message=arguments.message,
        license=arguments.license,
        datasets=arguments.datasets,
        scores=arguments.scores,
        dry_run=arguments.dry_run,
    )
    for name, size in report.files.items():
        print(f"{size:>13,}  {name}")
    megabytes = sum(report.files.values()) / 1e6
    files = f"{len(report.files)} files, {megabytes:.1f} MB"
    if report.commit is None:
        kind = "public" if arguments.public else "private"
        say(f"would upload {files} to {report.repository} ({kind} if new)")
    else:
        kind = "private" if report.private else "public"
        say(f"uploaded {files} to {report.repository} ({kind}): {report.url}")
    if report.license is None:
        say(
            "the card names no license, so others may not use the model; choose one that the"
            " training text allows, with --license ID"
        )
    return 0
