"""Mine translations in two texts, with one sentence per line.

    python recipes/mine_bitext.py --source a.en --target a.es --model p-sp-es --output pairs.tsv

The rows of the output are `score TAB source TAB target`, best pairs first. To train on mined pairs:
`cut -f 2,3 pairs.tsv > mined.tsv; st-paragram prepare --lang es --text mined.tsv ...`.
`st-paragram mine` writes the same rows, and has more options.
"""

import argparse
import sys
from itertools import islice
from pathlib import Path

import st_paragram
from st_paragram.cli.main import run_reporting_errors


def main() -> int:
    """Mine, and return the exit status."""
    parser = argparse.ArgumentParser(description="Mine translations in two texts.")
    add = parser.add_argument
    add("--source", required=True, help="sentences in one language")
    add("--target", required=True, help="sentences in the other language")
    add("--model", default="p-sp-mini", help="model directory, name or hub id")
    add("--output", type=Path, required=True, help="output file")
    add("--overwrite", action="store_true", help="replace an existing output")
    add("--threshold", type=float, help="minimum score of a pair (default: all candidates)")
    add("--margin", choices=("distance", "ratio", "absolute"), default="distance", help="score")
    add("--neighbors", type=int, default=4, help="neighbors searched per sentence")
    add("--work", type=Path, help="folder for intermediate results; later runs reuse them")
    options = parser.parse_args()

    # A cosine says little alone, because some sentences are close to everything. The score of a
    # pair is its cosine minus (distance) or divided by (ratio) the mean cosine of both sentences
    # with their nearest neighbors. Each sentence is in one pair at most.
    settings = st_paragram.MiningSettings(
        margin=options.margin,
        neighbors=options.neighbors,
        threshold=options.threshold,
    )

    # Embed the sentences, search each text for neighbors of the other, and write the best pairs.
    report = st_paragram.mine(
        [options.source, options.target],
        output=options.output,
        model=options.model,
        settings=settings,
        overwrite=options.overwrite,
        work=options.work,
    )
    print(report.table())

    # The first rows: the pairs with the highest scores.
    with options.output.open(encoding="utf-8") as rows:
        for row in islice(rows, 3):
            score, source, target = row.rstrip("\n").split("\t")
            print(f"{float(score):.3f}  {source}  |  {target}")
    return 0


if __name__ == "__main__":
    sys.exit(run_reporting_errors("mine_bitext", main))
