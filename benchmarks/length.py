"""Time and memory by text length, as in figure 2 of mUSE (ACL 2020): `python benchmarks/length.py`.

Without models, p-sp-mini is compared with a CNN and a transformer of `train muse` that are trained
for one step (`--sizes`: its options). Every model and length is measured in a new process on one
thread: milliseconds per text, and the memory that a call needs in addition to the loaded model. The
exponent of a power law is fitted from 64 tokens on. Texts consist of words with one token each.
Linux only.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import tempfile
import time
from collections.abc import Iterator
from itertools import cycle, islice
from pathlib import Path

import numpy as np
from harness.output import new_file, print_growing, write_result
from harness.processes import Program, command

from st_paragram.cli.main import run_reporting_errors

WORDS = ["the", "of", "and", "a", "to", "in", "is", "you", "that", "it"]
LEAST_SECONDS = 0.5  # minimum time of all calls together
LONG = 64  # minimum tokens for the fit of the exponent
PAPER = ["--dim", "512", "--filters", "256", "--heads", "8", "--ffn-dim", "2048"]
LAYERS = {"cnn": "2", "transformer": "6"}


def process(name: str, length: int, batch: int) -> dict[str, float]:
    """Encode texts of a length repeatedly: milliseconds per text, extra memory in 2^20 bytes."""
    import st_paragram

    model = st_paragram.load(name, device="cpu")
    texts = [" ".join(islice(cycle(WORDS), start, start + length)) for start in range(batch)]
    model.encode(texts[:1], batch_size=1, show_progress_bar=False)
    for tensor in model.state_dict().values():
        tensor.float().sum()  # pages of mapped files must not count as growth
    Path("/proc/self/clear_refs").write_text("5")  # resets the peak: proc(5)
    before, started, calls = _resident_mb("VmRSS"), time.perf_counter(), 0
    while time.perf_counter() - started < LEAST_SECONDS:
        model.encode(texts, batch_size=batch, show_progress_bar=False)
        calls += 1
    seconds = (time.perf_counter() - started) / calls
    return {"ms": 1000 * seconds / batch, "extra_mb": max(_resident_mb("VmHWM") - before, 0.0)}


def _resident_mb(name: str) -> float:
    found = re.search(rf"{name}:\s+(\d+) kB", Path("/proc/self/status").read_text())
    assert found is not None
    return int(found[1]) / 2**10


def untrained(folder: Path, sizes: list[str], longest: int) -> dict[str, str]:
    """Return names and directories of p-sp-mini, and of a CNN and a transformer for texts of
    `longest` tokens.
    """
    models = {"p-sp-mini": "p-sp-mini"}
    for kind, layers in LAYERS.items():
        models[f"muse-{kind}"] = str(folder / kind)
        options = [
            "--steps",
            "1",
            "--no-bag",
            "--max-length",
            str(longest + 2),
            "--output",
            folder / kind,
        ]
        # the user's sizes take precedence
        options += ["--batch-size", "16", "--layers", layers, *sizes]
        command(
            "train",
            "muse",
            "--architecture",
            kind,
            "--langs",
            "es",
            "--bitext",
            "built-in",
            *options,
        ).run()
    return models


def exponent(lengths: list[int], values: list[float]) -> str:
    """Fit the power of the length by which values grow, from `LONG` on."""
    points = [
        (length, value)
        for length, value in zip(lengths, values, strict=True)
        if length >= LONG and value > 0
    ]
    x, y = np.log(points).T if points else ((), ())
    return f"{np.polyfit(x, y, 1)[0]:.2f}" if len(points) > 1 else "-"


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "models", nargs="*", metavar="MODEL", help="models (default: p-sp-mini and two networks)"
    )
    parser.add_argument(
        "--lengths",
        type=int,
        nargs="+",
        default=[8, 16, 32, 64, 128, 256, 512],
        help="(%(default)s)",
    )
    parser.add_argument("--batch", type=int, default=8, help="texts at a time (%(default)s)")
    parser.add_argument(
        "--sizes",
        default=" ".join(PAPER),
        help="sizes of the two networks (the paper's: %(default)s)",
    )
    parser.add_argument("--json", type=new_file, metavar="FILE", help="also write the figures")
    parser.add_argument("--process", nargs=3, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.process:
        name, *numbers = arguments.process
        print(json.dumps(process(name, *map(int, numbers))))
        return 0
    figures: dict[str, list[dict[str, float]]] = {}
    lengths = arguments.lengths

    def rows(models: dict[str, str]) -> Iterator[list[str]]:
        for name, folder in models.items():
            jobs = (
                [__file__, "--process", folder, str(length), str(arguments.batch)]
                for length in lengths
            )
            figures[name] = [Program(job, 1).run().figures for job in jobs]
            for key, what in (
                ("ms", "ms per text"),
                ("extra_mb", f"extra MB, {arguments.batch} texts"),
            ):
                values = [each[key] for each in figures[name]]
                yield [
                    f"{name}: {what}",
                    *(f"{value:.3g}" for value in values),
                    exponent(lengths, values),
                ]

    with tempfile.TemporaryDirectory() as folder:
        given = {name: name for name in arguments.models}
        models = given or untrained(Path(folder), arguments.sizes.split(), max(lengths))
        print_growing(["tokens", *map(str, lengths), "exponent"], rows(models))
    write_result(arguments.json, lengths=lengths, figures=figures)
    return 0


if __name__ == "__main__":
    sys.exit(run_reporting_errors("length", main))
