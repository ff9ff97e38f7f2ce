"""Pearson and Spearman on graded pairs: `python benchmarks/sts.py MODEL... --data FILE.tsv...`.

Rows of a file: `grade TAB sentence TAB sentence`. `--untrained` adds a row for random embeddings over the first
model's vocabulary. Prints a Markdown table, and with `--json FILE` writes the figures.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

import torch

from st_paragram import model_directory
from st_paragram.cli.main import run_reporting_errors
from st_paragram.evaluation.sts import correlate, read_graded_pairs
from st_paragram.modules.sentencepiece_embedding import SentencePieceEmbedding


def main() -> int:
    """Score every model on every file."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="+", metavar="MODEL")
    parser.add_argument("--data", nargs="+", required=True, metavar="FILE.tsv")
    parser.add_argument("--untrained", action="store_true", help="add random embeddings, N(0, 1), seed 0")
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()

    models = {name: model_directory.load(name) for name in arguments.models}
    if arguments.untrained:
        torch.manual_seed(0)
        embedding = model_directory.embedding_of(models[arguments.models[0]])
        random = SentencePieceEmbedding(embedding.vocabulary, embedding.embedding_dimension)
        models = {"untrained": model_directory.pipeline(random), **models}
    data = [read_graded_pairs(path) for path in arguments.data]
    scores = {name: [correlate(model, pairs) for pairs in data] for name, model in models.items()}

    print("Pearson / Spearman x 100\n")
    print("| model | " + " | ".join(f"{pairs.name} ({len(pairs.grades)})" for pairs in data) + " |")
    print("|" + " --- |" * (len(data) + 1))
    for name, row in scores.items():
        cells = (f"{100 * score.pearson:.1f} / {100 * score.spearman:.1f}" for score in row)
        print(f"| {name} | " + " | ".join(cells) + " |")
    if arguments.json:
        figures = {
            name: {path: vars(score) for path, score in zip(arguments.data, row, strict=True)}
            for name, row in scores.items()
        }
        arguments.json.write_text(json.dumps(figures, indent=2) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(run_reporting_errors("sts", main))
