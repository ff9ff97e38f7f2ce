"""P@1 of finding the sentence that answers: `python benchmarks/answer_retrieval.py MODEL... --data DIR`.

DIR holds retrieval sets (queries.tsv, corpus.tsv, qrels.tsv), e.g. `reqa_squad_dev`; in a folder of parallel sets,
`xquad_r/es`, questions are also put to the answers of `xquad_r/en`. Models with towers are scored with and without
them. The row BM25 needs bm25s: `st_paragram[retrieval]`.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from harness.scripts import finish

from st_paragram.cli.main import run_reporting_errors
from st_paragram.tools.evaluation.answer_retrieval import read_answer_tasks, run_answer_retrieval


def main() -> int:
    """Score every model on every set."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="+", metavar="MODEL")
    parser.add_argument("--data", type=Path, required=True, metavar="DIR")
    parser.add_argument("--languages", nargs="+", default=[], metavar="CODE", help="of questions; default: all in DIR")
    parser.add_argument("--untrained", action="store_true", help="add random embeddings, N(0, 1), seed 0")
    parser.add_argument("--json", type=Path, metavar="FILE")
    arguments = parser.parse_args()
    tasks = read_answer_tasks(arguments.data, arguments.languages)
    return finish(run_answer_retrieval(arguments.models, tasks, arguments.untrained), arguments.json)


if __name__ == "__main__":
    sys.exit(run_reporting_errors("answer_retrieval", main))
