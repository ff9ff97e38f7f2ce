"""Score models on the user's own files: translations, graded pairs and retrieval, with intervals
and comparisons.

Translations: is the nearest text on the other side, by cosine, a translation? This is mUSE's bitext
retrieval (P@1 in both directions). Texts that differ only in case, spaces or Unicode form count as
one text, and all translations of a text in the file are correct. For mining, see `bucc`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from unicodedata import normalize

import numpy as np

from st_paragram.core.encoding.models import TextEncoder
from st_paragram.core.formatting import counted
from st_paragram.core.text.parallel import TextSource
from st_paragram.errors import TextError
from st_paragram.tools.evaluation import report
from st_paragram.tools.evaluation.benchmarks import Request
from st_paragram.tools.evaluation.files import (
    GradedPairs,
    RetrievalSet,
    Translations,
    read_graded_pairs,
    read_retrieval_set,
    read_translations,
)
from st_paragram.tools.evaluation.retrieval import ranking_measures, search
from st_paragram.tools.evaluation.scores import (
    Floats,
    Score,
    cosines,
    embed,
    nearest_both_ways_of_known,
    ranks,
    resampled,
    resampled_pearson,
    score_of,
)

Data = Translations | GradedPairs | RetrievalSet

_TITLES = {
    "own-translations": "Your translations: retrieval by nearest neighbor (cosine)",
    "own-graded": "Your graded pairs: correlation of cosines with scores",
    "own-retrieval": (
        "Your queries: relevant documents among the first results (cosine), mean over queries"
    ),
}


def read(request: Request) -> dict[str, Data]:
    """Read the files; return file (for retrieval, the file of queries) -> data."""
    files: dict[str, Data] = {}
    for path in request.translations:
        source = TextSource((str(path),), ("first", "second"), columns=tuple(request.columns))
        files[str(path)] = data = read_translations(source, str(path))
        texts = [len(_distinct(side)[0]) for side in (data.first, data.second)]
        if min(texts) < 2:
            seen = f"{counted(len(data), 'pair')} with {texts[0]} and {texts[1]} distinct texts"
            raise TextError(f"{path}: {seen}; give at least two distinct texts per side")
    for path in request.graded:
        files[str(path)] = read_graded_pairs(path, request.columns)
    if request.retrieval:
        queries, corpus, qrels = map(Path, request.retrieval)
        files[str(queries)] = read_retrieval_set(queries, corpus, qrels)
    return files


def score(name: str, model: TextEncoder, files: dict[str, Data]) -> Iterator[Score]:
    """Yield the scores of a model on each file, with resamples."""
    for file, data in files.items():
        if isinstance(data, GradedPairs):
            values, grades = cosines(model, data), np.array(data.grades)
            for measure, form in (("Pearson", np.asarray), ("Spearman", ranks)):
                figures = resampled_pearson(values, grades, form=form)
                yield score_of(name, "own-graded", file, measure, figures, len(data))
            continue
        if isinstance(data, Translations):
            benchmark, measured = "own-translations", found_translations(model, data)
        else:
            benchmark, measured = "own-retrieval", found_documents(model, data)
        for measure, items in measured.items():
            figures = resampled(lambda rows, items=items: items[rows].mean(axis=-1), len(items))  # type: ignore[misc]
            yield score_of(name, benchmark, file, measure, figures, len(items))


def found_translations(model: TextEncoder, data: Translations) -> dict[str, Floats]:
    """Return whether the nearest neighbor is a translation (1 or 0) for each distinct pair, both
    ways, and the mean.
    """
    (first, ahead), (second, back) = (_distinct(side) for side in (data.first, data.second))
    forward, backward = nearest_both_ways_of_known(embed(model, first), embed(model, second), 1)[0]
    pairs = list(dict.fromkeys(zip(ahead, back, strict=True)))
    known = set(pairs)
    to_second = np.array([(one, int(forward[one])) in known for one, _ in pairs], np.float64)
    to_first = np.array([(int(backward[other]), other) in known for _, other in pairs], np.float64)
    return {"P@1 to second": to_second, "P@1 to first": to_first, "P@1": (to_second + to_first) / 2}


def found_documents(model: TextEncoder, data: RetrievalSet) -> dict[str, Floats]:
    """Return nDCG@10, recall and MRR@10 of each query; a document with its id and text is the query
    itself.
    """
    rows = {key: row for row, key in enumerate(data.corpus)}
    itself = [
        {rows[key]} if data.corpus.get(key) == text else set[int]()
        for key, text in data.queries.items()
    ]
    queries = embed(model, [*data.queries.values()], "encode_query")
    documents = embed(model, [*data.corpus.values()], "encode_document")
    ranked = search(queries, documents, itself, 100)
    measured = [
        ranking_measures(rows, relevant)
        for rows, relevant in zip(ranked, data.relevant, strict=True)
    ]
    return {name: np.array([measures[name] for measures in measured]) for name in measured[0]}


def tables(scores: Sequence[Score], files: dict[str, Data]) -> Iterator[str]:
    """Yield a table for each file, and the differences from the first model."""
    for benchmark, title in _TITLES.items():
        own = [score for score in scores if score.benchmark == benchmark]
        for name in dict.fromkeys(score.set for score in own):
            plain = [score for score in own if score.set == name and not score.against]
            items = counted(plain[0].items, "pair")
            if benchmark == "own-retrieval":
                items = "1 query" if plain[0].items == 1 else f"{plain[0].items:,} queries"
            heading = f"{title}, x 100 [95% interval]: {name}, {items}"
            yield from report.section(heading, plain, column=report.MEASURE)
            if pair := [
                pair for pair in ("en-es", "en-fr", "en-ru", "en-zh") if f"UNv1.0.{pair}" in name
            ]:
                yield (
                    "Published figures, for comparison: P@1 from English among 11.3 million"
                    " sentences (UN corpus).\n"
                )
                yield f"{report.pivot([], known=benchmark, headings=pair)}\n"
        yield from report.differences(own)
    yield (
        "The intervals are percentiles of 10,000 bootstrap resamples, or fewer for more than 2,000"
        " items."
    )


def _distinct(texts: Sequence[str]) -> tuple[list[str], list[int]]:
    """Return the distinct texts, and for each text its index among them."""
    keys = [" ".join(normalize("NFC", text).casefold().split()) for text in texts]
    kept: dict[str, str] = {}
    for key, text in zip(keys, texts, strict=True):
        kept.setdefault(key, text)
    rows = {key: row for row, key in enumerate(kept)}
    return list(kept.values()), [rows[key] for key in keys]
