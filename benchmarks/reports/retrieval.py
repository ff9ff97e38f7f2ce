"""The report's tables of retrieval and mining: Tatoeba and BUCC."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from statistics import mean

from harness.speed.report import number

from reports.sections import Section, listed, published_rows
from reports.sources import Collected
from st_paragram.core.tables import MISSING, hundredths, markdown_table
from st_paragram.tools.evaluation import bucc, tatoeba
from st_paragram.tools.evaluation.bucc import BuccResult
from st_paragram.tools.evaluation.sts.benchmark import STATIC_MODELS
from st_paragram.tools.evaluation.tatoeba import RetrievalScores, TatoebaResult

_WIDEST = 12  # languages that make columns; more make rows
_MEAN_OF = ("ara", "deu", "spa", "fra", "rus", "tur")  # the published averages are over these
_ALSO = "cmn"  # in the published mean accuracies too

_Results = Mapping[str, TatoebaResult]
_Cell = Callable[[RetrievalScores], str]


def tatoeba_section(collected: Collected[TatoebaResult]) -> Section | None:
    """Errors by cosine next to published ones, errors by margin, both directions, and what mteb counts."""
    results = collected.results
    languages = list(dict.fromkeys(name for result in results.values() for name in result.languages))
    if not languages:
        return None
    views: tuple[tuple[str, _Cell], ...] = (
        ("Error x 100 by margin (ratio) score, mean of both directions:", lambda of: hundredths(of.margin.mean)),
        ("Error x 100 by cosine, into English / out of English:", _both_ways),
    )
    tables = ["Error x 100 by cosine, mean of both directions:\n\n" + _errors(results, languages)]
    tables += [f"{title}\n\n{_table(results, languages, cell)}" for title, cell in views]
    tables.append("Accuracy (F1) x 100 as mteb counts them, by cosine:\n\n" + _accuracies(results, languages))
    about = (
        "For each sentence, the translation is sought among all English sentences of the set, and the other way round. "
        "It is an error if the nearest neighbour is not the translation.\n"
        f"The average is the mean of {listed(_MEAN_OF)}, as in the published rows; that of accuracy has {_ALSO}, too. "
        "*Seconds* are those for all languages of the model's last run."
    )
    title = "Tatoeba, the papers' protocol: error of the nearest neighbour"
    return Section(title, about, tables, collected.records("languages"), collected.notes)


def bucc_section(collected: Collected[BuccResult]) -> Section | None:
    """Precision, recall and F1 by each score; one table a pair of languages."""
    results = collected.results
    languages = list(dict.fromkeys(name for result in results.values() for name in result.languages))
    if not languages:
        return None
    head = ("model", "score", "threshold", "precision", "recall", "F1")
    tables = []
    for language in languages:
        scored = {
            model: result.languages[language] for model, result in results.items() if language in result.languages
        }
        rows = [
            [model, name, f"{of.threshold:.3f}", *map(hundredths, (of.precision, of.recall, of.f1))]
            for model, scores in scored.items()
            for name, of in scores.margins.items()
            if of.threshold is not None
        ]
        rows += [[*row[:1], *[MISSING] * 4, row[1]] for row in published_rows(bucc.PUBLISHED, [language])]
        told = [record.run.headings.get(language) for record in collected.records("languages", language)]
        parts = [language, *dict.fromkeys(heading for heading in told if heading)]
        gold = " or ".join(dict.fromkeys(f"{scores.gold:,}" for scores in scored.values()))
        tables.append(f"### {': '.join(parts)} ({gold} gold pairs)\n\n" + markdown_table(head, rows))
    about = (
        "Sentences that are translations of each other are sought in two texts. "
        "Pairs that score above a threshold count as found.\n"
        "[Mining](../../../docs/mining.md#mining-translations) explains the scores; the *gold* is the list of "
        "known pairs."
    )
    notes = [_time_taken(results), *collected.notes]
    title = "BUCC 2018, the shared task's protocol: precision, recall and F1 x 100"
    return Section(title, about, tables, collected.records("languages"), [note for note in notes if note])


def _time_taken(results: Mapping[str, BuccResult]) -> str:
    known = [(number(of.seconds), model) for model, of in results.items() if of.seconds is not None]
    times = [f"{seconds}{'' if place else ' seconds'} for {model}" for place, (seconds, model) in enumerate(known)]
    return f"This took {listed(times)}." if times else ""


def _both_ways(of: RetrievalScores) -> str:
    return f"{hundredths(of.cosine.forward)} / {hundredths(of.cosine.backward)}"


def _errors(results: _Results, languages: Sequence[str]) -> str:
    rows = []
    for model, result in results.items():
        average = _average(result, _MEAN_OF, lambda of: of.cosine.mean)
        seconds = MISSING if result.seconds is None else number(result.seconds)
        cells = (_cell(result, name, lambda of: hundredths(of.cosine.mean)) for name in languages)
        rows.append([model, *cells, hundredths(average), seconds])
    shown = [row for row in tatoeba.PUBLISHED if not row.scores.keys().isdisjoint(languages)]
    theirs = published_rows(shown, [*languages, "average", "seconds"])
    return _oriented(["model", *languages, "average", "seconds"], [*rows, *theirs])


def _accuracies(results: _Results, languages: Sequence[str]) -> str:
    rows = []
    for model, result in results.items():
        average = _average(result, (*_MEAN_OF, _ALSO), lambda of: of.accuracy)
        rows.append([model, *(_cell(result, name, _accuracy) for name in languages), hundredths(average)])
    theirs = published_rows(STATIC_MODELS, ["Tatoeba"])
    rows += [[label, *[MISSING] * len(languages), average] for label, average in theirs]
    return _oriented(["model", *languages, "average accuracy"], rows)


def _accuracy(of: RetrievalScores) -> str:
    return f"{hundredths(of.accuracy)} ({hundredths(of.f1)})"


def _table(results: _Results, languages: Sequence[str], cell: _Cell) -> str:
    rows = [[model, *(_cell(result, name, cell) for name in languages)] for model, result in results.items()]
    return _oriented(["model", *languages], rows)


def _oriented(head: list[str], rows: list[list[str]]) -> str:
    """Languages as columns, or, where they are many, as rows."""
    if len(head) <= _WIDEST:
        return markdown_table(head, rows)
    turned = [list(cells) for cells in zip(head, *rows, strict=True)]
    return markdown_table(["language", *turned[0][1:]], turned[1:])


def _cell(result: TatoebaResult, language: str, cell: _Cell) -> str:
    return cell(result.languages[language]) if language in result.languages else MISSING


def _average(
    result: TatoebaResult, languages: Sequence[str], figure: Callable[[RetrievalScores], float]
) -> float | None:
    """Mean over languages; None unless the model has them all."""
    found = [figure(result.languages[name]) for name in languages if name in result.languages]
    return mean(found) if len(found) == len(languages) else None
