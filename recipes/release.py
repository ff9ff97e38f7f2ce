"""Make the published models: prepare their text, train, score and pack them, and write their cards.

    python recipes/release.py --texts texts --output release --plan
    python recipes/release.py --texts texts --output release --benchmarks eval --workers 2

`texts` has a file for each source and language, `texts/es/quran.tsv.xz` (rows `english TAB other`; `texts/en` has
paraphrases), and recipes/release.yaml says what the models are and under which licence each source is offered.
After a stop the same command resumes; models that are finished are not made again.
"""

import argparse
import sys
from pathlib import Path

from st_paragram.cli.main import run_reporting_errors
from st_paragram.release.description import read_release
from st_paragram.release.plan import plan, plan_table
from st_paragram.release.run import Work, make_release

CONFIG = Path(__file__).with_name("release.yaml")


def main() -> int:
    """Tell what it will cost, make the models, and name them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--texts", type=Path, required=True, metavar="DIR", help="the text, LANG/SOURCE.tsv")
    parser.add_argument("--output", type=Path, required=True, metavar="DIR", help="where the models are made")
    parser.add_argument("--config", type=Path, default=CONFIG, help="what to make (%(default)s)")
    parser.add_argument("--only", nargs="+", default=[], metavar="MODEL", help="of all models (all)")
    parser.add_argument("--plan", action="store_true", help="only print what it will cost")
    parser.add_argument("--dev", type=Path, metavar="FILE.tsv", help="development pairs (built-in ones)")
    parser.add_argument("--benchmarks", type=Path, metavar="DIR", help="evaluation data, as `st-paragram evaluate`")
    parser.add_argument("--workers", type=int, default=1, metavar="N", help="processes that prepare text (1)")
    arguments = parser.parse_args()
    plans = plan(read_release(arguments.config).only(arguments.only), arguments.texts)
    print(plan_table(plans), flush=True)
    if not arguments.plan:
        work = Work(arguments.output, arguments.dev, arguments.benchmarks, arguments.workers)
        for folder in make_release(plans, work):
            print(folder)
    return 0


if __name__ == "__main__":
    sys.exit(run_reporting_errors("release", main))
