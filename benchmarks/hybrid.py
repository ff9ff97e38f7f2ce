"""Compare search by vectors, by words, and hybrid search: `python benchmarks/hybrid.py FOLDER ...`.

A folder has the files queries, corpus and qrels, as for `st-paragram evaluate`.
"""

import argparse
import sys
import tempfile
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


def measures(index: SearchIndex, data: RetrievalSet, way: str) -> list[str]:
    """Return the means of the first 2,000 queries, in percent."""
    texts = [" ".join(text.split()) for text in data.corpus.values()]
    rows = {text: row for row, text in enumerate(texts)}  # of equal texts, one
    results = []
    for query, grades in list(zip(data.queries.values(), data.relevant, strict=True))[:2000]:
        if way == "words":
            vector = embed_queries(index.encoder, [query])
            hits = find_words(index.table, query, vector, Request(101, threshold=-1))
        else:
            hits = index.search(query, 101, hybrid=way == "hybrid")
        ranked = [rows[hit.sentence] for hit in hits if hit.sentence != query]  # as in `evaluate`
        relevant = {rows[texts[row]]: grade for row, grade in grades.items()}
        p_1 = float(any(row in relevant for row in ranked[:1]))
        results.append({"P@1": p_1, **ranking_measures(ranked[:100], relevant)})
    return [f"{100 * np.mean([result[name] for result in results]):.1f}" for name in MEASURES]


def main() -> int:
    """Index each corpus, search it in three ways, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folders", nargs="+", type=Path, metavar="FOLDER")
    rows = []
    for folder in parser.parse_args().folders:
        files = [next(folder.glob(f"{name}*")) for name in ("queries", "corpus", "qrels")]
        data = read_retrieval_set(files[0], files[1], files[2])
        with tempfile.TemporaryDirectory() as temporary:
            index = SearchIndex.build(data.corpus.values(), Path(temporary, "i"), "p-sp-mini")
            index.index_words()
            for way in ("vectors", "words", "hybrid"):
                rows.append([folder.name, way, *measures(index, data, way)])
    print(markdown_table(("set", "search", *MEASURES), rows, left=2))
    return 0


if __name__ == "__main__":
    sys.exit(run_reporting_errors("hybrid", main))
