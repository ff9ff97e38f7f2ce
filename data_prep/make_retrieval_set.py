"""Make a set for semantic retrieval: `python data_prep/make_retrieval_set.py --pairs FILE --output DIR/NAME`.

`--pairs` takes rows `sentence TAB equivalent sentence` (rows of one sentence are further candidates), `--askubuntu` the
files TEXTS LIST... of taolei87/askubuntu: groups are the transitive closure of the pairs. The folder gets queries.tsv,
corpus.tsv and qrels.tsv; `st-paragram evaluate MODEL --data DIR --benchmarks semantic-retrieval` scores models on it.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from st_paragram.cli.main import run_reporting_errors
from st_paragram.tools.evaluation.retrieval_files import write_retrieval_set
from st_paragram.tools.evaluation.retrieval_groups import read_askubuntu, read_pairs_of_sentences


def main() -> int:
    """Read, group and write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    data = parser.add_mutually_exclusive_group(required=True)
    data.add_argument("--pairs", type=Path, metavar="FILE")
    data.add_argument("--askubuntu", nargs="+", type=Path, metavar="FILE")
    parser.add_argument("--output", type=Path, required=True, metavar="DIR", help="the folder to make")
    arguments = parser.parse_args()
    texts = arguments.askubuntu
    made = read_pairs_of_sentences(arguments.pairs) if arguments.pairs else read_askubuntu(texts[0], texts[1:])
    write_retrieval_set(made, arguments.output)
    sys.stdout.write(f"{len(made.queries):,} queries, {len(made.corpus):,} candidates\n")
    return 0


if __name__ == "__main__":
    sys.exit(run_reporting_errors("make_retrieval_set", main))
