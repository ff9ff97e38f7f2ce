r"""The generative model of EMNLP 2020, its ablations and baselines on the same pairs: scores, cost, what is held.

    python benchmarks/generative.py --lang es --store en-es.h5 --data eval --seeds 1 2 --plot generative.png

Each model is trained by the command that users have. Model directories and scores are kept next to the output, so a
run that was stopped resumes where it stopped. The scores are of test sets: nothing is chosen by them.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import asdict
from pathlib import Path

from harness.families.generative import Inputs, read_models, run_models
from harness.output import write_result
from reports.generative import generative_tables, plot_generative

from st_paragram.cli.main import run_reporting_errors
from st_paragram.tools.evaluation.sts.sts_files import find_sts
from st_paragram.tools.evaluation.tatoeba import read_tatoeba

CONFIG = Path(__file__).parent / "configs" / "generative.yaml"
YEARS = ["2012", "2013", "2014", "2015", "2016", "2017"]


def main() -> int:
    """Train, score and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lang", required=True, metavar="LANG", help="the language other than English")
    parser.add_argument("--store", type=Path, required=True, metavar="FILE.h5", help="the pairs")
    parser.add_argument("--data", type=Path, required=True, metavar="DIR", help="evaluation data, as `evaluate` has it")
    parser.add_argument("--config", default=CONFIG, help="the models (%(default)s)")
    parser.add_argument("--only", nargs="+", default=[], metavar="NAME", help="of the models (all)")
    parser.add_argument("--seeds", nargs="+", type=int, default=[1, 2], help="(%(default)s)")
    parser.add_argument("--output", type=Path, default=Path("generative.json"), help="(%(default)s)")
    parser.add_argument("--plot", type=Path, metavar="FILE.png", help="what latent variables hold over time")
    arguments = parser.parse_args()
    models = [model for model in read_models(arguments.config) if not arguments.only or model.name in arguments.only]
    sets = read_tatoeba(arguments.data, [arguments.lang])
    inputs = Inputs(arguments.lang, arguments.store, find_sts(arguments.data, only=YEARS), sets)
    runs = list(run_models(models, arguments.seeds, inputs, arguments.output.with_suffix(".models")))
    write_result(arguments.output, runs=[asdict(run) for run in runs])
    print("\n\n".join(generative_tables(runs, arguments.lang)))
    if arguments.plot:
        plot_generative(runs, arguments.plot)
    return 0


if __name__ == "__main__":
    sys.exit(run_reporting_errors("generative", main))
