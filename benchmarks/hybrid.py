"""Compare search by vectors, by words, and hybrid search: `python benchmarks/hybrid.py FOLDER ...`.

A folder has the files queries, corpus and qrels, as for `st-paragram evaluate`.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from st_paragram import SearchIndex
from st_paragram.cli.main import run_reporting_errors
from st_paragram.core.formatting import markdown_table
from st_paragram.tools.evaluation.ranking import ranking_measures
from st_paragram.tools.evaluation.retrieval_sets import RetrievalSet, read_retrieval_set
from st_paragram.tools.search.hybrid import find_words
from st_paragram.tools.search.nearest import Request
from st_paragram.tools.search.text_search import embed_queries

MEASURES = ("P@1", "MRR@10", "nDCG@10", "recall@100")


def cells(index: SearchIndex, data: RetrievalSet, way: str) -> list[str]:
    """Return the mean measures of the first 2,000 queries, and the milliseconds per query."""
    queries = list(data.queries.values())[:2000]
    results = []
    begin = time.perf_counter()
    for text in queries:
        if way == "words":
            vector = embed_queries(index.encoder, [text])
            results.append(find_words(index.table, text, vector, Request(101, threshold=-1)))
        else:
            results.append(index.search(text, 101, hybrid=way == "hybrid"))
    seconds = time.perf_counter() - begin
    texts = [" ".join(text.split()) for text in data.corpus.values()]
    rows = {text: row for row, text in enumerate(texts)}  # of equal texts, one
    measures = []
    for query, hits, grades in zip(queries, results, data.relevant, strict=False):
        relevant = {rows[texts[row]]: grade for row, grade in grades.items()}
        ranked = [rows[hit.sentence] for hit in hits if hit.sentence != query]  # as in `evaluate`
        p_1 = float(ranked[0] in relevant)
        measures.append({"P@1": p_1, **ranking_measures(ranked[:100], relevant)})
    figures = [100 * float(np.mean([query[name] for query in measures])) for name in MEASURES]
    return [f"{figure:.1f}" for figure in (*figures, 1000 * seconds / len(results))]


def main() -> int:
    """Index each corpus, search it in three ways, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("sets", nargs="+", type=Path, metavar="FOLDER")
    rows = []
    for folder in parser.parse_args().sets:
        queries, corpus, qrels = [
            next(folder.glob(f"{name}*")) for name in ("queries", "corpus", "qrels")
        ]
        data = read_retrieval_set(queries, corpus, qrels)
        with tempfile.TemporaryDirectory() as temporary:
            texts = list(data.corpus.values())
            index = SearchIndex.build(texts, Path(temporary, "index"), "p-sp-mini")
            index.index_words()
            rows += [
                [folder.name, way, *cells(index, data, way)]
                for way in ("vectors", "words", "hybrid")
            ]
    print(markdown_table(("set", "search", *MEASURES, "ms/query"), rows, left=2))
    return 0


if __name__ == "__main__":
    sys.exit(run_reporting_errors("hybrid", main))
