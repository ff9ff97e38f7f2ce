"""What a table and a picture say of languages that English was trained with."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import mean

from harness.language_runs import LanguageRun, RankCorrelation, rank_correlation

from st_paragram.core.figures import COLOURS, MARKERS, SMALL, new_figure, save, tidy
from st_paragram.core.tables import markdown_table

Distances = Mapping[str, Mapping[str, float]]

#: Spearman x 100 of all 46 languages with STS (ACL 2019, table 5); disjoint: the control.
PUBLISHED = {"string": {"overlap": 71.5, "featural": -22.8}, "disjoint": {"overlap": 24.9, "featural": -10.1}}


def language_table(runs: Sequence[LanguageRun], distances: Distances) -> str:
    """A row a language, the best by its first way of sharing on top: overlap, distances, scores of all seeds."""
    sharings = list(dict.fromkeys(run.sharing for run in runs))
    scores = {sharing: sts_by_language(runs, sharing) for sharing in sharings}
    order = sorted(scores[sharings[0]], key=lambda language: -scores[sharings[0]][language])
    rows = []
    for language in order:
        cells = [language, f"{overlap_by_language(runs)[language]:.3f}"]
        cells += [f"{distances[kind][language]:.3f}" for kind in distances]
        for sharing in sharings:
            found = [100 * run.sts for run in runs if (run.language, run.sharing) == (language, sharing)]
            cells.append(f"{mean(found):.1f} ({min(found):.1f} - {max(found):.1f})")
        rows.append(cells)
    return markdown_table(["language", "overlap", *distances, *(f"STS, {sharing}" for sharing in sharings)], rows)


def correlation_table(runs: Sequence[LanguageRun], distances: Distances) -> str:
    """Spearman x 100 of overlap and distances with STS, with the permutation test's p; the paper's beside them."""
    sharings = list(dict.fromkeys(run.sharing for run in runs))
    measures: dict[str, Mapping[str, float]] = {"overlap": overlap_by_language(runs), **distances}
    rows = []
    for name, values in measures.items():
        cells = [name]
        for sharing in sharings:
            scores = sts_by_language(runs, sharing)
            found = rank_correlation([values[language] for language in scores], list(scores.values()))
            cells += [_told(found), _published(sharing, name)]
        rows.append(cells)
    head = [title for sharing in sharings for title in (sharing, f"*{sharing}, ACL 2019 (46 languages)*")]
    return markdown_table(["Spearman x 100 with STS", *head], rows)


def plot_languages(runs: Sequence[LanguageRun], path: Path) -> None:
    """STS over overlap, a colour for each way of sharing, each point named; PNG.

    Raises:
        MissingExtraError: matplotlib is not installed.
    """
    figure = new_figure(6.5, 4.2)
    axes = figure.subplots()
    overlap = overlap_by_language(runs)
    for number, sharing in enumerate(dict.fromkeys(run.sharing for run in runs)):
        scores = sts_by_language(runs, sharing)
        x, y = [overlap[language] for language in scores], [100 * score for score in scores.values()]
        axes.scatter(x, y, color=COLOURS[number], marker=MARKERS[number], label=sharing)
        for language, left, up in zip(scores, x, y, strict=True):
            axes.annotate(language, (left, up), xytext=(5, 3), textcoords="offset points", fontsize=SMALL)
    axes.set_xlabel("share of English pieces that are pieces of the language")
    axes.set_ylabel("STS 2012-2016 of English, Pearson x 100")
    axes.legend(title="vocabularies", frameon=False)
    tidy(axes)
    save(figure, path)


def sts_by_language(runs: Sequence[LanguageRun], sharing: str) -> dict[str, float]:
    """The mean over the seeds, Pearson."""
    languages = dict.fromkeys(run.language for run in runs)
    return {
        language: mean(run.sts for run in runs if (run.language, run.sharing) == (language, sharing))
        for language in languages
    }


def overlap_by_language(runs: Sequence[LanguageRun]) -> dict[str, float]:
    """The overlap of pieces; it is the same in all runs of a language."""
    return {run.language: run.overlap for run in runs if run.sharing != "joint"}


def _told(found: RankCorrelation) -> str:
    return f"{100 * found.rho:.0f} (n = {found.n}, p = {found.p:.3f})"


def _published(sharing: str, name: str) -> str:
    value = PUBLISHED.get(sharing, {}).get(name)
    return "" if value is None else f"*{value:.1f}*"
