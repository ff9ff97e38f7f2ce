"""Answer retrieval (ReQA, Ahmad et al. 2019; XQuAD-R, Roy et al. 2020): questions look for sentences that answer them.

A model is scored with its shared embedding on both sides ("shared") and, if it has a tower for answers
(`encode_answers`), with the towers of questions and of answers in their contexts, too ("towers"). `answer_task` has the
rules by which ranks are counted.
"""

from __future__ import annotations

import importlib.util
import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sentence_transformers import SentenceTransformer

from st_paragram.errors import EvaluationError
from st_paragram.learning.models.batch_size import batch_size
from st_paragram.tools.evaluation.answer_task import AnswerScores, AnswerTask, answer_scores, answer_task
from st_paragram.tools.evaluation.benchmark_runs import score_each
from st_paragram.tools.evaluation.bm25 import bm25_scores
from st_paragram.tools.evaluation.correlation import embed
from st_paragram.tools.evaluation.retrieval_files import RetrievalSet, answer_folders, language_of, read_retrieval_set

SHARED, TOWERS = "shared", "towers"
PIVOT = "en"  # the language of answers that questions of all languages are put to

Vectors = NDArray[np.float32]


@dataclass(frozen=True)
class AnswerResult:
    """A model: way of embedding ("shared", "towers") -> name of a task -> scores; seconds of all."""

    ways: dict[str, dict[str, AnswerScores]]
    seconds: float | None = None


@dataclass(frozen=True)
class AnswerRetrievalRun:
    """Models on answer retrieval.

    Args:
        models: name -> result.
        bm25: of each task what words find, where questions and answers are of one language; None: bm25s is missing.
    """

    benchmark: ClassVar[str] = "answer-retrieval"
    models: dict[str, AnswerResult]
    bm25: dict[str, AnswerScores] | None = None


def read_answer_tasks(data: str | Path, languages: Collection[str] = ()) -> list[AnswerTask]:
    """The tasks of a folder of evaluation data.

    Sets that stand side by side in a folder, `xquad_r/es` and `xquad_r/en`, are of these languages and parallel:
    questions of each are also put to the English answers.

    Args:
        data: the folder, see `retrieval_folders`.
        languages: of the questions of such sets; all that there are if empty.

    Raises:
        EvaluationError: there are no sets, none of a language asked for, or sets that are not parallel.
        TextError: as `read_retrieval_set`.
    """
    folders = answer_folders(data)
    wanted = [name for name in folders if not languages or language_of(name) in ("", *languages)]
    if not wanted:
        seen = f"no set of {', '.join(languages)}, only {', '.join(folders)}" if folders else "no sets of questions"
        raise EvaluationError(f"{data}: {seen}; a set is a folder of queries.tsv, corpus.tsv and qrels.tsv")
    pivots = [name for name in folders if language_of(name) == PIVOT]
    sets = {name: read_retrieval_set(folders[name], name) for name in dict.fromkeys([*wanted, *pivots])}
    return [task for name in wanted for task in _tasks(sets[name], sets)]


def run_answer_retrieval(
    names: Sequence[str], tasks: Sequence[AnswerTask], untrained: bool = False
) -> AnswerRetrievalRun:
    """Score models, and BM25 where bm25s is installed.

    Args:
        names: of the models.
        tasks: to score them on.
        untrained: add random embeddings.

    Raises:
        EvaluationError: a model's embeddings are not finite.
        ModelDirectoryError: a model is not there or cannot be read.
    """
    results = score_each(names, lambda model: score_answers(model, tasks), untrained)
    own = [task for task in tasks if task.asked == task.answered]
    there = importlib.util.find_spec("bm25s") is not None
    return AnswerRetrievalRun(results, {task.name: bm25_scores(task) for task in own} if there else None)


def score_answers(model: SentenceTransformer, tasks: Sequence[AnswerTask]) -> AnswerResult:
    """Score one model in the ways it has; every set is embedded once a way."""
    started = time.perf_counter()
    ways = {SHARED: _scores(tasks, lambda texts: embed(model, texts), lambda texts, _: embed(model, texts))}
    answers: Any = getattr(model, "encode_answers", None)
    if answers is not None:
        ways[TOWERS] = _scores(tasks, lambda texts: _questions(model, texts), answers)
    return AnswerResult(ways, time.perf_counter() - started)


def _tasks(own: RetrievalSet, sets: dict[str, RetrievalSet]) -> list[AnswerTask]:
    folder = own.name.rpartition("/")[0]
    pivot = sets.get(f"{folder}/{PIVOT}") if language_of(own.name) else None
    return [answer_task(own), *([answer_task(own, pivot)] if pivot not in (None, own) else [])]


def _questions(model: SentenceTransformer, texts: list[str]) -> Vectors:
    at_once = batch_size(model)
    found: Any = model.encode_query(texts, batch_size=at_once, normalize_embeddings=True, show_progress_bar=False)
    return np.asarray(found, np.float32)


def _scores(
    tasks: Sequence[AnswerTask],
    ask: Callable[[list[str]], Vectors],
    answer: Callable[[list[str], list[str]], Vectors],
) -> dict[str, AnswerScores]:
    asked: dict[str, Vectors] = {}
    answered: dict[str, Vectors] = {}
    found = {}
    for task in tasks:
        if task.asked not in asked:
            asked[task.asked] = ask(task.questions)
        if task.answered not in answered:
            answered[task.answered] = answer(task.answers, task.contexts)
        questions, answers = asked[task.asked], answered[task.answered]
        found[task.name] = answer_scores(task, lambda block, q=questions, a=answers: q[block] @ a.T)  # type: ignore[misc]
    return found
