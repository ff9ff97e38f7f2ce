"""MAP@100 of finding sentences that mean the same: `python benchmarks/semantic_retrieval.py MODEL... --data DIR`.

DIR holds retrieval sets (queries.tsv, corpus.tsv, qrels.tsv) whose queries are candidates, or is one. Instead, `--pairs
FILE` makes one of rows `sentence TAB equivalent sentence` (rows of one sentence are further candidates), and
`--askubuntu TEXTS LIST...` of the files of taolei87/askubuntu: groups are the transitive closure of the pairs.
`--output DIR` keeps what was made. Needs faiss: `st_paragram[mining]`.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from harness.scripts import finish

from st_paragram.cli.main import run_reporting_errors
from st_paragram.errors import SettingsError
from st_paragram.tools.evaluation.retrieval_files import read_semantic_sets, write_retrieval_set
from st_paragram.tools.evaluation.retrieval_groups import read_askubuntu, read_pairs_of_sentences
from st_paragram.tools.evaluation.semantic_retrieval import run_semantic_retrieval


def main() -> int:
    """Score every model on every set."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="+", metavar="MODEL")
    data = parser.add_mutually_exclusive_group(required=True)
    data.add_argument("--data", type=Path, metavar="DIR")
    data.add_argument("--pairs", type=Path, metavar="FILE")
    data.add_argument("--askubuntu", nargs="+", type=Path, metavar="FILE")
    parser.add_argument("--output", type=Path, metavar="DIR", help="write the set made of --pairs or --askubuntu there")
    parser.add_argument("--limit", type=int, metavar="N", help="the first N queries of each set")
    parser.add_argument("--untrained", action="store_true", help="add random embeddings, N(0, 1), seed 0")
    parser.add_argument("--json", type=Path, metavar="FILE")
    arguments = parser.parse_args()
    if arguments.data:
        sets = read_semantic_sets(arguments.data, arguments.limit)
    else:
        if arguments.limit is not None and arguments.limit < 1:
            raise SettingsError(f"a limit of {arguments.limit} queries; give 1 or more")
        pairs, texts = arguments.pairs, arguments.askubuntu
        made = read_pairs_of_sentences(pairs) if pairs else read_askubuntu(texts[0], texts[1:])
        if arguments.output:
            write_retrieval_set(made, arguments.output)
        sets = [made.first(arguments.limit)]
    return finish(run_semantic_retrieval(arguments.models, sets, arguments.untrained), arguments.json)


if __name__ == "__main__":
    sys.exit(run_reporting_errors("semantic_retrieval", main))
