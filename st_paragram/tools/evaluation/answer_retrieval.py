"""Answer retrieval (ReQA, Ahmad et al. 2019; XQuAD-R, Roy et al. 2020): questions look for sentences that answer them.

A model is scored with its shared embedding on both sides ("shared") and, if it has a tower for answers
(`encode_answers`), with the towers of questions and of answers in their contexts, too ("towers"). `answer_task` has the
rules by which ranks are counted.
"""

from __future__ import annotations

import importlib.util
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from st_paragram.core.encoding.models import TextEncoder, batch_size
from st_paragram.core.tables import MISSING, hundredths, markdown_table
from st_paragram.errors import EvaluationError
from st_paragram.tools.evaluation.answer_task import AnswerScores, AnswerTask, answer_scores, answer_task
from st_paragram.tools.evaluation.base import Request
from st_paragram.tools.evaluation.bm25 import bm25_scores
from st_paragram.tools.evaluation.correlation import embed
from st_paragram.tools.evaluation.models import score_each
from st_paragram.tools.evaluation.published import Source, rows
from st_paragram.tools.evaluation.retrieval_files import RetrievalSet, answer_folders, language_of, read_retrieval_set

SHARED, TOWERS = "shared", "towers"
PIVOT = "en"  # the language of answers that questions of all languages are put to

# P@1 of the sentence, SQuAD 1.1 as ReQA cuts it: dev 11,425 questions, 10,248 sentences; train 87,599 and 91,703.
PUBLISHED = rows(Source.USE_QA, "dev train", "USE_QA Trans+Cxt: 53.2 43.3")
_SIZES = {"dev": (11_425, 10_248), "train": (87_599, 91_703)}
_BM25 = 'There is no row BM25, because bm25s is not installed: pip install "st_paragram[retrieval]".'

Vectors = NDArray[np.float32]
_AnswerRows = Mapping[str, Mapping[str, AnswerScores]]

#: Heading -> what it is of the scores.
_MEASURES: dict[str, Callable[[AnswerScores], float | None]] = {
    "P@1 of the sentence": lambda scores: scores.sentence,
    "P@1 of the paragraph": lambda scores: scores.paragraph,
    "MRR": lambda scores: scores.reciprocal_rank,
}


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


RUN = AnswerRetrievalRun


def has_data(data: Path) -> bool:
    """Whether a folder of evaluation data has sets whose queries are questions."""
    return bool(answer_folders(data))


def read_answer_tasks(data: str | Path, languages: Collection[str] = ()) -> list[AnswerTask]:
    """The tasks of a folder of evaluation data.

    Sets that are side by side in a folder, `xquad_r/es` and `xquad_r/en`, are of these languages and parallel:
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


def run(request: Request) -> AnswerRetrievalRun:
    """Score models on the sets of a folder, and BM25 where bm25s is installed.

    Raises:
        EvaluationError: as `read_answer_tasks`, or a model's embeddings are not finite.
        TextError: as `read_answer_tasks`.
        ModelDirectoryError: a model is not there or cannot be read.
    """
    tasks = read_answer_tasks(request.folder, request.languages)
    results = score_each(request.models, lambda model: score_answers(model, tasks), request.untrained)
    own = [task for task in tasks if task.asked == task.answered]
    there = importlib.util.find_spec("bm25s") is not None
    return AnswerRetrievalRun(results, {task.name: bm25_scores(task) for task in own} if there else None)


def score_answers(model: TextEncoder, tasks: Sequence[AnswerTask]) -> AnswerResult:
    """Score one model in the ways it has; every set is embedded once a way."""
    started = time.perf_counter()
    ways = {SHARED: _scores(tasks, lambda texts: embed(model, texts), lambda texts, _: embed(model, texts))}
    answers: Any = getattr(model, "encode_answers", None)
    if answers is not None:
        ways[TOWERS] = _scores(tasks, lambda texts: _questions(model, texts), answers)
    return AnswerResult(ways, time.perf_counter() - started)


def report(found: AnswerRetrievalRun) -> Iterator[str]:
    """Tables of single sets, and of languages; a row for each way of embedding; part by part."""
    scored = _answer_rows(found)
    names = list(next(iter(found.models.values())).ways[SHARED])
    yield "## Answer retrieval: P@1 and mean reciprocal rank x 100\n"
    yield "P@1 is the share of questions for which the sentence found first is right, or is in the right paragraph.\n"
    parallel = [name for name in names if language_of(name.removesuffix(f"-{PIVOT}"))]
    for name in (name for name in names if name not in parallel):
        yield f"### {_sized(name, scored)}\n\n{_alone(name, scored)}\n"
    for folder in dict.fromkeys(name.rpartition("/")[0] for name in parallel):
        yield from _languages(folder, [name for name in parallel if name.rpartition("/")[0] == folder], scored)
    sizes = {(of.questions, of.candidates) for of in next(iter(scored.values())).values()}
    if columns := [column for column, size in _SIZES.items() if size in sizes]:
        published = [[row.label, *(hundredths(row.scores[column]) for column in columns)] for row in PUBLISHED]
        yield "These figures are published. They are P@1 of the sentence in SQuAD 1.1 as ReQA cuts it, with contexts.\n"
        yield markdown_table(["model", *columns], published)
    seconds = [f"{of.seconds:.1f} s for {name}" for name, of in found.models.items() if of.seconds is not None]
    if seconds:
        yield f"\nThis took {', '.join(seconds)}."
    if found.bm25 is None:
        yield f"\n{_BM25}"


def _answer_rows(found: AnswerRetrievalRun) -> _AnswerRows:
    """Label of a row -> task -> scores; the way is named where a model has several."""
    made: dict[str, Mapping[str, AnswerScores]] = {}
    for name, result in found.models.items():
        made |= {f"{name}, {way}" if len(result.ways) > 1 else name: of for way, of in result.ways.items()}
    return made | ({} if found.bm25 is None else {"BM25": found.bm25})


def _alone(name: str, scored: _AnswerRows) -> str:
    cells = [
        [label, *map(hundredths, (of[name].sentence, of[name].paragraph, of[name].reciprocal_rank))]
        for label, of in scored.items()
    ]
    return markdown_table(["model", "P@1 sentence", "P@1 paragraph", "MRR"], cells)


def _languages(folder: str, names: Sequence[str], scored: _AnswerRows) -> Iterator[str]:
    """A table for each measure: questions of each language, answers of the same one and in English."""
    own = {name.rpartition("/")[2]: name for name in names}
    to_pivot = {language.removesuffix(f"-{PIVOT}"): name for language, name in own.items() if "-" in language}
    same = {language: name for language, name in own.items() if "-" not in language}
    for title, measure in _MEASURES.items():
        cells = []
        for label, of in scored.items():
            for answers, columns in (("same language", same), ("English", to_pivot)):
                figures = {key: measure(of[name]) for key, name in columns.items() if name in of}
                if any(figure is not None for figure in figures.values()):
                    mean = _mean(list(figures.values())) or [MISSING]
                    cells.append([label, answers, *(hundredths(figures.get(language)) for language in same), *mean])
        if cells:
            head = ["model", "answers in", *same, "mean"]
            yield f"### {folder}, {title}, questions of each language\n\n{markdown_table(head, cells, left=2)}\n"


def _sized(name: str, scored: _AnswerRows) -> str:
    of = next(iter(scored.values()))[name]
    return f"{name}: {of.questions:,} questions, {of.candidates:,} sentences"


def _mean(figures: Sequence[float | None]) -> list[str]:
    known = [figure for figure in figures if figure is not None]
    if len(figures) < 2:
        return []
    return [hundredths(fmean(known)) if len(known) == len(figures) else MISSING]


def _tasks(own: RetrievalSet, sets: dict[str, RetrievalSet]) -> list[AnswerTask]:
    folder = own.name.rpartition("/")[0]
    pivot = sets.get(f"{folder}/{PIVOT}") if language_of(own.name) else None
    return [answer_task(own), *([answer_task(own, pivot)] if pivot not in (None, own) else [])]


def _questions(model: TextEncoder, texts: list[str]) -> Vectors:
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
