"""Semantic retrieval: MAP@100, the mean over queries of average precision cut at 100, see `retrieval`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import fmean

from st_paragram.core.encoding.models import TextEncoder
from st_paragram.errors import EvaluationError, SettingsError
from st_paragram.tools.evaluation import report
from st_paragram.tools.evaluation.benchmarks import Found, Request
from st_paragram.tools.evaluation.files import RetrievalSet
from st_paragram.tools.evaluation.models import score_each
from st_paragram.tools.evaluation.retrieval import average_precision, read_set, retrieval_sets, same_rows, search
from st_paragram.tools.evaluation.scores import Score, embed

CUT = 100


def has_data(data: Path) -> bool:
    """Whether a folder of evaluation data has sets whose queries are documents themselves."""
    return bool(retrieval_sets(data, semantic=True))


def run(request: Request) -> Found:
    """Score models on the sets of a folder, by their shared embedding (`encode`)."""
    if request.limit is not None and request.limit < 1:
        raise SettingsError(f"a limit of {request.limit} queries; give 1 or more")
    folders = retrieval_sets(request.folder, semantic=True)
    if not folders:
        needs = "a set is a folder of queries.tsv, corpus.tsv, which has the queries, and qrels.tsv"
        raise EvaluationError(f"{request.data}: no sets of sentences that look for each other; {needs}")
    sets = [read_set(folder, name) for name, folder in folders.items()]
    same = [same_rows(each) for each in sets]
    counts = [len(each.queries) if request.limit is None else min(request.limit, len(each.queries)) for each in sets]

    def scored(model: TextEncoder) -> list[float]:
        return [mean_precision(model, *each) for each in zip(sets, same, counts, strict=True)]

    scores = [
        Score(model, "semantic-retrieval", each.name, f"MAP@{CUT}", value, items=count)
        for model, values in score_each(request.models, scored, request.untrained).items()
        for each, value, count in zip(sets, values, counts, strict=True)
    ]
    return scores, tables(scores, sets)


def mean_precision(model: TextEncoder, found: RetrievalSet, same: Sequence[set[int]], count: int) -> float:
    """MAP@100 of the first `count` queries of a set."""
    texts = list(dict.fromkeys([*found.corpus.values(), *found.queries.values()]))
    places, vectors = {text: row for row, text in enumerate(texts)}, embed(model, texts)
    queries, corpus = (vectors[[places[text] for text in of.values()]] for of in (found.queries, found.corpus))
    ranked = search(queries[:count], corpus, same[:count], CUT)
    others = [set(relevant) - own for relevant, own in zip(found.relevant, same, strict=True)]
    return fmean(average_precision(rows, relevant) for rows, relevant in zip(ranked, others, strict=False))


def tables(scores: list[Score], sets: Sequence[RetrievalSet]) -> Iterator[str]:
    """A table of all models, and one of published rows, part by part."""
    queries = {score.set: score.items for score in scores}
    sizes = " ".join(f"{of.name} has {queries[of.name]:,} queries and {len(of.corpus):,} documents." for of in sets)
    yield from report.section(f"Semantic retrieval: mean average precision (MAP@{CUT}) x 100", scores, note=sizes)
    names = {of.name.partition("_")[0] for of in sets}
    wanted = [name for name in ("Quora", "AskUbuntu") if name.lower() in names]
    if wanted:
        yield "These figures are published, and were measured among other candidates:\n"
        yield report.published_table("semantic-retrieval", wanted)
