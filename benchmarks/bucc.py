"""F1 of finding translations in comparable texts: `python benchmarks/bucc.py MODEL... --data DIR|PREFIX --pair zh-en`.

Files as the BUCC 2018 shared task gives them: PREFIX.zh and PREFIX.en (`id TAB sentence`), PREFIX.gold (`id TAB id`).
With `--train-gold TRAIN.gold` (beside TRAIN.zh and TRAIN.en) the threshold of each score is chosen there; without, on
the gold that is scored: an oracle's, an upper bound. `--split` adds a fair figure from one gold: chosen on one half
of the source sentences, scored on the other. Needs faiss: `st_paragram[mining]`.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from harness.scripts import finish

from st_paragram.cli.main import run_reporting_errors
from st_paragram.tools.bitext_mining.candidates import Candidates
from st_paragram.tools.bitext_mining.margin import DEFAULT_K
from st_paragram.tools.evaluation.benchmark_runs import run_bucc
from st_paragram.tools.evaluation.bucc_files import bucc_prefix, read_bucc
from st_paragram.tools.evaluation.bucc_scores import BuccTask


def main() -> int:
    """Score every model by every margin."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="+", metavar="MODEL")
    parser.add_argument("--data", required=True, metavar="DIR|PREFIX", help="DIR: its test, sample or training set")
    parser.add_argument("--pair", required=True, metavar="zh-en", help="languages, in the order of the gold's columns")
    parser.add_argument("--train-gold", metavar="FILE.gold", help="choose thresholds here, beside its two texts")
    parser.add_argument("--split", action="store_true", help="also choose on one half of the gold, score on the other")
    parser.add_argument("--seed", type=int, default=0, help="of the halves (%(default)s)")
    parser.add_argument("--k", type=int, default=DEFAULT_K, help="neighbours of a sentence (%(default)s)")
    parser.add_argument("--candidates", type=Candidates, choices=list(Candidates), default=Candidates.MAX)
    parser.add_argument("--json", type=Path, metavar="FILE")
    arguments = parser.parse_args()
    pair = arguments.pair
    texts = {pair: read_bucc(bucc_prefix(arguments.data, pair), pair)}
    training = read_bucc(arguments.train_gold.removesuffix(".gold"), pair) if arguments.train_gold else None
    task = BuccTask(texts, training, arguments.split, arguments.k, arguments.candidates, arguments.seed)
    return finish(run_bucc(arguments.models, task), arguments.json)


if __name__ == "__main__":
    sys.exit(run_reporting_errors("bucc", main))
