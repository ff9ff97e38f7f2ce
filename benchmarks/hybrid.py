"""Compare search by vectors, by words, and hybrid search: `python benchmarks/hybrid.py FOLDER ...`.

A folder has the files queries, corpus and qrels, as for `st-paragram evaluate`.
"""

import argparse
import sys
import tempfile
from itertools import islice
from pathlib import Path
from statistics import fmean

from st_paragram import SearchIndex
from st_paragram.cli.main import run_reporting_errors
from st_paragram.core.formatting import hundredths, markdown_table
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
    figures: dict[str, list[float]] = {name: [] for name in MEASURES}
    queries = zip(data.queries.values(), data.relevant, strict=True)
    for query, grades in islice(queries, 2000):
        if way == "words":
            vector = embed_queries(index.encoder, [query])
            hits = find_words(index.table, query, vector, Request(101, threshold=-1))
        else:
            hits = index.search(query, 101, hybrid=way == "hybrid")
        ranked = [rows[hit.sentence] for hit in hits if hit.sentence != query]  # as in `evaluate`
        relevant = {rows[texts[row]]: grade for row, grade in grades.items()}
        values = ranking_measures(ranked[:100], relevant)
        values["P@1"] = float(ranked[:1] != [] and ranked[0] in relevant)
        for name in MEASURES:
            figures[name].append(values[name])
    return [hundredths(fmean(figures[name])) for name in MEASURES]


def main() -> int:
    """Index each corpus, search it in three ways, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folders", nargs="+", type=Path, metavar="FOLDER")
    rows = []
    for folder in parser.parse_args().folders:
        files = {name: next(folder.glob(f"{name}*")) for name in ("queries", "corpus", "qrels")}
        data = read_retrieval_set(**files)
        with tempfile.TemporaryDirectory() as temporary:
            index = SearchIndex.build(data.corpus.values(), Path(temporary, "i"), "p-sp-mini")
            index.index_words()
            for way in ("vectors", "words", "hybrid"):
                rows.append([folder.name, way, *measures(index, data, way)])
    print(markdown_table(("set", "search", *MEASURES), rows, left=2))
    return 0


if __name__ == "__main__":
    sys.exit(run_reporting_errors("hybrid", main))
