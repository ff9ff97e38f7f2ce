r"""The encoders of ACL 2019 side by side: what each scores on which kind of text, and what it costs.

    python benchmarks/encoders.py --data eval --text back-translations en 100000 mt.tsv \
        --text bitext de 100000 en-de.tsv --text bitext-2x de 200000 en-de.tsv --untrained

A text is NAME LANGUAGE PAIRS FILE...; PAIRS may be `all`. Texts that differ in PAIRS alone make a curve. Each run is
kept next to the output, so that an interrupted run resumes there. The scores are of test sets: nothing is
chosen by them.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import asdict
from pathlib import Path

from harness.families.encoders import Text, read_encoders, run_encoders
from harness.output import write_result
from reports.encoders import encoders_tables

from st_paragram.cli.main import run_reporting_errors
from st_paragram.tools.evaluation.sts.sts_files import find_sts

CONFIG = Path(__file__).parent / "configs" / "encoders.yaml"


def main() -> int:
    """Train, score and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--data", type=Path, required=True, metavar="DIR", help="evaluation data, as `evaluate` takes it"
    )
    parser.add_argument("--text", nargs="+", action="append", required=True, metavar="WORD", help="what to train on")
    parser.add_argument("--config", default=CONFIG, help="the encoders (%(default)s)")
    parser.add_argument("--only", nargs="+", default=[], metavar="NAME", help="of the encoders (all)")
    parser.add_argument("--seeds", nargs="+", type=int, default=[1, 2], help="(%(default)s)")
    parser.add_argument("--untrained", action="store_true", help="score random encoders, too")
    parser.add_argument("--output", type=Path, default=Path("encoders.json"), help="(%(default)s)")
    arguments = parser.parse_args()
    texts = [Text.parse(words) for words in arguments.text]
    encoders = read_encoders(arguments.config)
    encoders = {name: of for name, of in encoders.items() if not arguments.only or name in arguments.only}
    data = find_sts(arguments.data, only=["2012", "2013", "2014", "2015", "2016", "2017"])
    parts = arguments.output.with_suffix(".parts")
    runs = list(run_encoders(encoders, texts, arguments.seeds, data, parts, arguments.untrained))
    write_result(arguments.output, runs=[asdict(run) for run in runs])
    print("\n\n".join(encoders_tables(runs)))
    return 0


if __name__ == "__main__":
    sys.exit(run_reporting_errors("encoders", main))
