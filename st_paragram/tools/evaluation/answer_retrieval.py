"""Answer retrieval: search for the sentence that answers a question.

ReQA (Ahmad et al., 2019) and XQuAD-R (Roy et al., EMNLP 2020), with P@1 and MRR by the ranks of
google/retrieval-qa-eval, compared with BM25. `retrieval_tasks` describes the sets.
"""

from __future__ import annotations

import importlib.util
import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from st_paragram.core.arrays import Floats, Integers
from st_paragram.core.encoding.models import TextEncoder
from st_paragram.core.extras import require
from st_paragram.core.text.words import split_words
from st_paragram.tools.evaluation import report
from st_paragram.tools.evaluation.request import Request
from st_paragram.tools.evaluation.retrieval_tasks import (
    ANSWER,
    SetPair,
    find,
    left_out,
    read_set_pairs,
    rows_by_text,
)
from st_paragram.tools.evaluation.scores import DECIMALS, Score, embed
from st_paragram.tools.neighbors.results import Vectors

__all__ = ["find", "read", "reference", "score", "tables"]

Scores = NDArray[np.floating]  # type: ignore[type-arg]
#: Returns the scores of a slice of the questions for all candidates, (b, m).
Scorer = Callable[[slice], Scores]

#: Numbers of questions and sentences of SQuAD 1.1, split by ReQA -> P@1 x 100 of the sentence.
_PUBLISHED = {(11_425, 10_248): "53.2", (87_599, 91_703): "43.3"}
_BLOCK = 512  # questions ranked at a time
_UNKNOWN = -2  # score of a candidate without a known token, below all cosines


@dataclass(frozen=True)
class AnswerTask:
    """Questions of one set, and sentences from the same set or another set."""

    name: str  # "xquad_r/es", or "xquad_r/es-en" with sentences from another set
    is_crosslingual: bool  # whether the sentences are from another set
    questions: tuple[str, ...]  # n texts
    sentences: tuple[str, ...]  # m texts
    contexts: tuple[str, ...]  # texts around the sentences; empty if there are none
    relevant: list[set[int]]  # for each question, the correct sentences
    untranslated: int = 0  # questions of the other set that are missing, and not scored


def read(request: Request) -> list[AnswerTask]:
    """Read the tasks of a folder in the requested languages."""
    return [make_task(sets) for sets in read_set_pairs(request)]


def make_task(sets: SetPair) -> AnswerTask:
    """Return the task of the questions of a set.

    Repeated sentences in one context are merged, and all copies of a correct sentence are correct.
    """
    texts = list(sets.answered.corpus.values())
    sentences = []
    contexts = []
    for sentence, context in dict.fromkeys(zip(texts, sets.answered.contexts, strict=True)):
        sentences.append(sentence)
        contexts.append(context)
    same_text = rows_by_text(sentences)
    judgments = sets.relevant
    relevant = []
    for key in sets.queries:
        right: set[int] = set()
        for row in judgments[key]:
            right |= same_text[texts[row]]
        relevant.append(right)
    return AnswerTask(
        name=sets.name,
        is_crosslingual=sets.is_crosslingual,
        questions=tuple(sets.queries.values()),
        sentences=tuple(sentences),
        contexts=tuple(contexts),
        relevant=relevant,
        untranslated=sets.untranslated,
    )


def reference(tasks: list[AnswerTask]) -> Iterator[Score]:
    """Yield the scores of BM25 within one language, if bm25s is installed."""
    if not _has_bm25():
        return
    for task in tasks:
        if not task.is_crosslingual:
            scorer = bm25(task.sentences, task.questions)
            yield from _scores("BM25", task, answer_measures(task, scorer))


def _has_bm25() -> bool:
    return importlib.util.find_spec("bm25s") is not None


def score(name: str, model: TextEncoder, tasks: list[AnswerTask]) -> Iterator[Score]:
    """Yield scores with the shared embedding (`encode`) of questions and sentences.

    A model with an answer tower (`encode_answers`) gets a second row, with its question tower and
    its answer tower, which also reads the contexts. Each set is embedded once.
    """
    answer_tower: Any = getattr(model, "encode_answers", None)

    @cache
    def vectors(texts: tuple[str, ...]) -> Vectors:
        return embed(model, texts)

    @cache
    def questions(texts: tuple[str, ...]) -> Vectors:
        return embed(model, texts, "encode_query")

    @cache
    def answers(texts: tuple[str, ...], contexts: tuple[str, ...]) -> Vectors:
        return answer_tower(list(texts), list(contexts))

    for task in tasks:
        scorer = _cosine_scorer(vectors(task.questions), vectors(task.sentences))
        label = name if answer_tower is None else f"{name}, shared"
        yield from _scores(label, task, answer_measures(task, scorer))
    if answer_tower is None:
        return
    for task in tasks:
        scorer = _cosine_scorer(questions(task.questions), answers(task.sentences, task.contexts))
        yield from _scores(f"{name}, towers", task, answer_measures(task, scorer))


def _cosine_scorer(questions: Vectors, sentences: Vectors) -> Scorer:
    """Return cosines of vectors (n, D) and (m, D); zeros (no known token) are last."""
    # float32 products of equal vectors can differ, and rank them
    columns = sentences.T.astype(np.float64)
    is_unknown = ~columns.any(axis=0)

    def scorer(block: slice) -> Scores:
        cosines: Floats = questions[block].astype(np.float64) @ columns
        cosines[:, is_unknown] = _UNKNOWN
        return cosines

    return scorer


def _scores(model: str, task: AnswerTask, measures: Mapping[str, float]) -> Iterator[Score]:
    items = len(set(task.questions))
    for measure, value in measures.items():
        yield Score(
            model,
            ANSWER,
            task.name,
            measure=measure,
            value=value,
            items=items,
            untranslated=task.untranslated,
        )


def answer_measures(task: AnswerTask, scorer: Scorer) -> dict[str, float]:
    """Return P@1 of the sentence, P@1 of its paragraph, and the mean reciprocal rank.

    A repeated question counts once, with its best rank. The score of a paragraph is that of its
    best sentence; P@1 of paragraphs needs a context for all sentences.
    """
    paragraphs = np.unique(np.array(task.contexts), return_inverse=True)[1]
    order = np.argsort(paragraphs, kind="stable")
    starts = np.unique(paragraphs[order], return_index=True)[1]
    right = [np.array(sorted(rows)) for rows in task.relevant]
    right_paragraphs = [np.unique(paragraphs[rows]) for rows in right]
    sentence_ranks = []
    paragraph_ranks = []
    for start in range(0, len(right), _BLOCK):
        block = slice(start, start + _BLOCK)
        scores = scorer(block).round(DECIMALS)
        sentence_ranks.append(right_ranks(scores, right[block]))
        paragraph_scores = np.maximum.reduceat(scores[:, order], starts, axis=1)
        paragraph_ranks.append(right_ranks(paragraph_scores, right_paragraphs[block]))
    ranks = _best_ranks(task.questions, np.concatenate(sentence_ranks))
    measures = {"P@1 sentence": float((ranks == 1).mean())}
    if all(context.strip() for context in task.contexts):
        best_paragraph_ranks = _best_ranks(task.questions, np.concatenate(paragraph_ranks))
        measures["P@1 paragraph"] = float((best_paragraph_ranks == 1).mean())
    measures["MRR"] = float((1 / ranks).mean())
    return measures


def right_ranks(scores: Scores, right: Sequence[Integers]) -> Floats:
    """Return the rank of the best correct candidate in each row of scores, (b, m).

    Ties share their mean rank.
    """
    best = np.empty((len(right), 1))
    for row, candidates in enumerate(right):
        best[row] = scores[row, candidates].max()
    better = (scores > best).sum(axis=1)
    equal = (scores == best).sum(axis=1)
    return np.asarray(better + (equal + 1) / 2)


def _best_ranks(questions: Sequence[str], ranks: Floats) -> Floats:
    """Return the best rank of each distinct question."""
    best: dict[str, float] = {}
    for question, rank in zip(questions, ranks.tolist(), strict=True):
        best[question] = min(rank, best.get(question, rank))
    return np.array(list(best.values()))


def bm25(documents: Sequence[str], questions: Sequence[str]) -> Scorer:
    """Return scores by words alone: BM25 (Robertson et al. 1994) from bm25s, Lucene's variant.

    k1 is 1.5, b is 0.75.
    """
    module = require("bm25s", "retrieval", "BM25")
    logging.getLogger("bm25s").setLevel(logging.WARNING)  # it logs every index
    index = module.BM25(k1=1.5, b=0.75, method="lucene")
    # Each text gets an extra word that no text contains, so that texts without words can be
    # indexed.
    words = [[*split_words(text.lower()), "\0"] for text in documents]
    index.index(words, show_progress=False)

    def scores_of(question: str) -> Scores:
        known = [word for word in split_words(question.lower()) if word in index.vocab_dict]
        return index.get_scores(known) if known else np.zeros(len(documents))

    return lambda block: np.stack([scores_of(question) for question in questions[block]])


def tables(scores: list[Score], tasks: list[AnswerTask]) -> Iterator[str]:
    """Yield a table for each set, with published figures of sets of the same size."""
    yield (
        "P@1 is the share of questions whose first result is a correct sentence or is in a correct"
        " paragraph.\n"
    )
    by_set = report.grouped(scores, report.SET)
    for task in tasks:
        size = (len(set(task.questions)), len(task.sentences))
        note = ""
        if size in _PUBLISHED:
            note = (
                f"USE_QA Trans+Cxt (published, TF-Hub) has a P@1 of {_PUBLISHED[size]} for the"
                " sentence, with contexts."
            )
        questions = f"{size[0]:,} questions{left_out(task.untranslated)}"
        yield from report.section(
            f"Answer retrieval x 100, {task.name}: {questions}, {size[1]:,} sentences",
            by_set.get(task.name, []),
            column=report.MEASURE,
            note=note,
        )
    if not _has_bm25():
        yield (
            "The row BM25 is missing because bm25s is not installed: pip install"
            ' "st_paragram[retrieval]".\n'
        )
