"""Tatoeba with faiss: how often the nearest neighbor is not the translation, in both directions
(EMNLP 2022).

    python benchmarks/tatoeba.py p-sp-mini p-sp-base --data eval --languages spa tur

`faiss.IndexFlatIP` finds the candidates. The figures equal those of `st-paragram evaluate
--benchmarks tatoeba`, by cosine, except for ties, where faiss keeps other sentences: sentences with
the same words have the same vector, and so do many in an unknown script (p-sp-mini has 8 vectors
for 168 sentences of Amharic). The difference is 0.1-0.6 points.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from st_paragram.cli.main import run_reporting_errors
from st_paragram.core.encoding.models import TextEncoder, load_encoder
from st_paragram.core.encoding.unit_embeddings import unit_embeddings
from st_paragram.core.formatting import hundredths, markdown_table
from st_paragram.core.text.parallel import TextSource, read_pairs
from st_paragram.errors import EvaluationError
from st_paragram.tools.neighbors.inexact import Index
from st_paragram.tools.neighbors.settings import SearchSettings
from st_paragram.tools.neighbors.vectors import UnitRows


def errors(model: TextEncoder, first: list[str], second: list[str]) -> tuple[float, float]:
    """Return the shares of sentences with a wrong nearest neighbor, from the first side to the
    second and back.
    """
    sides = [
        unit_embeddings(model, texts, normalize_embeddings=True).vectors
        for texts in (first, second)
    ]
    wrong = []
    for queries, corpus in (sides, sides[::-1]):
        with tempfile.TemporaryDirectory() as folder:
            index = Index("Flat", UnitRows(corpus), Path(folder), SearchSettings(index="Flat"))
            found = index.search(queries, 1)
        right = (found.indices[:, 0] == np.arange(len(queries))) & queries.any(axis=1)
        wrong.append(1 - float(right.mean()))
    return wrong[0], wrong[1]


def main() -> int:
    """Score and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("models", nargs="+", metavar="MODEL")
    parser.add_argument(
        "--data",
        type=Path,
        required=True,
        metavar="DIR",
        help="folder with tatoeba/spa-eng.tsv, ...",
    )
    parser.add_argument(
        "--languages", nargs="+", metavar="CODE", help="languages such as spa (default: all in DIR)"
    )
    arguments = parser.parse_args()
    files = {path.name[:3]: path for path in sorted(arguments.data.glob("tatoeba/*-eng.tsv"))}
    wanted = arguments.languages or list(files)
    if not wanted or (missing := [code for code in wanted if code not in files]):
        raise EvaluationError(
            f"{arguments.data}: no tatoeba/{missing[0] if wanted else 'spa'}-eng.tsv; add the file"
        )

    def rows(name: str) -> Iterator[list[str]]:
        model = load_encoder(name)
        for code in wanted:
            first, second = zip(
                *read_pairs(TextSource((str(files[code]),), (code, "eng"))), strict=True
            )
            forward, backward = errors(model, list(first), list(second))
            figures = (forward, backward, (forward + backward) / 2)
            yield [name, code, str(len(first)), *map(hundredths, figures)]

    head = ["model", "language", "pairs", "error x 100 to English", "from English", "mean"]
    print(markdown_table(head, [row for name in arguments.models for row in rows(name)]))
    return 0


if __name__ == "__main__":
    sys.exit(run_reporting_errors("tatoeba", main))
