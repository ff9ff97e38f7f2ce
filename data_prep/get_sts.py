"""Fetch STS 2012-2017 and the STS Benchmark for `st-paragram evaluate`: `python data_prep/get_sts.py DIR`.

Makes DIR/sts2012/SMTeuroparl.tsv, ..., DIR/sts2017/track5.en-en.tsv, DIR/stsb/en-dev.tsv with rows
`grade TAB sentence TAB sentence`. What is there already is not fetched again. Scores are CC BY-SA 4.0; the sentences
keep their own licenses, named on the tasks' pages (https://ixa2.si.ehu.eus/stswiki).
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from st_paragram.cli.main import run_reporting_errors
from st_paragram.tools.evaluation.sts.download import MICROSOFT_TERMS, SMT_TERMS, download_sts


def main() -> int:
    """Fetch, and say what a licence forbids; status 1 if something is left out for want of consent."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, metavar="DIR")
    parser.add_argument(
        "--accept-msr-terms", action="store_true", help="fetch STS 2012 and the STS Benchmark; shown without it"
    )
    arguments = parser.parse_args()
    got = download_sts(arguments.folder, arguments.accept_msr_terms)
    sys.stdout.write(f"{len(got.written)} sets fetched, {len(got.kept)} were there\n\n{SMT_TERMS}\n")
    if got.refused:
        sys.stdout.write(f"\nNot fetched: {', '.join(got.refused)}. {MICROSOFT_TERMS}\n")
    return 1 if got.refused else 0


if __name__ == "__main__":
    sys.exit(run_reporting_errors("get_sts", main))
