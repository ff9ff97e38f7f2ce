"""Pictures of the report, drawn with matplotlib: quality by year, against speed, against the number of pairs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from reports.labels import Point, label_points
from reports.plot_pairs import plot_pairs
from reports.plot_parts import Plot, average_axis, dot, legend, scatter, without_smt
from reports.sources import Collected, collect
from reports.speed import PUBLISHED as SPEED
from reports.sts import AVERAGE, Protocol, average_columns, protocol_score
from st_paragram.core.figures import OURS, SMALL, THEIRS, check_plots, new_figure, save, tidy
from st_paragram.tools.evaluation.published import Published
from st_paragram.tools.evaluation.record import Record
from st_paragram.tools.evaluation.results import StsResult, StsRun
from st_paragram.tools.evaluation.sts import benchmark


def draw_plots(records: Sequence[Record[Any]], folder: str | Path) -> list[Plot]:
    """Draw what the records have figures for, as `results-*.png` in a folder that is made.

    Raises:
        MissingExtraError: matplotlib is not installed.
        EvaluationError: as `collect`.
    """
    check_plots()
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    sts = collect(records, StsRun, StsResult)
    plots = [
        plot_years(sts, Protocol.PAPERS, benchmark.ENGLISH_STS, folder / "results-sts-papers.png"),
        plot_years(sts, Protocol.SENTENCE_BERT, benchmark.CONCATENATED_STS, folder / "results-sts-sentence-bert.png"),
        plot_speed(sts, folder / "results-speed.png"),
        plot_pairs(sts, records, folder / "results-pairs.png"),
    ]
    return [plot for plot in plots if plot is not None]


def plot_years(sts: Collected[StsResult], protocol: Protocol, rows: Sequence[Published], path: Path) -> Plot | None:
    """One panel a year and one for the average; models from the best average down."""
    columns = average_columns(sts, protocol)
    ours = {
        model: {name: protocol_score(sts, model, protocol, column) for name, column in columns.items()}
        for model in sts.results
    }
    both = [(model, scores, True) for model, scores in ours.items() if scores[AVERAGE] is not None]
    if not both:
        return None
    both += [(f"{row.model}, published", dict(row.scores), False) for row in rows]
    both.sort(key=lambda row: row[1][AVERAGE] or 0.0)
    figure = new_figure(12, 1.6 + 0.3 * len(both))
    panels = figure.subplots(1, len(columns), sharey=True)
    for axes, (name, column) in zip(panels, columns.items(), strict=True):
        found = [(place, scores.get(name), own) for place, (_, scores, own) in enumerate(both)]
        for place, value, own in found:
            if value is not None:
                dot(axes, 100 * value, place, own)
                axes.annotate(
                    f"{100 * value:.1f}", (100 * value, place), (7, 0), textcoords="offset points", va="center",
                    fontsize=SMALL,
                )  # fmt: skip
        shown = [100 * value for _, value, _ in found if value is not None]
        room = max(shown) - min(shown) or 1.0
        axes.set_xlim(min(shown) - 0.12 * room, max(shown) + 0.6 * room)
        axes.set_title(name if column == name else f"{name}\n(ours: without SMT)", fontsize=10)
        axes.set_ylim(-0.7, len(both) - 0.3)
        axes.set_yticks(range(len(both)), [model for model, _, _ in both], fontsize=SMALL)
        axes.tick_params(axis="x", labelsize=SMALL)
        tidy(axes)
        axes.grid(axis="both", alpha=0.25)
    for label, (_, _, own) in zip(panels[0].get_yticklabels(), both, strict=True):
        label.set_color(OURS if own else THEIRS)
    measure = "Pearson" if protocol is Protocol.PAPERS else "Spearman"
    figure.supxlabel(f"{measure} x 100", fontsize=10)
    legend(figure)
    save(figure, path)
    kind = "the papers' protocol" if protocol is Protocol.PAPERS else "Sentence-BERT's protocol"
    caption = f"STS by year under {kind}. The model with the best average is on top.{without_smt(columns[AVERAGE])}"
    return Plot(path, f"STS by year, {kind}", caption)


def plot_speed(sts: Collected[StsResult], path: Path) -> Plot | None:
    """Quality by sentences per second, beside published speeds on one core; None without figures."""
    column = average_columns(sts)[AVERAGE]
    scores = {model: protocol_score(sts, model, Protocol.PAPERS, column) for model in sts.results}
    ours = [
        Point(result.sentences_per_second, 100 * quality, model, True)
        for model, result in sts.results.items()
        if result.sentences_per_second is not None and (quality := scores[model]) is not None
    ]
    if not ours:
        return None
    quality_of = {row.model: 100 * row.scores[AVERAGE] for row in benchmark.ENGLISH_STS}
    theirs = [
        Point(row.sentences_per_second, quality_of[row.model], f"{row.model}, published", False)
        for row in SPEED
        if row.hardware == "1 CPU core" and row.model in quality_of
    ]
    figure = new_figure(13, 6)
    everything, closer = figure.subplots(1, 2, width_ratios=(3, 2))
    everything.set_xscale("log")
    scatter(everything, [*ours, *theirs], 4)
    everything.set_xlabel("sentences per second (logarithmic)", fontsize=10)
    everything.set_ylabel(average_axis(column), fontsize=10)
    everything.set_title("Beside published figures", fontsize=11, loc="left")
    scatter(closer, ours, 1.25)
    closer.set_xlabel("sentences per second", fontsize=10)
    closer.locator_params(axis="x", nbins=5)
    closer.xaxis.set_major_formatter("{x:,.0f}")
    closer.set_title("Ours, closer", fontsize=11, loc="left")
    legend(figure)
    label_points(everything, theirs, SMALL, others=ours)
    label_points(closer, ours, SMALL)
    save(figure, path)
    caption = (
        "Quality against speed. Our speed includes tokenising, on the machine that is named under the tables.\n"
        "The published speed is that of one core of the paper's machine, with preprocessing outside the clock."
    )
    return Plot(path, "STS average against sentences per second", caption + without_smt(column))
