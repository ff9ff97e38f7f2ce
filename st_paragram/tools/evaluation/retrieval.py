"""Semantic and answer retrieval: tasks of queries and candidates, one search, the measures of rankings, and BM25.

A set is a folder of `queries.tsv`, `corpus.tsv` and `qrels.tsv`, plain or compressed, see `files.read_retrieval_set`.
Semantic retrieval (Gillick et al. 2018; mUSE's task SR) has queries that are documents themselves: sentences look for
those that mean the same; MAP@100. In answer retrieval (ReQA, Ahmad et al. 2019; XQuAD-R, Roy et al. 2020) questions
look for the sentences that answer them; P@1 and mean reciprocal rank, with the ranks of google/retrieval-qa-eval.

Sets side by side in a folder and named by languages, `xquad_r/es` and `xquad_r/en`, are parallel: the queries of each
are also put to the English candidates ("xquad_r/es-en"). Such a folder may have queries alone, in other words of the
English set's, whose ids they have.
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
import regex
from numpy.typing import NDArray

from st_paragram.core.encoding.models import TextEncoder
from st_paragram.core.extras import require
from st_paragram.core.text.streams import read_lines
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
CUT = 100  # of the ranks of semantic retrieval
PIVOT = "en"  # the language of candidates that queries of all languages are put to
_SIZES = {"dev": (11_425, 10_248), "train": (87_599, 91_703)}  # questions and sentences of SQuAD 1.1 as ReQA cuts it
_BLOCK = 512  # questions ranked at a time
_LANGUAGE = re.compile(r"[a-z]{2}")
_WORD = regex.compile(r"[\p{Han}\p{Hiragana}\p{Katakana}\p{Thai}]|[\p{L}\p{M}\p{N}--\p{Han}\p{Thai}]+", regex.V1)


@dataclass(frozen=True)
class Task:
    """Queries of one set, and the candidates of the same or another one."""

    name: str  # "xquad_r/es", or "xquad_r/es-en" where the candidates are of another set
    crosslingual: bool  # the candidates are of another set
    queries: tuple[str, ...]  # n texts
    corpus: tuple[str, ...]  # m texts
    contexts: tuple[str, ...]  # of the candidates, empty where there is none
    relevant: list[set[int]]  # of each query the candidates that are right
    itself: list[set[int]]  # of each query the candidates that are the query itself (semantic retrieval)


Data = tuple[str, list[Task]]  # the benchmark, and its tasks


def find(data: Path, benchmark: str) -> dict[str, Path]:
    """The sets in a folder, two levels deep, by name; the folder itself may be one.

    Those named by a language ("es") have the folder around them in their names, "xquad_r/es". Of semantic retrieval are
    those whose first query is a document, and the queries of other languages next to them.
    """
    places = [data] if _part(data, "corpus") else sorted(path for each in ("*", "*/*") for path in data.glob(each))
    found = {}
    for place in places:
        corpus = _part(place, "corpus")
        if corpus and _part(place, "qrels") and _asks_itself(corpus) == (benchmark == SEMANTIC):
            name = place.relative_to(data).as_posix() if place != data else data.resolve().name
            found[f"{data.resolve().name}/{name}" if _LANGUAGE.fullmatch(name) else name] = place
    return found


def _part(folder: Path, name: str) -> Path | None:
    """A file of a set that has queries; the English set's next to it where a folder lacks it."""
    if not packed(folder / "queries.tsv"):
        return None
    english = _LANGUAGE.fullmatch(folder.name) and packed(folder.with_name(PIVOT) / f"{name}.tsv")
    return packed(folder / f"{name}.tsv") or english or None


def _asks_itself(corpus: Path) -> bool:
    first = next(iter(read_lines(str(_part(corpus.parent, "queries")))), "").split("\t")
    return any(line.split("\t")[:2] == first for line in read_lines(str(corpus)))


def read(request: Request) -> Data:
    """The tasks of a folder; `languages` chooses among sets that are named by languages."""
    if request.limit is not None and request.limit < 1:
        raise SettingsError(f"a limit of {request.limit} queries; give 1 or more")
    benchmark, folders = request.benchmark, find(request.data or Path(), request.benchmark)
    form = "a set is a folder of queries.tsv, corpus.tsv and qrels.tsv"

    @cache
    def load(name: str) -> RetrievalSet:
        folder = folders[name]
        queries, corpus, qrels = (_part(folder, part) or folder for part in ("queries", "corpus", "qrels"))
        return read_retrieval_set(queries, corpus, qrels, name)

    tasks = []
    for name, folder in request.choose(folders, form, _language).items():
        answered = [name] if packed(folder / "corpus.tsv") else []
        if _language(name) not in ("", PIVOT) and (pivot := f"{name.rpartition('/')[0]}/{PIVOT}") in folders:
            answered.append(pivot)
        tasks += [make_task(load(name), load(other), benchmark, request.limit) for other in answered]
    return benchmark, tasks


def _language(name: str) -> str:
    """The language that a set of several is named by, "es" of "xquad_r/es"; empty if it is not."""
    last = name.rpartition("/")[2]
    return last if "/" in name and _LANGUAGE.fullmatch(last) else ""


def make_task(asked: RetrievalSet, answered: RetrievalSet, benchmark: str, limit: int | None = None) -> Task:
    """The task of the queries of one set, and the candidates of it or another one whose queries have the same ids.

    Of the candidates of answer retrieval none is twice in the same context, and all that read as a right one are right.
    """
    if (absent := next((key for key in asked.queries if key not in answered.queries), None)) is not None:
        seen = f"query {short(absent)} of {asked.name} is none of {answered.name}"
        raise EvaluationError(f"{seen}; sets of several languages must be parallel")
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
        if alone := [key for key, of in zip(queries, right, strict=True) if not of]:
            raise EvaluationError(f"{asked.name}: query {short(alone[0])} finds only itself; drop it from queries")
    else:
        itself = [set() for _ in queries]
        right = [set[int]().union(*(alike[texts[row]] for row in judged[key])) for key in queries]
    crosslingual = answered is not asked
    name = f"{asked.name}-{answered.name.rpartition('/')[2]}" if crosslingual else asked.name
    corpus, contexts = zip(*candidates, strict=True)
    return Task(name, crosslingual, tuple(queries.values()), corpus, contexts, right, itself)


def reference(data: Data) -> Iterator[Score]:
    """BM25 on answer retrieval within a language, where bm25s is installed."""
    benchmark, tasks = data
    if benchmark == ANSWER and importlib.util.find_spec("bm25s") is not None:
        for task in (task for task in tasks if not task.crosslingual):
            yield from _scores("BM25", ANSWER, task, answer_measures(task, bm25(task.corpus, task.queries)))


def score(name: str, model: TextEncoder, data: Data) -> Iterator[Score]:
    """Scores with the shared embedding (`encode`) of queries and candidates; every set is embedded once.

    Answer retrieval has a second row for a model with a tower for answers (`encode_answers`): the towers of questions,
    and of answers in their contexts.
    """
    benchmark, tasks = data
    ways: dict[str, tuple[Callable[..., Vectors], Callable[..., Vectors]]] = {
        "shared": (lambda texts: embed(model, texts), lambda texts, _: embed(model, texts))
    }
    answers: Any = getattr(model, "encode_answers", None)
    if benchmark == ANSWER and answers is not None:
        asking = model.encode_query
        ways["towers"] = (lambda texts: embed(model, texts, asking), lambda *of: answers(*map(list, of)))
    for way, (ask, answer) in ways.items():
        ask, answer = cache(ask), cache(answer)
        for task in tasks:
            measures = _measures(benchmark, task, ask(task.queries), answer(task.corpus, task.contexts))
            yield from _scores(f"{name}, {way}" if len(ways) > 1 else name, benchmark, task, measures)


def _measures(benchmark: str, task: Task, queries: Vectors, corpus: Vectors) -> dict[str, float]:
    if benchmark == ANSWER:
        return answer_measures(task, lambda block: queries[block] @ corpus.T)
    ranked = search(queries, corpus, task.itself, CUT)
    return {f"MAP@{CUT}": fmean(map(average_precision, ranked, task.relevant))}


def _scores(model: str, benchmark: str, task: Task, measures: Mapping[str, float]) -> Iterator[Score]:
    for measure, value in measures.items():
        yield Score(model, benchmark, task.name, measure, value, len(set(task.queries)))


def search(queries: Vectors, corpus: Vectors, itself: Sequence[set[int]], cut: int) -> list[list[int]]:
    """The first `cut` rows of the corpus for each query by cosine, exactly, without those that are the query `itself`.

    Queries are float32 (n, D), the corpus (m, D), with rows of length 1.
    """
    found = nearest_neighbors(queries, corpus, min(cut + max(map(len, itself)), len(corpus))).indices.tolist()
    return [[row for row in rows if row not in own][:cut] for rows, own in zip(found, itself, strict=True)]


def average_precision(ranked: Sequence[int], relevant: set[int]) -> float:
    """Sum of the precisions at the ranks of relevant documents, divided by the number of all relevant ones.

    As trec_eval counts it, e.g. `map_cut_100` for 100 ranked rows, also where more than 100 are relevant.
    """
    hits = np.isin(ranked, list(relevant))
    precisions = np.cumsum(hits) / np.arange(1, len(ranked) + 1)
    return float(precisions[hits].sum() / len(relevant))


def ranking_measures(ranked: Sequence[int], relevant: Mapping[int, int]) -> dict[str, float]:
    """nDCG@10, recall@10, recall@100 and the reciprocal rank of the first relevant document among ten.

    Gains are the grades, as in trec_eval and BEIR: DCG@10 is the sum of grade / log2(rank + 1) over the first ten
    ranks, nDCG@10 is its share of the DCG of the best order there is.
    """
    gains = [relevant.get(row, 0) for row in ranked[:10]]
    best = sorted(relevant.values(), reverse=True)[:10]
    recall = {cut: sum(row in relevant for row in ranked[:cut]) / len(relevant) for cut in (10, 100)}
    return {
        "nDCG@10": _discounted(gains) / _discounted(best),
        "recall@10": recall[10],
        "recall@100": recall[100],
        "MRR@10": next((1 / rank for rank, gain in enumerate(gains, 1) if gain), 0.0),
    }


def _discounted(gains: Sequence[int]) -> float:
    return float(np.array(gains, np.float64) @ (1 / np.log2(np.arange(len(gains)) + 2)))


def right_ranks(scores: Scores, right: Sequence[Rows]) -> Floats:
    """Rank of the best of the right candidates of each row of scores, (b, m); equal scores share their mean rank."""
    best = np.array([row[places].max() for row, places in zip(scores, right, strict=True)])[:, None]
    better, equal = (scores > best).sum(1), (scores == best).sum(1)
    ranks: Floats = better + (equal + 1) / 2
    return ranks


def answer_measures(task: Task, scores: Callable[[slice], Scores]) -> dict[str, float]:
    """P@1 of the sentence, P@1 of its paragraph if all sentences have contexts, and the mean reciprocal rank.

    Of a question asked several times the best rank counts, once. A paragraph is as good as its best sentence. `scores`
    are of some of the questions and all candidates, (b, m).
    """
    numbers = np.unique(np.array(task.contexts), return_inverse=True)[1]
    order = np.argsort(numbers, kind="stable")
    starts = np.unique(numbers[order], return_index=True)[1]
    right = [np.array(sorted(rows)) for rows in task.relevant]
    sentences, paragraphs = [], []
    for start in range(0, len(right), _BLOCK):
        block = slice(start, start + _BLOCK)
        found = scores(block).round(DECIMALS)
        sentences.append(right_ranks(found, right[block]))
        best = np.maximum.reduceat(found[:, order], starts, axis=1)
        paragraphs.append(right_ranks(best, [np.unique(numbers[rows]) for rows in right[block]]))
    ranks, of_paragraphs = (_once(task.queries, np.concatenate(each)) for each in (sentences, paragraphs))
    known = all(context.strip() for context in task.contexts)
    paragraph = {"P@1 paragraph": float((of_paragraphs == 1).mean())} if known else {}
    return {"P@1 sentence": float((ranks == 1).mean()), **paragraph, "MRR": float((1 / ranks).mean())}


def _once(questions: Sequence[str], ranks: Floats) -> Floats:
    """The best rank of each different question."""
    found = dict[str, float]()
    for question, rank in zip(questions, ranks.tolist(), strict=True):
        found[question] = min(rank, found.get(question, rank))
    return np.array(list(found.values()))


def words(text: str) -> list[str]:
    """Runs of letters and digits in lower case; a character of a script written without spaces is a word."""
    return _WORD.findall(text.lower())


def bm25(documents: Sequence[str], questions: Sequence[str]) -> Callable[[slice], Scores]:
    """Scores by words alone (BM25, Robertson et al. 1994; k1 = 1.5, b = 0.75, Lucene's form), by bm25s."""
    module = require("bm25s", "retrieval", "BM25")
    logging.getLogger("bm25s").setLevel(logging.WARNING)  # it reports every index
    index = module.BM25(k1=1.5, b=0.75, method="lucene")
    # With a word that no one writes, so that texts without any words can be indexed, too.
    index.index([[*words(text), "\0"] for text in documents], show_progress=False)
    asked = [[word for word in words(text) if word in index.vocab_dict] for text in questions]

    def scores(block: slice) -> Scores:
        return np.stack([index.get_scores(each) if each else np.zeros(len(documents)) for each in asked[block]])

    return scores


def tables(scores: list[Score], data: Data) -> Iterator[str]:
    """A table of all sets (semantic retrieval), or one of each (answer retrieval), and published figures; by parts."""
    benchmark, tasks = data
    if benchmark == SEMANTIC:
        sizes = [f"{t.name} has {len(t.queries):,} queries and {len(t.corpus):,} documents." for t in tasks]
        title = f"Semantic retrieval: mean average precision (MAP@{CUT}) x 100"
        yield from report.section(title, scores, " ".join(sizes))
        names = {task.name.partition("/")[0].partition("_")[0] for task in tasks}
        wanted, where = [name for name in ("Quora", "AskUbuntu") if name.lower() in names], "among other candidates"
    else:
        yield "P@1 is the share of questions for which the sentence found first is right, or in the right paragraph.\n"
        for task in tasks:
            own = [score for score in scores if score.set == task.name]
            title = f"{task.name}: {own[0].items:,} questions, {len(task.corpus):,} sentences"
            yield from report.section(f"Answer retrieval x 100, {title}", own, column=report.MEASURE)
        found = {(len(set(task.queries)), len(task.corpus)) for task in tasks}
        wanted = [name for name, size in _SIZES.items() if size in found]
        where = "by P@1 of the sentence in SQuAD 1.1 as ReQA cuts it, with contexts"
        if importlib.util.find_spec("bm25s") is None:
            yield 'The row BM25 is missing, because bm25s is not installed: pip install "st_paragram[retrieval]".\n'
    if wanted:
        yield f"These figures are published, and were measured {where}:\n"
        yield report.pivot([], known=benchmark, headings=wanted)
