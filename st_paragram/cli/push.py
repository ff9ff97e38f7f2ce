"""`st-paragram push`: a model directory onto the Hugging Face hub."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from st_paragram.hub.push import PushReport

DESCRIPTION = (
    "Upload a model to the Hugging Face hub, in one commit. The model is checked first; only its files and "
    "its card are uploaded, nothing else in its directory. A new repository is private unless --public is "
    "given."
)
EPILOG = """\
  st-paragram push p-sp-es owner/p-sp-es --dry-run                # what would be uploaded; nothing is sent
  HF_TOKEN=... st-paragram push p-sp-es owner/p-sp-es --licence cc-by-4.0
  python -c "import st_paragram; print(st_paragram.load('owner/p-sp-es'))"

The token is read only from the environment variable HF_TOKEN, so it never appears in process listings.
"""


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    add = parser.add_argument
    add("model", metavar="MODEL", help="model directory, name or hub id")
    add("repository", metavar="OWNER/NAME", help="repository on the hub; created if missing")
    add("--public", action="store_true", help="make a new repository public (default: private)")
    branch = "branch to push to; created if missing (default: main)"
    add("--branch", "--revision", default="main", metavar="B", help=branch)
    add("--message", metavar="TEXT", help="commit message")
    licence = "licence of the model, by the hub's identifier, such as cc-by-4.0"
    add("--licence", "--license", metavar="ID", help=licence)
    datasets = "datasets on the hub that the model was trained on, for the card's metadata"
    add("--datasets", nargs="+", default=[], metavar="OWNER/NAME", help=datasets)
    scores = "records by `st-paragram evaluate --json`: test scores for the model card"
    add("--scores", nargs="+", default=[], metavar="FILE", help=scores)
    add("--dry-run", action="store_true", help="show what would be uploaded, without sending anything")


def run(arguments: argparse.Namespace) -> int:
    """Upload, and say what was uploaded; returns the exit status."""
    from st_paragram.hub.push import push

    report = push(
        arguments.model,
        arguments.repository,
        public=arguments.public,
        branch=arguments.branch,
        message=arguments.message,
        licence=arguments.licence and arguments.licence.lower(),
        datasets=arguments.datasets,
        scores=arguments.scores,
        dry_run=arguments.dry_run,
    )
    _show(report, arguments.public)
    return 0


def _show(report: PushReport, public: bool) -> None:
    """Files with their sizes on standard output, the outcome on standard error."""
    for name in report.uploaded:
        print(f"{report.files[name]:>13,}  {name}")
    for name in report.removed:
        print(f"{'removed':>13}  {name}")
    size = sum(report.files[name] for name in report.uploaded)
    what = f"{len(report.uploaded)} files, {size / 1e6:.1f} MB"
    if report.commit is None:
        said = f"would be uploaded to {report.repository}, {'public' if public else 'private'} if it is new: {what}"
    elif not (report.uploaded or report.removed):
        said = f"{report.repository} has all of it already; nothing was uploaded; {report.url}"
    else:
        said = f"uploaded to {report.repository} ({'private' if report.private else 'public'}): {what}; {report.url}"
    print(said, file=sys.stderr)
