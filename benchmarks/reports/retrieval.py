"""The report's tables of retrieval and mining: Tatoeba and BUCC."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from statistics import mean
from typing import Any

from harness.report import number

from reports.sections import Section, published_rows
from reports.sources import Collected
from st_paragram.evaluation import published
from st_paragram.tables import MISSING, hundredths, markdown_table

_WIDEST = 12  # languages that make columns; more make rows
_MEAN_OF = ("ara", "deu", "spa", "fra", "rus", "tur")  # the published averages are over these
_ALSO = "cmn"  # in the published mean accuracies too

Cell = Callable[[dict[str, Any]], str]


def tatoeba_section(collected: Collected) -> Section | None:
    """Errors by cosine beside published ones, errors by margin, both directions, and what mteb counts."""
    languages = collected.below("languages")
    if not languages:
        return None
    views: tuple[tuple[str, Cell], ...] = (
        ("Error x 100 by margin (ratio) score, mean of both directions:", lambda of: hundredths(of["margin"]["mean"])),
        ("Error x 100 by cosine, into English / out of English:", _both_ways),
    )
    tables = ["Error x 100 by cosine, mean of both directions:\n\n" + _errors(collected, languages)]
    tables += [f"{title}\n\n{_table(collected, languages, cell)}" for title, cell in views]
    tables.append("Accuracy (F1) x 100 as mteb counts them, by cosine:\n\n" + _accuracies(collected, languages))
    about = (
        "A translation is sought among all English sentences of the set, and the other way round; an error is a "
        f"nearest neighbour that is not the translation. Average: the mean of {', '.join(_MEAN_OF)}, as in the "
        f"published rows; of accuracy with {_ALSO} too. Seconds: for all languages of the model's last run."
    )
    title = "Tatoeba, the papers' protocol: error of the nearest neighbour"
    return Section(title, about, tables, collected.records("languages"), collected.notes)


def bucc_section(collected: Collected) -> Section | None:
    """Precision, recall and F1 by each score; one table a pair of languages."""
    languages = collected.below("languages")
    if not languages:
        return None
    head = ("model", "score", "threshold", "precision", "recall", "F1")
    tables = []
    for language in languages:
        scored = [model for model in collected.models if collected.get(model, "languages", language)]
        rows = [
            [model, name, f"{of['threshold']:.3f}", *(hundredths(of.get(key)) for key in ("precision", "recall", "f1"))]
            for model in scored
            for name, of in collected.get(model, "languages", language).items()
            if isinstance(of, dict) and of.get("threshold") is not None
        ]
        rows += [[*row[:1], *[MISSING] * 4, row[1]] for row in published_rows(published.BUCC, [language])]
        tables.append(f"### {_heading(collected, language, scored)}\n\n" + markdown_table(head, rows))
    times = [(model, collected.get(model, "seconds")) for model in collected.models]
    seconds = ", ".join(f"{model} {number(value)}" for model, value in times if value is not None)
    about = (
        "Sentences that are translations of each other are sought in two texts; those above a threshold count as found."
    )
    notes = [f"Seconds: {seconds}." if seconds else "", *collected.notes]
    title = "BUCC 2018, the shared task's protocol: precision, recall and F1 x 100"
    return Section(title, about, tables, collected.records("languages"), [note for note in notes if note])


def _heading(collected: Collected, language: str, models: Sequence[str]) -> str:
    """The language, what the records say of the choice of thresholds, and the number of pairs."""
    told = [record.data.get("headings", {}).get(language) for record in collected.records("languages", language)]
    parts = [language, *dict.fromkeys(heading for heading in told if heading)]
    pairs = dict.fromkeys(f"{collected.get(model, 'languages', language)['pairs']:,}" for model in models)
    return f"{': '.join(parts)} ({' or '.join(pairs)} gold pairs)"


def _both_ways(of: dict[str, Any]) -> str:
    return f"{hundredths(of['cosine']['forward'])} / {hundredths(of['cosine']['backward'])}"


def _errors(collected: Collected, languages: Sequence[str]) -> str:
    models = collected.models
    columns = [[_cell(collected, model, name, _mean_error) for name in languages] for model in models]
    averages = [hundredths(_average(collected, model, _MEAN_OF, lambda of: of["cosine"]["mean"])) for model in models]
    times = [collected.get(model, "seconds") for model in models]
    seconds = [MISSING if value is None else number(value) for value in times]
    rows = [[*row, *ends] for row, *ends in zip(columns, averages, seconds, strict=True)]
    shown = [row for row in published.TATOEBA if not row.scores.keys().isdisjoint(languages)]
    theirs = published_rows(shown, [*languages, "average", "seconds"])
    named = [[model, *row] for model, row in zip(models, rows, strict=True)]
    return _oriented(["model", *languages, "average", "seconds"], [*named, *theirs])


def _accuracies(collected: Collected, languages: Sequence[str]) -> str:
    rows = []
    for model in collected.models:
        average = _average(collected, model, (*_MEAN_OF, _ALSO), lambda of: of["accuracy"])
        rows.append([model, *(_cell(collected, model, name, _accuracy) for name in languages), hundredths(average)])
    theirs = published_rows(published.STATIC_MODELS, ["Tatoeba"])
    rows += [[label, *[MISSING] * len(languages), average] for label, average in theirs]
    return _oriented(["model", *languages, "average accuracy"], rows)


def _accuracy(of: dict[str, Any]) -> str:
    return f"{hundredths(of.get('accuracy'))} ({hundredths(of.get('f1'))})"


def _table(collected: Collected, languages: Sequence[str], cell: Cell) -> str:
    rows = [[model, *(_cell(collected, model, name, cell) for name in languages)] for model in collected.models]
    return _oriented(["model", *languages], rows)


def _oriented(head: list[str], rows: list[list[str]]) -> str:
    """Languages as columns, or, where they are many, as rows."""
    if len(head) <= _WIDEST:
        return markdown_table(head, rows)
    turned = [list(cells) for cells in zip(head, *rows, strict=True)]
    return markdown_table(["language", *turned[0][1:]], turned[1:])


def _cell(collected: Collected, model: str, language: str, cell: Cell) -> str:
    found = collected.get(model, "languages", language)
    return MISSING if found is None else cell(found)


def _mean_error(of: dict[str, Any]) -> str:
    return hundredths(of["cosine"]["mean"])


def _average(
    collected: Collected, model: str, languages: Sequence[str], figure: Callable[[dict[str, Any]], float]
) -> float | None:
    """Mean over languages; None unless the model has them all."""
    found = [collected.get(model, "languages", language) for language in languages]
    return mean(figure(of) for of in found) if all(found) else None
