"""Semantic and answer retrieval: tasks of queries and candidates, exact search, ranking measures,
and BM25.

A set is a folder with `queries.tsv`, `corpus.tsv` and `qrels.tsv`, plain or compressed
(`files.read_retrieval_set`). Semantic retrieval (Gillick et al. 2018; mUSE's task SR) searches for
sentences with the same meaning. Its queries are documents themselves, and its measure is MAP@100.
Answer retrieval (ReQA, Ahmad et al. 2019; XQuAD-R, Roy et al. 2020) searches for sentences that
answer questions. It measures P@1 and MRR, with the ranks of google/retrieval-qa-eval.

Sets in one folder that are named by languages, `xquad_r/es` and `xquad_r/en`, are parallel: the
queries of each set also search the English candidates ("xquad_r/es-en"). The folder of a language
may have only queries: those of the English set in that language, with the same ids.
"""

from __future__ import annotations

import importlib.util
import logging
import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np
from numpy.typing import NDArray

from st_paragram.core.encoding.models import TextEncoder
from st_paragram.core.extras import require
from st_paragram.core.text.streams import read_lines
from st_paragram.core.text.words import split_words
from st_paragram.errors import EvaluationError, SettingsError, short
from st_paragram.tools.evaluation import report
from st_paragram.tools.evaluation.benchmarks import Request
from st_paragram.tools.evaluation.files import RetrievalSet, packed, read_retrieval_set
from st_paragram.tools.evaluation.scores import DECIMALS, Floats, Score, embed
from st_paragram.tools.neighbors.exact import nearest_neighbors
from st_paragram.tools.neighbors.results import Vectors

Rows = NDArray[np.int64]
Scores = NDArray[np.floating]  # type: ignore[type-arg]

SEMANTIC, ANSWER = "semantic-retrieval", "answer-retrieval"
CUT = 100  # ranks that count in semantic retrieval
PIVOT = "en"  # language of the candidates that queries in all languages search
# questions and sentences of SQuAD 1.1, split by ReQA
_SIZES = {"dev": (11_425, 10_248), "train": (87_599, 91_703)}
_BLOCK = 512  # questions ranked at a time
_LANGUAGE = re.compile(r"[a-z]{2}")


@dataclass(frozen=True)
class Task:
    """Queries of one set, and candidates from the same set or another set."""

    name: str  # "xquad_r/es", or "xquad_r/es-en" with candidates from another set
    crosslingual: bool  # whether the candidates are from another set
    queries: tuple[str, ...]  # n texts
    corpus: tuple[str, ...]  # m texts
    contexts: tuple[str, ...]  # texts around the candidates; empty if there are none
    relevant: list[set[int]]  # for each query, the correct candidates
    # for each query, the candidates that are the query itself (semantic retrieval)
    itself: list[set[int]]


Data = tuple[str, list[Task]]  # name of the benchmark, tasks


def find(data: Path, benchmark: str) -> dict[str, Path]:
    """Return name -> folder of the sets in a folder, up to two levels deep; the folder itself may
    be a set.

    Names of sets for a language ("es") include the parent folder, "xquad_r/es". If the first query
    of a set is a document, the set belongs to semantic retrieval, and so do the queries in other
    languages next to it.
    """
    folders = (
        [data]
        if _part(data, "corpus")
        else sorted(path for glob in ("*", "*/*") for path in data.glob(glob))
    )
    sets = {}
    for folder in folders:
        corpus = _part(folder, "corpus")
        if corpus and _part(folder, "qrels") and _has_query(corpus) == (benchmark == SEMANTIC):
            name = folder.relative_to(data).as_posix() if folder != data else data.resolve().name
            sets[f"{data.resolve().name}/{name}" if _LANGUAGE.fullmatch(name) else name] = folder
    return sets


def _part(folder: Path, name: str) -> Path | None:
    """Return a file of a set with queries, or else that of the English set next to it; None if both
    are missing.
    """
    if not packed(folder / "queries.tsv"):
        return None
    english = _LANGUAGE.fullmatch(folder.name) and packed(folder.with_name(PIVOT) / f"{name}.tsv")
    return packed(folder / f"{name}.tsv") or english or None


def _has_query(corpus: Path) -> bool:
    first = next(iter(read_lines(str(_part(corpus.parent, "queries")))), "").split("\t")
    return any(line.split("\t")[:2] == first for line in read_lines(str(corpus)))


def read(request: Request) -> Data:
    """Read the tasks of a folder; `languages` selects among sets that are named by languages."""
    if request.limit is not None and request.limit < 1:
        raise SettingsError(f"the limit is {request.limit} queries; give 1 or more")
    benchmark, folders = request.benchmark, find(request.data or Path(), request.benchmark)
    form = "a set is a folder with queries.tsv, corpus.tsv and qrels.tsv"

    @cache
    def load(name: str) -> RetrievalSet:
        folder = folders[name]
        queries, corpus, qrels = (
            _part(folder, part) or folder for part in ("queries", "corpus", "qrels")
        )
        return read_retrieval_set(queries, corpus, qrels, name)

    tasks = []
    for name, folder in request.choose(folders, form, _language).items():
        searched = [name] if packed(folder / "corpus.tsv") else []
        if (
            _language(name) not in ("", PIVOT)
            and (pivot := f"{name.rpartition('/')[0]}/{PIVOT}") in folders
        ):
            searched.append(pivot)
        tasks += [
            make_task(load(name), load(candidates), benchmark, request.limit)
            for candidates in searched
        ]
    return benchmark, tasks


def _language(name: str) -> str:
    """Return the language in the name of a set, "es" for "xquad_r/es"; empty for other names."""
    last = name.rpartition("/")[2]
    return last if "/" in name and _LANGUAGE.fullmatch(last) else ""


def make_task(
    asked: RetrievalSet, answered: RetrievalSet, benchmark: str, limit: int | None = None
) -> Task:
    """Return the task of the queries of a set and the candidates of this set, or of another with
    the same query ids.

    In answer retrieval, repeated candidates in one context are merged, and all copies of a correct
    text are correct.
    """
    if (
        absent := next((key for key in asked.queries if key not in answered.queries), None)
    ) is not None:
        seen = f"query {short(absent)} of {asked.name} is missing from {answered.name}"
        raise EvaluationError(
            f"{seen}; give parallel sets, with the same query ids in all languages"
        )
    judged = dict(zip(answered.queries, answered.relevant, strict=True))
    queries = dict(list(asked.queries.items())[:limit])
    texts = list(answered.corpus.values())
    rows = list(zip(texts, answered.contexts, strict=True))
    candidates = rows if benchmark == SEMANTIC else list(dict.fromkeys(rows))
    alike = defaultdict[str, set[int]](set)
    for row, (text, _) in enumerate(candidates):
        alike[text].add(row)
    if benchmark == SEMANTIC:
        places = {key: {row} for row, key in enumerate(answered.corpus)}
        itself = [alike[text] | places.get(key, set()) for key, text in queries.items()]
        right = [judged[key].keys() - own for key, own in zip(queries, itself, strict=True)]
        if alone := [key for key, rows in zip(queries, right, strict=True) if not rows]:
            raise EvaluationError(
                f"{asked.name}: query {short(alone[0])} is its only relevant document; remove it"
            )
    else:
        itself = [set() for _ in queries]
        right = [set[int]().union(*(alike[texts[row]] for row in judged[key])) for key in queries]
    crosslingual = answered is not asked
    name = f"{asked.name}-{answered.name.rpartition('/')[2]}" if crosslingual else asked.name
    corpus, contexts = zip(*candidates, strict=True)
    return Task(name, crosslingual, tuple(queries.values()), corpus, contexts, right, itself)


def reference(data: Data) -> Iterator[Score]:
    """Yield the scores of BM25 on answer retrieval within one language, if bm25s is installed."""
    benchmark, tasks = data
    if benchmark == ANSWER and importlib.util.find_spec("bm25s") is not None:
        for task in (task for task in tasks if not task.crosslingual):
            yield from _scores(
                "BM25", ANSWER, task, answer_measures(task, bm25(task.corpus, task.queries))
            )


def score(name: str, model: TextEncoder, data: Data) -> Iterator[Score]:
    """Yield scores with the shared embedding (`encode`) of queries and candidates; each set is
    embedded once.

    In answer retrieval, a model with an answer tower (`encode_answers`) gets a second row, with its
    question tower and its answer tower, which also reads the contexts.
    """
    benchmark, tasks = data
    ways: dict[str, tuple[Callable[..., Vectors], Callable[..., Vectors]]] = {
        "shared": (lambda texts: embed(model, texts), lambda texts, _: embed(model, texts))
    }
    answers: Any = getattr(model, "encode_answers", None)
    if benchmark == ANSWER and answers is not None:
        ways["towers"] = (
            lambda texts: embed(model, texts, "encode_query"),
            lambda *of: answers(*map(list, of)),
        )
    for way, (ask, answer) in ways.items():
        ask, answer = cache(ask), cache(answer)
        for task in tasks:
            measures = _measures(
                benchmark, task, ask(task.queries), answer(task.corpus, task.contexts)
            )
            yield from _scores(
                f"{name}, {way}" if len(ways) > 1 else name, benchmark, task, measures
            )


def _measures(benchmark: str, task: Task, queries: Vectors, corpus: Vectors) -> dict[str, float]:
    if benchmark == ANSWER:
        # float32 products of equal vectors can differ, and rank them
        candidates = corpus.T.astype(np.float64)
        return answer_measures(
            task, lambda block: _cosines(queries[block].astype(np.float64), candidates)
        )
    ranked = search(queries, corpus, task.itself, CUT)
    return {f"MAP@{CUT}": fmean(map(average_precision, ranked, task.relevant))}


def _cosines(queries: Floats, candidates: Floats) -> Scores:
    """Return cosines, (b, m), of rows (b, D) and columns (D, m); zeros (texts without a known
    token) are last.
    """
    cosines: Scores = queries @ candidates
    cosines[:, ~candidates.any(axis=0)] = -2
    return cosines


def _scores(
    model: str, benchmark: str, task: Task, measures: Mapping[str, float]
) -> Iterator[Score]:
    for measure, value in measures.items():
        yield Score(model, benchmark, task.name, measure, value, len(set(task.queries)))


def search(
    queries: Vectors, corpus: Vectors, itself: Sequence[set[int]], cut: int
) -> list[list[int]]:
    """Return the `cut` nearest corpus rows of each query by cosine (exact search), without the rows
    in `itself`.

    Queries are float32 (n, D), the corpus (m, D), with rows of length 1. Rows of zeros (texts
    without a known token) are not found, and find nothing.
    """
    nearest: list[list[int]] = [[] for _ in queries]
    asked = np.flatnonzero(queries.any(axis=1))
    searched = np.flatnonzero(corpus.any(axis=1))
    if len(asked) and len(searched):
        k = min(cut + max(map(len, itself)), len(searched))
        indices = searched[nearest_neighbors(queries[asked], corpus[searched], k).indices]
        for query, documents in zip(asked.tolist(), indices.tolist(), strict=True):
            nearest[query] = documents
    return [
        [row for row in rows if row not in own][:cut]
        for rows, own in zip(nearest, itself, strict=True)
    ]


def average_precision(ranked: Sequence[int], relevant: set[int]) -> float:
    """Return the sum of the precisions at the ranks of relevant documents, divided by the number of
    relevant documents.

    Agrees with trec_eval, e.g. with `map_cut_100` for 100 ranked rows, even if more than 100
    documents are relevant.
    """
    hits = np.isin(ranked, list(relevant))
    precisions = np.cumsum(hits) / np.arange(1, len(ranked) + 1)
    return float(precisions[hits].sum() / len(relevant))


def ranking_measures(ranked: Sequence[int], relevant: Mapping[int, int]) -> dict[str, float]:
    """Return nDCG@10, recall@10, recall@100 and the reciprocal rank of the first relevant document
    in the top ten.

    Gains are the grades, as in trec_eval and BEIR: DCG@10 is the sum of grade / log2(rank + 1) over
    the first ten ranks, and nDCG@10 is its share of the DCG@10 of the best possible order.
    """
    gains = [relevant.get(row, 0) for row in ranked[:10]]
    best = sorted(relevant.values(), reverse=True)[:10]
    recall = {
        cut: sum(row in relevant for row in ranked[:cut]) / len(relevant) for cut in (10, 100)
    }
    return {
        "nDCG@10": _discounted(gains) / _discounted(best),
        "recall@10": recall[10],
        "recall@100": recall[100],
        "MRR@10": next((1 / rank for rank, gain in enumerate(gains, 1) if gain), 0.0),
    }


def _discounted(gains: Sequence[int]) -> float:
    return float(np.array(gains, np.float64) @ (1 / np.log2(np.arange(len(gains)) + 2)))


def right_ranks(scores: Scores, right: Sequence[Rows]) -> Floats:
    """Return the rank of the best correct candidate in each row of scores, (b, m); ties share their
    mean rank.
    """
    best = np.array([row[places].max() for row, places in zip(scores, right, strict=True)])[:, None]
    better, equal = (scores > best).sum(1), (scores == best).sum(1)
    ranks: Floats = better + (equal + 1) / 2
    return ranks


def answer_measures(task: Task, scores: Callable[[slice], Scores]) -> dict[str, float]:
    """Return P@1 of the sentence, P@1 of its paragraph if all sentences have contexts, and the mean
    reciprocal rank.

    A repeated question counts once, with its best rank. The score of a paragraph is that of its
    best sentence. `scores` returns the scores of some of the questions for all candidates, (b, m).
    """
    numbers = np.unique(np.array(task.contexts), return_inverse=True)[1]
    order = np.argsort(numbers, kind="stable")
    starts = np.unique(numbers[order], return_index=True)[1]
    right = [np.array(sorted(rows)) for rows in task.relevant]
    sentences, paragraphs = [], []
    for start in range(0, len(right), _BLOCK):
        block = slice(start, start + _BLOCK)
        rounded = scores(block).round(DECIMALS)
        sentences.append(right_ranks(rounded, right[block]))
        best = np.maximum.reduceat(rounded[:, order], starts, axis=1)
        paragraphs.append(right_ranks(best, [np.unique(numbers[rows]) for rows in right[block]]))
    ranks, paragraph_ranks = (
        _best_ranks(task.queries, np.concatenate(parts)) for parts in (sentences, paragraphs)
    )
    known = all(context.strip() for context in task.contexts)
    paragraph = {"P@1 paragraph": float((paragraph_ranks == 1).mean())} if known else {}
    return {
        "P@1 sentence": float((ranks == 1).mean()),
        **paragraph,
        "MRR": float((1 / ranks).mean()),
    }


def _best_ranks(questions: Sequence[str], ranks: Floats) -> Floats:
    """Return the best rank of each distinct question."""
    best = dict[str, float]()
    for question, rank in zip(questions, ranks.tolist(), strict=True):
        best[question] = min(rank, best.get(question, rank))
    return np.array(list(best.values()))


def words(text: str) -> list[str]:
    """Return the words of a text in lower case, see `split_words`."""
    return split_words(text.lower())


def bm25(documents: Sequence[str], questions: Sequence[str]) -> Callable[[slice], Scores]:
    """Return scores by words alone, from bm25s: BM25 (Robertson et al. 1994), k1 = 1.5, b = 0.75,
    Lucene's variant.
    """
    module = require("bm25s", "retrieval", "BM25")
    logging.getLogger("bm25s").setLevel(logging.WARNING)  # it logs every index
    index = module.BM25(k1=1.5, b=0.75, method="lucene")
    # Each text gets an extra word that no text contains, so that texts without words can be
    # indexed.
    index.index([[*words(text), "\0"] for text in documents], show_progress=False)
    queries = [[word for word in words(text) if word in index.vocab_dict] for text in questions]

    def scores(block: slice) -> Scores:
        return np.stack(
            [
                index.get_scores(query) if query else np.zeros(len(documents))
                for query in queries[block]
            ]
        )

    return scores


def tables(scores: list[Score], data: Data) -> Iterator[str]:
    """Yield one table (semantic retrieval) or a table for each set (answer retrieval), and
    published figures.
    """
    benchmark, tasks = data
    if benchmark == SEMANTIC:
        note = " ".join(
            f"{t.name} has {len(t.queries):,} queries and {len(t.corpus):,} documents."
            for t in tasks
        )
        title = f"Semantic retrieval: mean average precision (MAP@{CUT}) x 100"
        yield from report.section(title, scores, note)
        names = {task.name.partition("/")[0].partition("_")[0] for task in tasks}
        wanted, where = (
            [name for name in ("Quora", "AskUbuntu") if name.lower() in names],
            "with other candidates",
        )
    else:
        yield (
            "P@1 is the share of questions whose first result is a correct sentence or is in a"
            " correct paragraph.\n"
        )
        for task in tasks:
            own = [score for score in scores if score.set == task.name]
            title = f"{task.name}: {own[0].items:,} questions, {len(task.corpus):,} sentences"
            yield from report.section(
                f"Answer retrieval x 100, {title}", own, column=report.MEASURE
            )
        sizes = {(len(set(task.queries)), len(task.corpus)) for task in tasks}
        wanted = [name for name, size in _SIZES.items() if size in sizes]
        where = "as P@1 of the sentence on ReQA's version of SQuAD 1.1, with contexts"
        if importlib.util.find_spec("bm25s") is None:
            yield (
                "The row BM25 is missing because bm25s is not installed: pip install"
                ' "st_paragram[retrieval]".\n'
            )
    if wanted:
        yield f"Published figures, measured {where}:\n"
        yield report.pivot([], known=benchmark, headings=wanted)
