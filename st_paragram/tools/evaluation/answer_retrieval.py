"""Answer retrieval: questions look for the sentences that answer them; P@1 and mean reciprocal rank, see `retrieval`.

A model is scored with its shared embedding on both sides ("shared") and, if it has a tower for answers
(`encode_answers`), with the towers of questions and of answers in their contexts, too ("towers").
"""

from __future__ import annotations

import importlib.util
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from st_paragram.core.encoding.models import TextEncoder
from st_paragram.errors import EvaluationError, short
from st_paragram.tools.evaluation import report
from st_paragram.tools.evaluation.benchmarks import Found, Request
from st_paragram.tools.evaluation.files import RetrievalSet
from st_paragram.tools.evaluation.models import score_each
from st_paragram.tools.evaluation.retrieval import Rows, answer_measures, bm25, language_of, read_set, retrieval_sets
from st_paragram.tools.evaluation.scores import Score, embed
from st_paragram.tools.neighbors.results import Vectors

SHARED, TOWERS, BM25 = "shared", "towers", "BM25"
PIVOT = "en"  # the language of answers that questions of all languages are put to
_SIZES = {"dev": (11_425, 10_248), "train": (87_599, 91_703)}  # questions and sentences of SQuAD 1.1 as ReQA cuts it
_NO_BM25 = 'There is no row BM25, because bm25s is not installed: pip install "st_paragram[retrieval]".'


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
        right: of each question the answers that are right: all that read as a right one does.
    """

    name: str
    asked: str
    answered: str
    questions: list[str]
    answers: list[str]
    contexts: list[str]
    right: list[Rows]


def has_data(data: Path) -> bool:
    """Whether a folder of evaluation data has sets whose queries are questions."""
    return bool(retrieval_sets(data, semantic=False))


def read_answer_tasks(data: str | Path, languages: Sequence[str] = ()) -> list[AnswerTask]:
    """The tasks of a folder of evaluation data.

    Sets that are side by side in a folder, `xquad_r/es` and `xquad_r/en`, are of these languages and parallel:
    questions of each are also put to the English answers. `languages` chooses among such sets.
    """
    folders = retrieval_sets(data, semantic=False)
    wanted = [name for name in folders if not languages or language_of(name) in ("", *languages)]
    if not wanted:
        seen = f"no set of {', '.join(languages)}, only {', '.join(folders)}" if folders else "no sets of questions"
        raise EvaluationError(f"{data}: {seen}; a set is a folder of queries.tsv, corpus.tsv and qrels.tsv")
    pivots = [name for name in folders if language_of(name) == PIVOT]
    sets = {name: read_set(folders[name], name) for name in dict.fromkeys([*wanted, *pivots])}
    tasks = []
    for name in wanted:
        tasks.append(answer_task(sets[name], sets[name]))
        pivot = sets.get(f"{name.rpartition('/')[0]}/{PIVOT}") if language_of(name) else None
        if pivot is not None and pivot is not sets[name]:
            tasks.append(answer_task(sets[name], pivot))
    return tasks


def answer_task(asked: RetrievalSet, answered: RetrievalSet) -> AnswerTask:
    """A task of the questions of one set and the answers of it or another one, whose questions have the same ids."""
    if (absent := next((key for key in asked.queries if key not in answered.queries), None)) is not None:
        seen = f"question {short(absent)} of {asked.name} is none of {answered.name}"
        raise EvaluationError(f"{seen}; sets of several languages must be parallel")
    texts, judged = list(answered.corpus.values()), dict(zip(answered.queries, answered.relevant, strict=True))
    distinct = dict.fromkeys(zip(texts, answered.contexts, strict=True))
    alike = defaultdict[str, list[int]](list)
    for row, (text, _) in enumerate(distinct):
        alike[text].append(row)
    right = [sorted({place for row in judged[key] for place in alike[texts[row]]}) for key in asked.queries]
    name = asked.name if answered is asked else f"{asked.name}-{answered.name.rpartition('/')[2]}"
    answers, contexts = (list(column) for column in zip(*distinct, strict=True))
    rows = [np.array(places, np.int64) for places in right]
    return AnswerTask(name, asked.name, answered.name, list(asked.queries.values()), answers, contexts, rows)


def run(request: Request) -> Found:
    """Score models on the sets of a folder, and BM25 on those of one language where bm25s is installed."""
    tasks = read_answer_tasks(request.folder, request.languages)
    found = score_each(request.models, lambda model: score_answers(model, tasks), request.untrained)
    rows = {f"{m}, {way}" if len(ways) > 1 else m: of for m, ways in found.items() for way, of in ways.items()}
    if importlib.util.find_spec("bm25s") is not None:
        own = [task for task in tasks if task.asked == task.answered]
        rows[BM25] = {t.name: _measures(t, bm25(t.answers, t.questions)) for t in own}
    questions = {task.name: len(set(task.questions)) for task in tasks}
    scores = [
        Score(model, "answer-retrieval", name, measure, value, items=questions[name])
        for model, of in rows.items()
        for name, measures in of.items()
        for measure, value in measures.items()
    ]
    return scores, tables(scores, tasks, BM25 in rows)


def score_answers(model: TextEncoder, tasks: Sequence[AnswerTask]) -> dict[str, dict[str, dict[str, float]]]:
    """Way of embedding -> task -> measures, in the ways that the model has; every set is embedded once for each."""

    def shared(texts: list[str], contexts: list[str] | None = None) -> Vectors:
        return embed(model, texts)

    ways: dict[str, tuple[Callable[..., Vectors], Callable[..., Vectors]]] = {SHARED: (shared, shared)}
    answers: Any = getattr(model, "encode_answers", None)
    if answers is not None:
        ways[TOWERS] = (lambda texts: embed(model, texts, model.encode_query), answers)
    found: dict[str, dict[str, dict[str, float]]] = {}
    for way, (ask, answer) in ways.items():
        asked: dict[str, Vectors] = {}
        answered: dict[str, Vectors] = {}
        for task in tasks:
            if task.asked not in asked:
                asked[task.asked] = ask(task.questions)
            if task.answered not in answered:
                answered[task.answered] = answer(task.answers, task.contexts)
            one, other = asked[task.asked], answered[task.answered]
            measures = _measures(task, lambda block, q=one, a=other: q[block] @ a.T)  # type: ignore[misc]
            found.setdefault(way, {})[task.name] = measures
    return found


def _measures(task: AnswerTask, scores: Callable[[slice], Any]) -> dict[str, float]:
    return answer_measures(task.questions, task.right, task.contexts, scores)


def tables(scores: list[Score], tasks: Sequence[AnswerTask], with_bm25: bool) -> Iterator[str]:
    """A table of each set, a row for each way of embedding, and published figures; part by part."""
    yield "P@1 is the share of questions for which the sentence found first is right, or is in the right paragraph.\n"
    for task in tasks:
        own = [score for score in scores if score.set == task.name]
        title = f"{task.name}: {own[0].items:,} questions, {len(task.answers):,} sentences"
        yield from report.section(f"Answer retrieval x 100, {title}", own, lambda score: score.measure)
    sizes = {(len(set(task.questions)), len(task.answers)) for task in tasks}
    if columns := [column for column, size in _SIZES.items() if size in sizes]:
        yield "These figures are published. They are P@1 of the sentence in SQuAD 1.1 as ReQA cuts it, with contexts.\n"
        yield report.published_table("answer-retrieval", columns)
    if not with_bm25:
        yield f"\n{_NO_BM25}"
