"""Questions, the sentences that may answer them, and how well a ranking of these is (ReQA, Ahmad et al. 2019).

The rules are those of the authors' evaluation (google/retrieval-qa-eval): equally good candidates share their mean
rank; right are all candidates that read as a right one does, and the best placed of them counts; of a question asked
several times the best rank counts, once. A paragraph is as good as its best sentence.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from st_paragram.errors import EvaluationError, short
from st_paragram.tools.evaluation.correlation import DECIMALS
from st_paragram.tools.evaluation.retrieval_files import RetrievalSet, Rows

#: Scores, higher for better candidates, float (n, m); of some of the questions, given as a slice of them.
Scores = NDArray[np.floating]  # type: ignore[type-arg]
_BLOCK = 512  # questions ranked at a time


@dataclass(frozen=True)
class AnswerScores:
    """How answers were found; shares.

    Attributes:
        questions: different ones.
        candidates: sentences among which an answer was looked for.
        sentence: P@1, how often the first sentence is right.
        paragraph: how often the paragraph of the best sentence is right; None where sentences have no contexts.
        reciprocal_rank: mean of 1 / rank of the right sentence.
    """

    questions: int
    candidates: int
    sentence: float
    paragraph: float | None
    reciprocal_rank: float


@dataclass(frozen=True)
class AnswerTask:
    """Questions of one set, to be answered from the sentences of the same or another one.

    Attributes:
        name: "xquad_r/es", or "xquad_r/es-en" where the answers are of another set.
        asked: the set of the questions.
        answered: the set of the answers.
        questions: n texts.
        answers: m texts, none twice in the same context.
        contexts: of the answers, m texts, empty where there is none.
        right: of each question the answers that are right, int64 (at least 1,).
    """

    name: str
    asked: str
    answered: str
    questions: list[str]
    answers: list[str]
    contexts: list[str]
    right: list[Rows]

    @property
    def paragraphs(self) -> Rows | None:
        """Numbers 0, 1, ... of the answers' contexts, int64 (m,); None if some answer has none."""
        if not all(context.strip() for context in self.contexts):
            return None
        return np.unique(self.contexts, return_inverse=True)[1].astype(np.int64)


def answer_task(asked: RetrievalSet, answered: RetrievalSet | None = None) -> AnswerTask:
    """A task of one set, or of the questions of one and the answers of another one, whose questions have the same ids.

    Raises:
        EvaluationError: the other set lacks a question.
    """
    own = answered or asked
    if (absent := next((key for key in asked.queries if key not in own.queries), None)) is not None:
        seen = f"question {short(absent)} of {asked.name} is none of {own.name}"
        raise EvaluationError(f"{seen}; sets of several languages must be parallel")
    distinct = dict.fromkeys(zip(own.corpus.values(), own.contexts, strict=True))
    alike = defaultdict[str, list[int]](list)
    for row, (text, _) in enumerate(distinct):
        alike[text].append(row)
    texts, judged = list(own.corpus.values()), dict(zip(own.queries, own.relevant, strict=True))
    right = [sorted({place for row in judged[key] for place in alike[texts[row]]}) for key in asked.queries]
    name = asked.name if own is asked else f"{asked.name}-{own.name.rpartition('/')[2]}"
    answers, contexts = (list(column) for column in zip(*distinct, strict=True))
    rows = [np.array(places, np.int64) for places in right]
    return AnswerTask(name, asked.name, own.name, list(asked.queries.values()), answers, contexts, rows)


def answer_scores(
    task: AnswerTask, scores: Callable[[slice], Scores], of_paragraphs: Callable[[slice], Scores] | None = None
) -> AnswerScores:
    """Rank the answers to all questions.

    Args:
        task: n questions, m answers.
        scores: of some questions and all answers, (b, m).
        of_paragraphs: of some questions and all paragraphs, (b, p), in the order of their numbers; None: a paragraph
            has the score of its best sentence.

    Raises:
        EvaluationError: a score is not finite.
    """
    sentences, paragraphs, numbers = [], [], task.paragraphs
    for block in _blocks(len(task.questions)):
        found, right = _rounded(task, scores(block)), task.right[block]
        sentences.append(right_ranks(found, right))
        if numbers is not None:
            best = _rounded(task, of_paragraphs(block)) if of_paragraphs else _best(found, numbers)
            paragraphs.append(right_ranks(best, [np.unique(numbers[rows]) for rows in right]))
    ranks = _once(task, np.concatenate(sentences))
    paragraph = float((_once(task, np.concatenate(paragraphs)) == 1).mean()) if paragraphs else None
    shares = float((ranks == 1).mean()), paragraph, float((1 / ranks).mean())
    return AnswerScores(len(ranks), len(task.answers), *shares)


def right_ranks(scores: Scores, right: list[Rows]) -> NDArray[np.float64]:
    """Rank of the best of the right candidates, from 1 on; those with equal scores share their mean rank.

    Args:
        scores: (b, m).
        right: of each row the candidates that are right.
    """
    best = np.array([row[places].max() for row, places in zip(scores, right, strict=True)])[:, None]
    better, equal = (scores > best).sum(1), (scores == best).sum(1)
    ranks: NDArray[np.float64] = better + (equal + 1) / 2
    return ranks


def _blocks(count: int) -> Iterator[slice]:
    return (slice(start, start + _BLOCK) for start in range(0, count, _BLOCK))


def _rounded(task: AnswerTask, scores: Scores) -> Scores:
    """Without the digits in which products of equal vectors differ."""
    if not np.isfinite(scores).all():
        raise EvaluationError(f"{task.name}: a score is not finite; the model is broken")
    return scores.round(DECIMALS)


def _best(scores: Scores, paragraphs: Rows) -> Scores:
    """The best score of each paragraph, (b, p)."""
    order = np.argsort(paragraphs, kind="stable")
    starts = np.unique(paragraphs[order], return_index=True)[1]
    best: Scores = np.maximum.reduceat(scores[:, order], starts, axis=1)
    return best


def _once(task: AnswerTask, ranks: NDArray[np.float64]) -> NDArray[np.float64]:
    """The best rank of each different question."""
    found = dict[str, float]()
    for question, rank in zip(task.questions, ranks.tolist(), strict=True):
        found[question] = min(rank, found.get(question, rank))
    return np.array(list(found.values()))
