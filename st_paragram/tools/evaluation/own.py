"""Models on the user's own files: translations, graded pairs, and retrieval; with intervals and paired comparisons.

Translations: is the nearest text of the other side, by cosine, a translation? Texts that differ only in case, in spaces
or in their Unicode form are one text, and each of a text's translations in the file is right. For mining see `bucc`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from unicodedata import normalize

import numpy as np

from st_paragram.core.encoding.models import TextEncoder
from st_paragram.core.text.parallel import TextSource
from st_paragram.core.words import counted
from st_paragram.errors import TextError
from st_paragram.tools.evaluation import report
from st_paragram.tools.evaluation.benchmarks import Found, Request
from st_paragram.tools.evaluation.files import (
    GradedPairs,
    RetrievalSet,
    Translations,
    read_graded_pairs,
    read_retrieval_set,
    read_translations,
)
from st_paragram.tools.evaluation.models import score_each
from st_paragram.tools.evaluation.retrieval import ranking_measures, search
from st_paragram.tools.evaluation.scores import (
    Floats,
    Sample,
    Score,
    correlation,
    cosines,
    differences_of,
    embed,
    pearson,
    ranks,
    resampled,
    scores_of,
)
from st_paragram.tools.neighbors.exact import nearest_both_ways

TRANSLATIONS, GRADED, RETRIEVAL = "own-translations", "own-graded", "own-retrieval"
_TITLES = {
    TRANSLATIONS: "Your translations: found by the nearest neighbor (cosine)",
    GRADED: "Your graded pairs: correlation of cosines with scores",
    RETRIEVAL: "Your queries: relevant documents among those found first (cosine); means over the queries",
}


def run(request: Request) -> Found:
    """Score models on all files that are asked for; every model is loaded once."""
    files: dict[str, Translations | GradedPairs | RetrievalSet] = {}
    for path in dict.fromkeys(request.pairs):
        source = TextSource((str(path),), ("first", "second"), columns=tuple(request.columns))
        files[str(path)] = read_translations(source, str(path))
        _check(files[str(path)])
    for path in dict.fromkeys(request.graded):
        files[str(path)] = read_graded_pairs(path, request.columns)
    if request.retrieval:
        queries, corpus, qrels = map(Path, request.retrieval)
        files[str(queries)] = read_retrieval_set(queries, corpus, qrels)
    found = score_each(
        request.models, lambda model: {name: items_of(model, of) for name, of in files.items()}, request.untrained
    )
    scores: list[Score] = []
    for name, data in files.items():
        scores += scores_on(name, data, {model: of[name] for model, of in found.items()})
    return scores, tables(scores)


def items_of(model: TextEncoder, data: Translations | GradedPairs | RetrievalSet) -> dict[str, Floats]:
    """What each pair or query counts by each measure, (n,); of graded pairs, their cosines."""
    if isinstance(data, GradedPairs):
        return {"": cosines(model, data)}
    return found_translations(model, data) if isinstance(data, Translations) else found_documents(model, data)


def found_translations(model: TextEncoder, data: Translations) -> dict[str, Floats]:
    """Whether a translation of the first text of each different pair was found, and of the second; their mean."""
    (first, ahead), (second, back) = (_distinct(side) for side in (data.first, data.second))
    forward, backward = nearest_both_ways(embed(model, first), embed(model, second), 1)
    pairs = list(dict.fromkeys(zip(ahead, back, strict=True)))
    known = set(pairs)
    to_second = np.array([(one, int(forward.indices[one, 0])) in known for one, _ in pairs], np.float64)
    to_first = np.array([(int(backward.indices[other, 0]), other) in known for _, other in pairs], np.float64)
    return {"accuracy to second": to_second, "accuracy to first": to_first, "accuracy": (to_second + to_first) / 2}


def found_documents(model: TextEncoder, data: RetrievalSet) -> dict[str, Floats]:
    """nDCG@10, recall and MRR@10 of each query; a document with its id and text is the query itself."""
    rows = {key: row for row, key in enumerate(data.corpus)}
    itself = [{rows[key]} if data.corpus.get(key) == text else set[int]() for key, text in data.queries.items()]
    queries = embed(model, list(data.queries.values()), model.encode_query)
    documents = embed(model, list(data.corpus.values()), model.encode_document)
    ranked = search(queries, documents, itself, 100)
    measured = [ranking_measures(found, of) for found, of in zip(ranked, data.relevant, strict=True)]
    return {name: np.array([each[name] for each in measured]) for name in measured[0]}


def scores_on(
    name: str, data: Translations | GradedPairs | RetrievalSet, found: Mapping[str, Mapping[str, Floats]]
) -> list[Score]:
    """Scores on one file, and differences to the first model, from model -> measure -> what each item counts."""
    samples: dict[str, dict[str, Sample]] = {}  # measure -> model -> sample
    benchmark = TRANSLATIONS if isinstance(data, Translations) else RETRIEVAL
    for model, measures in found.items():
        if isinstance(data, GradedPairs):
            benchmark = GRADED
            for measure, sample in _correlations(measures[""], np.array(data.grades)).items():
                samples.setdefault(measure, {})[model] = sample
            continue
        for measure, items in measures.items():
            draws = resampled(lambda rows, of=items: of[rows].mean(axis=-1), len(items))  # type: ignore[misc]
            samples.setdefault(measure, {})[model] = float(items.mean()), draws
    count = (
        len(data.queries) if isinstance(data, RetrievalSet) else len(next(iter(next(iter(found.values())).values())))
    )
    scores = [s for measure, of in samples.items() for s in scores_of(benchmark, name, measure, of, count)]
    return scores + [s for measure, of in samples.items() for s in differences_of(benchmark, name, measure, of, count)]


def _correlations(found: Floats, grades: Floats) -> dict[str, Sample]:
    whole = correlation(found, grades)
    return {
        "Pearson": (whole.pearson, resampled(lambda rows: pearson(found[rows], grades[rows]), len(grades))),
        "Spearman": (
            whole.spearman,
            resampled(lambda rows: pearson(ranks(found[rows]), ranks(grades[rows])), len(grades)),
        ),
    }


def tables(scores: Sequence[Score]) -> Iterator[str]:
    """A table for each file, and the differences to the first model; part by part."""
    for benchmark, title in _TITLES.items():
        own = [score for score in scores if score.benchmark == benchmark]
        for name in dict.fromkeys(score.set for score in own):
            plain = [score for score in own if score.set == name and not score.against]
            what = "queries" if benchmark == RETRIEVAL else "pairs"
            heading = f"{title}, x 100 [95 % interval]: {name}, {plain[0].items:,} {what}"
            yield from report.section(heading, plain, lambda score: score.measure)
        yield from report.differences(own)
    yield "The intervals are percentiles of bootstrap resamples: 10,000, or fewer of more than 2,000 items."


def _check(data: object) -> None:
    assert isinstance(data, Translations)
    texts = [len(_distinct(side)[0]) for side in (data.first, data.second)]
    if min(texts) < 2:
        seen = f"{counted(len(data), 'pair')} of {texts[0]} and {texts[1]} different texts"
        raise TextError(f"{data.name}: {seen}; give at least two of each")


def _distinct(texts: Sequence[str]) -> tuple[list[str], list[int]]:
    """Different texts, and for each text the place of its like among them."""
    rows: dict[str, int] = {}
    kept: list[str] = []
    places = []
    for text in texts:
        place = rows.setdefault(" ".join(normalize("NFC", text).casefold().split()), len(kept))
        if place == len(kept):
            kept.append(text)
        places.append(place)
    return kept, places
