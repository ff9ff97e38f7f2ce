"""Models on the user's own files: translations, graded pairs, and retrieval; with intervals and paired comparisons.

Translations: is the nearest text of the other side, by cosine, a translation? This is mUSE's bitext retrieval (P@1 both
ways). Texts that differ only in case, in spaces or in their Unicode form are one text, and each of a text's
translations in the file is right. For mining see `bucc`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from unicodedata import normalize

import numpy as np

from st_paragram.core.encoding.models import TextEncoder
from st_paragram.core.text.parallel import TextSource
from st_paragram.core.words import counted
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
    ranks,
    resampled,
    resampled_pearson,
    score_of,
)
from st_paragram.tools.neighbors.exact import nearest_both_ways

Data = Translations | GradedPairs | RetrievalSet

_TITLES = {
    "own-translations": "Your translations: found by the nearest neighbor (cosine)",
    "own-graded": "Your graded pairs: correlation of cosines with scores",
    "own-retrieval": "Your queries: relevant documents among those found first (cosine); means over the queries",
}


def read(request: Request) -> dict[str, Data]:
    """File (of retrieval, that of the queries) -> its data."""
    files: dict[str, Data] = {}
    for path in request.translations:
        source = TextSource((str(path),), ("first", "second"), columns=tuple(request.columns))
        files[str(path)] = data = read_translations(source, str(path))
        texts = [len(_distinct(side)[0]) for side in (data.first, data.second)]
        if min(texts) < 2:
            seen = f"{counted(len(data), 'pair')} of {texts[0]} and {texts[1]} different texts"
            raise TextError(f"{path}: {seen}; give at least two of each")
    for path in request.graded:
        files[str(path)] = read_graded_pairs(path, request.columns)
    if request.retrieval:
        queries, corpus, qrels = map(Path, request.retrieval)
        files[str(queries)] = read_retrieval_set(queries, corpus, qrels)
    return files


def score(name: str, model: TextEncoder, files: dict[str, Data]) -> Iterator[Score]:
    """Scores of a model on each file, with resamples."""
    for file, data in files.items():
        if isinstance(data, GradedPairs):
            found, grades = cosines(model, data), np.array(data.grades)
            for measure, form in (("Pearson", np.asarray), ("Spearman", ranks)):
                figures = resampled_pearson(found, grades, form=form)
                yield score_of(name, "own-graded", file, measure, figures, len(data))
            continue
        if isinstance(data, Translations):
            benchmark, counts = "own-translations", found_translations(model, data)
        else:
            benchmark, counts = "own-retrieval", found_documents(model, data)
        for measure, items in counts.items():
            figures = resampled(lambda rows, of=items: of[rows].mean(axis=-1), len(items))  # type: ignore[misc]
            yield score_of(name, benchmark, file, measure, figures, len(items))


def found_translations(model: TextEncoder, data: Translations) -> dict[str, Floats]:
    """Whether a translation of the first text of each different pair was found, and of the second; their mean."""
    (first, ahead), (second, back) = (_distinct(side) for side in (data.first, data.second))
    forward, backward = nearest_both_ways(embed(model, first), embed(model, second), 1)
    pairs = list(dict.fromkeys(zip(ahead, back, strict=True)))
    known = set(pairs)
    to_second = np.array([(one, int(forward.indices[one, 0])) in known for one, _ in pairs], np.float64)
    to_first = np.array([(int(backward.indices[other, 0]), other) in known for _, other in pairs], np.float64)
    return {"P@1 to second": to_second, "P@1 to first": to_first, "P@1": (to_second + to_first) / 2}


def found_documents(model: TextEncoder, data: RetrievalSet) -> dict[str, Floats]:
    """nDCG@10, recall and MRR@10 of each query; a document with its id and text is the query itself."""
    rows = {key: row for row, key in enumerate(data.corpus)}
    itself = [{rows[key]} if data.corpus.get(key) == text else set[int]() for key, text in data.queries.items()]
    queries = embed(model, [*data.queries.values()], model.encode_query)
    documents = embed(model, [*data.corpus.values()], model.encode_document)
    ranked = search(queries, documents, itself, 100)
    measured = [ranking_measures(found, of) for found, of in zip(ranked, data.relevant, strict=True)]
    return {name: np.array([each[name] for each in measured]) for name in measured[0]}


def tables(scores: Sequence[Score], files: dict[str, Data]) -> Iterator[str]:
    """A table for each file, and the differences to the first model; part by part."""
    for benchmark, title in _TITLES.items():
        own = [score for score in scores if score.benchmark == benchmark]
        for name in dict.fromkeys(score.set for score in own):
            plain = [score for score in own if score.set == name and not score.against]
            what = "queries" if benchmark == "own-retrieval" else "pairs"
            heading = f"{title}, x 100 [95 % interval]: {name}, {plain[0].items:,} {what}"
            yield from report.section(heading, plain, column=report.MEASURE)
            if pair := [pair for pair in ("en-es", "en-fr", "en-ru", "en-zh") if f"UNv1.0.{pair}" in name]:
                yield "These figures are published: P@1 from English among 11.3 million sentences of the UN corpus.\n"
                yield f"{report.pivot([], known=benchmark, headings=pair)}\n"
        yield from report.differences(own)
    yield "The intervals are percentiles of bootstrap resamples: 10,000, or fewer of more than 2,000 items."


def _distinct(texts: Sequence[str]) -> tuple[list[str], list[int]]:
    """Different texts, and for each text the place of its like among them."""
    keys = [" ".join(normalize("NFC", text).casefold().split()) for text in texts]
    kept: dict[str, str] = {}
    for key, text in zip(keys, texts, strict=True):
        kept.setdefault(key, text)
    rows = {key: row for row, key in enumerate(kept)}
    return list(kept.values()), [rows[key] for key in keys]
