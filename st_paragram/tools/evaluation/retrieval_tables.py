"""Semantic and answer retrieval as Markdown tables beside published rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from statistics import fmean

from st_paragram.core.tables import MISSING, hundredths, markdown_table
from st_paragram.tools.evaluation.answer_retrieval import PIVOT, SHARED, AnswerRetrievalRun
from st_paragram.tools.evaluation.answer_task import AnswerScores
from st_paragram.tools.evaluation.published import ANSWER_RETRIEVAL, SEMANTIC_RETRIEVAL
from st_paragram.tools.evaluation.retrieval_files import language_of
from st_paragram.tools.evaluation.semantic_retrieval import SemanticRetrievalRun

_BM25 = 'There is no row BM25, because bm25s is not installed: pip install "st_paragram[retrieval]".'


def semantic_report(run: SemanticRetrievalRun) -> Iterator[str]:
    """A table of all models, and one of published rows, part by part."""
    first = next(iter(run.models.values())).sets
    yield f"## Semantic retrieval: mean average precision of the first {run.cut} (MAP@{run.cut}) x 100\n"
    rows = []
    for name, result in run.models.items():
        figures = [scores.mean_average_precision for scores in result.sets.values()]
        rows.append([name, *map(hundredths, figures), *_mean(figures), _seconds(result.seconds)])
    yield markdown_table(["model", *first, *_mean_head(first), "seconds"], rows)
    yield f"\n{_sizes({name: (each.queries, each.candidates) for name, each in first.items()}, 'queries')}\n"
    columns = list(SEMANTIC_RETRIEVAL[0].scores)
    published = [[row.label, *(hundredths(row.scores[column]) for column in columns)] for row in SEMANTIC_RETRIEVAL]
    yield "These figures are published, and were measured among other candidates:\n"
    yield markdown_table(["model", *columns], published)


def answer_report(run: AnswerRetrievalRun) -> Iterator[str]:
    """Tables of the sets that stand alone, and of languages; a row for each way of embedding; part by part."""
    rows = _answer_rows(run)
    names = list(next(iter(run.models.values())).ways[SHARED])
    yield "## Answer retrieval: P@1 and mean reciprocal rank x 100\n"
    yield "P@1 is the share of questions for which the sentence found first is right, or is in the right paragraph.\n"
    parallel = [name for name in names if language_of(name.removesuffix(f"-{PIVOT}"))]
    for name in (name for name in names if name not in parallel):
        yield f"### {_sized(name, rows)}\n\n{_alone(name, rows)}\n"
    for folder in dict.fromkeys(name.rpartition("/")[0] for name in parallel):
        yield from _languages(folder, [name for name in parallel if name.rpartition("/")[0] == folder], rows)
    published = [[row.label, *map(hundredths, row.scores.values())] for row in ANSWER_RETRIEVAL]
    yield "These figures are published. They are P@1 of the sentence in SQuAD 1.1 as ReQA cuts it, where dev has 10,248"
    yield "sentences, in their contexts.\n"
    yield markdown_table(["model", "dev", "train"], published)
    seconds = [f"{of.seconds:.1f} s for {name}" for name, of in run.models.items() if of.seconds is not None]
    if seconds:
        yield f"\nThis took {', '.join(seconds)}."
    if run.bm25 is None:
        yield f"\n{_BM25}"


_AnswerRows = Mapping[str, Mapping[str, AnswerScores]]


def _answer_rows(run: AnswerRetrievalRun) -> _AnswerRows:
    """Label of a row -> task -> scores; the way is named where a model has several."""
    rows: dict[str, Mapping[str, AnswerScores]] = {}
    for name, result in run.models.items():
        rows |= {f"{name}, {way}" if len(result.ways) > 1 else name: of for way, of in result.ways.items()}
    return rows | ({} if run.bm25 is None else {"BM25": run.bm25})


def _alone(name: str, rows: _AnswerRows) -> str:
    cells = [
        [label, *map(hundredths, (of[name].sentence, of[name].paragraph, of[name].reciprocal_rank))]
        for label, of in rows.items()
    ]
    return markdown_table(["model", "P@1 sentence", "P@1 paragraph", "MRR"], cells)


#: Heading -> what it is of the scores.
_MEASURES: dict[str, Callable[[AnswerScores], float | None]] = {
    "P@1 of the sentence": lambda scores: scores.sentence,
    "P@1 of the paragraph": lambda scores: scores.paragraph,
    "MRR": lambda scores: scores.reciprocal_rank,
}


def _languages(folder: str, names: Sequence[str], rows: _AnswerRows) -> Iterator[str]:
    """A table for each measure: questions of each language, answers of the same one and in English."""
    own = {name.rpartition("/")[2]: name for name in names}
    to_pivot = {language.removesuffix(f"-{PIVOT}"): name for language, name in own.items() if "-" in language}
    same = {language: name for language, name in own.items() if "-" not in language}
    for title, measure in _MEASURES.items():
        cells = []
        for label, of in rows.items():
            for answers, columns in (("same language", same), ("English", to_pivot)):
                figures = {key: measure(of[name]) for key, name in columns.items() if name in of}
                if any(figure is not None for figure in figures.values()):
                    mean = _mean(list(figures.values())) or [MISSING]
                    cells.append([label, answers, *(hundredths(figures.get(language)) for language in same), *mean])
        if cells:
            head = ["model", "answers in", *same, "mean"]
            yield f"### {folder}, {title}, questions of each language\n\n{markdown_table(head, cells, left=2)}\n"


def _sized(name: str, rows: _AnswerRows) -> str:
    scores = next(iter(rows.values()))[name]
    return f"{name}: {scores.questions:,} questions, {scores.candidates:,} sentences"


def _mean_head(columns: Sequence[str] | Mapping[str, object]) -> list[str]:
    return ["mean"] if len(columns) > 1 else []


def _mean(figures: Sequence[float | None]) -> list[str]:
    known = [figure for figure in figures if figure is not None]
    if len(figures) < 2:
        return []
    return [hundredths(fmean(known)) if len(known) == len(figures) else MISSING]


def _seconds(seconds: float | None) -> str:
    return MISSING if seconds is None else f"{seconds:.1f}"


def _sizes(sizes: Mapping[str, tuple[int, int]], what: str) -> str:
    return " ".join(
        f"{name} has {count:,} {what} and {others:,} candidates." for name, (count, others) in sizes.items()
    )
