"""Time and memory of encoding by the length of texts: `python benchmarks/length.py MODEL MODEL ... --plot length.png`.

Without trained models, `--untrained paper` makes some of random weights and the papers' sizes: P-SP, mUSE's CNN and its
transformer. Texts are random words of one token each. The time is that of `encode`, from strings to an array; that of
tokenisation alone stands beside it. Memory is what a call adds at its peak, in a fresh process for each (Linux,
or a GPU). Exponents are fitted over the longer half of the lengths.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from dataclasses import asdict
from pathlib import Path

from harness.length_models import SIZES, untrained_models
from harness.length_runs import LengthOptions, measure
from harness.processes import thread_environment
from reports.length import length_tables, plot_lengths

from st_paragram.cli.main import run_reporting_errors
from st_paragram.core.files import write_json
from st_paragram.core.machine import describe_machine
from st_paragram.errors import SettingsError


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*", metavar="MODEL", help="directories")
    parser.add_argument("--untrained", choices=SIZES, help="add three models of random weights of these sizes")
    parser.add_argument("--lengths", type=int, nargs="+", default=LengthOptions.lengths, metavar="N")
    for name, default in (("batch", 8), ("rounds", 5), ("threads", 1)):
        parser.add_argument(f"--{name}", type=int, default=default, metavar="N", help="(%(default)s)")
    parser.add_argument("--devices", nargs="+", default=[], choices=["cpu", "cuda"], help="(all there are)")
    parser.add_argument("--no-memory", action="store_true", help="times alone")
    parser.add_argument("--plot", type=Path, metavar="FILE.png")
    parser.add_argument("--json", type=Path, metavar="FILE")
    given = parser.parse_args()
    if not given.models and not given.untrained:
        raise SettingsError("no models: give directories, or --untrained paper")
    numbers = (tuple(given.lengths), given.batch, given.rounds, given.threads, tuple(given.devices))
    options, machine = LengthOptions(*numbers, memory=not given.no_memory), asdict(describe_machine())
    os.environ.update(thread_environment(options.threads))
    with tempfile.TemporaryDirectory() as folder:
        made = untrained_models(SIZES[given.untrained], options.lengths[-1], Path(folder)) if given.untrained else []
        runs = measure([*given.models, *made], options)
    if given.json:
        write_json(given.json, {"machine": machine, "options": asdict(options), "runs": list(map(asdict, runs))})
    print("\n\n".join(length_tables(runs, options.batch)))
    if given.plot:
        plot_lengths(runs, options.batch, given.plot)
    return 0


if __name__ == "__main__":
    sys.exit(run_reporting_errors("length", main))
