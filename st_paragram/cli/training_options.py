"""Options that the training recipes share; each overrides a setting of the configuration file."""

from __future__ import annotations

import argparse
from typing import Any

_SETTINGS: dict[str, tuple[type, str]] = {
    "dim": (int, "components of an embedding"),
    "dropout": (float, "dropout on token embeddings"),
    "margin": (float, "margin of the loss"),
    "learning_rate": (float, "learning rate of Adam"),
    "epochs": (float, "passes over the pairs"),
    "batch_size": (int, "pairs of a mini-batch"),
    "megabatch_size": (int, "largest M, in mini-batches"),
    "anneal_interval": (int, "mini-batches after which M grows by one; 0: the largest M from the start"),
    "seed": (int, "seed of everything random"),
    "evaluate_steps": (int, "steps between evaluations; 0: at the end of each epoch"),
    "device": (str, "torch device, e.g. cpu or cuda"),
}


def add_training_options(parser: argparse.ArgumentParser, tuning: bool = True) -> None:
    """Add the options of data, settings and output, and `--tune` if `tuning`."""
    files = parser.add_argument_group("data and output")
    files.add_argument(
        "--data",
        action="append",
        default=[],
        metavar="FILE",
        help="a pair store (.h5), or texts of two columns (repeatable), or built-in (default: data/en-LANG.h5)",
    )
    files.add_argument("--vocab-size", type=int, help="pieces of the vocabulary, where texts are prepared (50000)")
    files.add_argument("--workers", type=int, default=1, help="processes that prepare texts (%(default)s)")
    files.add_argument(
        "--dev", metavar="FILE.tsv", help="development pairs `grade TAB sentence TAB sentence` (built-in ones)"
    )
    files.add_argument(
        "--dev-bitext",
        metavar="FILE.tsv",
        help="held-out translations `english TAB other`, whose accuracy is shown beside",
    )
    files.add_argument(
        "--force-test-set", action="store_true", help="watch the training with a known test set, which is refused else"
    )
    files.add_argument("--output", help="model directory to make; default ./p-sp-LANG")
    files.add_argument("--overwrite", action="store_true", help="replace an existing model directory")
    files.add_argument("--resume", action="store_true", help="go on from the last checkpoint")
    settings = parser.add_argument_group("settings (each overrides the configuration file)")
    settings.add_argument(
        "--config", metavar="FILE.yaml", help="default: paper.yaml or paraphrase.yaml; small.yaml on built-in data"
    )
    for name, (kind, text) in _SETTINGS.items():
        settings.add_argument(f"--{name.replace('_', '-')}", type=kind, help=text)
    settings.add_argument("--optimizer", choices=("row-lazy", "dense"), help="Adam on the batch's rows, or on all rows")
    settings.add_argument(
        "--mining-precision",
        choices=("auto", "float32", "tf32", "bfloat16", "int8"),
        help="what similarities are computed in while negatives are sought (auto: the fastest of the device)",
    )
    settings.add_argument("--negatives", choices=("opposite", "both", "random"), help="where negatives come from")
    settings.add_argument(
        "--keep-duplicates",
        action="store_true",
        help="let pairs that share a text be negatives, as the authors' code does",
    )
    parser.set_defaults(tune=False)
    if tuning:
        settings.add_argument("--tune", action="store_true", help="train the paper's grid, dropout x M; keep the best")


def overrides(arguments: argparse.Namespace) -> dict[str, Any]:
    """The settings given on the command line; None where not given."""
    given = {name: getattr(arguments, name) for name in (*_SETTINGS, "optimizer", "mining_precision", "negatives")}
    return {**given, "mask_duplicates": False if arguments.keep_duplicates else None}
