"""The user's own files: translations, graded pairs and retrieval, with intervals and comparisons.

Translations: is the nearest text on the other side, by cosine, a translation? This is mUSE's bitext
retrieval (P@1 in both directions; Yang et al., ACL 2020). Texts that differ only in case, spaces or
Unicode form count as one text, and all translations of a text in the file are correct. For mining,
see `bucc`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from operator import attrgetter
from unicodedata import normalize

import numpy as np

from st_paragram.core.arrays import Floats
from st_paragram.core.encoding.models import TextEncoder
from st_paragram.core.formatting import counted
from st_paragram.core.text.parallel import source_of
from st_paragram.errors import TextError
from st_paragram.tools.evaluation import report
from st_paragram.tools.evaluation.bootstrap import resampled, resampled_pearson, with_interval
from st_paragram.tools.evaluation.files import (
    GradedPairs,
    Translations,
    read_graded_pairs,
    read_translations,
)
from st_paragram.tools.evaluation.ranking import ranking_measures, search
from st_paragram.tools.evaluation.request import Request
from st_paragram.tools.evaluation.retrieval_sets import RetrievalSet, read_retrieval_set
from st_paragram.tools.evaluation.scores import (
    Score,
    cosines,
    embed,
    nearest_both_ways_of_known,
    ranks,
)

TRANSLATIONS = "own-translations"
GRADED = "own-graded"
RETRIEVAL = "own-retrieval"
_TITLES = {
    TRANSLATIONS: "Your translations: retrieval by nearest neighbor (cosine)",
    GRADED: "Your graded pairs: correlation of cosines with scores",
    RETRIEVAL: (
        "Your queries: relevant documents among the first results (cosine), mean over queries"
    ),
}
_RANKS = 100  # that count in retrieval

Measures = dict[str, Floats]  # measure -> value of each item


@dataclass(frozen=True)
class OwnData:
    """The user's files: name (for retrieval, that of the queries) -> data."""

    translations: dict[str, Translations]
    graded: dict[str, GradedPairs]
    retrieval: dict[str, RetrievalSet]


def read(request: Request) -> OwnData:
    """Read the files."""
    data = OwnData({}, {}, {})
    for path in request.translations:
        source = replace(source_of(str(path)), columns=tuple(request.columns))
        translations = read_translations(source, str(path))
        _check_distinct(translations)
        data.translations[str(path)] = translations
    for path in request.graded:
        data.graded[str(path)] = read_graded_pairs(path, request.columns)
    if request.retrieval:
        queries, corpus, qrels = request.retrieval
        data.retrieval[str(queries)] = read_retrieval_set(queries, corpus, qrels)
    return data


def _check_distinct(data: Translations) -> None:
    first = len(DistinctTexts(data.first).texts)
    second = len(DistinctTexts(data.second).texts)
    if min(first, second) < 2:
        raise TextError(
            f"{data.name}: {counted(len(data), 'pair')} with {first:,} and {second:,} distinct"
            " texts; give at least two distinct texts per side"
        )


class DistinctTexts:
    """The distinct texts of a side, apart from case, spaces and Unicode form.

    Attributes:
        texts: The d distinct texts.
        rows: For each of the n texts, its row in `texts`.
    """

    def __init__(self, texts: Sequence[str]) -> None:
        """Collect the distinct texts of n texts."""
        self.texts: list[str] = []
        self.rows: list[int] = []
        row_of_key: dict[str, int] = {}
        for text in texts:
            key = " ".join(normalize("NFC", text).casefold().split())
            if key not in row_of_key:
                row_of_key[key] = len(self.texts)
                self.texts.append(text)
            self.rows.append(row_of_key[key])


def score(name: str, model: TextEncoder, data: OwnData) -> Iterator[Score]:
    """Yield the scores of a model on each file, with resamples."""
    for file, translations in data.translations.items():
        yield from _mean_scores(name, TRANSLATIONS, file, found_translations(model, translations))
    for file, pairs in data.graded.items():
        values = cosines(model, pairs)
        grades = np.array(pairs.grades)
        pearson = Score(name, GRADED, file, measure="Pearson", items=len(pairs))
        yield with_interval(pearson, resampled_pearson(values, grades))
        spearman = replace(pearson, measure="Spearman")
        yield with_interval(spearman, resampled_pearson(values, grades, form=ranks))
    for file, queries in data.retrieval.items():
        yield from _mean_scores(name, RETRIEVAL, file, found_documents(model, queries))


def _mean_scores(name: str, benchmark: str, file: str, measures: Measures) -> Iterator[Score]:
    """Yield the mean of each measure over the items."""
    for measure, values in measures.items():
        mean = Score(name, benchmark, file, measure=measure, items=len(values))
        yield with_interval(mean, _resampled_mean(values))


def _resampled_mean(values: Floats) -> Floats:
    """Return the mean of values, followed by those of resamples."""
    return resampled(lambda rows: values[rows].mean(axis=-1), len(values))


def found_translations(model: TextEncoder, data: Translations) -> Measures:
    """Return whether the nearest neighbor is a translation (1 or 0) for each distinct pair.

    There are figures for both directions and their mean.
    """
    first = DistinctTexts(data.first)
    second = DistinctTexts(data.second)
    forward, backward = nearest_both_ways_of_known(
        embed(model, first.texts), embed(model, second.texts), 1
    )
    pairs = dict.fromkeys(zip(first.rows, second.rows, strict=True))
    to_second = np.zeros(len(pairs))
    to_first = np.zeros(len(pairs))
    for number, (first_row, second_row) in enumerate(pairs):
        to_second[number] = (first_row, int(forward[first_row])) in pairs
        to_first[number] = (int(backward[second_row]), second_row) in pairs
    return {"P@1 to second": to_second, "P@1 to first": to_first, "P@1": (to_second + to_first) / 2}


def found_documents(model: TextEncoder, data: RetrievalSet) -> Measures:
    """Return nDCG@10, recall and MRR@10 of each query.

    A document with the id and text of a query is the query itself.
    """
    rows = {key: row for row, key in enumerate(data.corpus)}
    itself: list[set[int]] = []
    for key, text in data.queries.items():
        itself.append({rows[key]} if data.corpus.get(key) == text else set())
    queries = embed(model, list(data.queries.values()), "encode_query")
    documents = embed(model, list(data.corpus.values()), "encode_document")
    ranked = search(queries, documents, itself, cut=_RANKS)
    values: dict[str, list[float]] = {}
    for documents_of_query, relevant in zip(ranked, data.relevant, strict=True):
        for measure, value in ranking_measures(documents_of_query, relevant).items():
            values.setdefault(measure, []).append(value)
    return {measure: np.array(figures) for measure, figures in values.items()}


def tables(scores: Sequence[Score], data: OwnData) -> Iterator[str]:
    """Yield a table for each file, and the differences from the first model."""
    for benchmark, own in report.grouped(scores, attrgetter("benchmark")).items():
        plain = [score for score in own if not score.against]
        for file, of_file in report.grouped(plain, report.SET).items():
            items = counted(of_file[0].items, "pair")
            if benchmark == RETRIEVAL:
                items = items.replace("pairs", "queries").replace("pair", "query")
            heading = f"{_TITLES[benchmark]}, x 100 [95% interval]: {file}, {items}"
            yield from report.section(heading, of_file, column=report.MEASURE)
        yield from report.differences(own)
    yield (
        "Intervals come from 10,000 bootstrap resamples, or from fewer if there are more than 2,000"
        " items."
    )
