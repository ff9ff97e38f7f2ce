"""The report's picture of quality against the number of training pairs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness.families.ablation_results import AblationResult

from reports.ablations import PAIRS, average, pairs_of_runs, score_sets, set_name, values
from reports.labels import Point, label_points
from reports.models import trainings
from reports.plot_parts import Plot, average_axis, scatter
from reports.sources import Collected, ablation_sets
from reports.sts import AVERAGE, Protocol, average_columns, protocol_score
from st_paragram.core.figures import SMALL, new_figure, save, tidy
from st_paragram.tools.evaluation.record import Record
from st_paragram.tools.evaluation.results import StsResult

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_MODELS = "the models (which differ in languages and data, too)"
_ABLATIONS = (
    "the trainings of the [ablations](#ablations-on-development-pairs-pearson-x-100)\n"
    "on parts of the same pairs; bars show the lowest and the highest seed"
)
_COLORS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7")
_MARKS = "osv^"


def plot_pairs(sts: Collected[StsResult], records: Sequence[Record[Any]], path: Path) -> Plot | None:
    """Models by their pairs, and the ablations of the number of pairs; None without either."""
    column, known = average_columns(sts)[AVERAGE], trainings(records)
    points = [
        Point(known[model].pairs, 100 * quality, model, True)
        for model in sts.results
        if model in known and (quality := protocol_score(sts, model, Protocol.PAPERS, column)) is not None
    ]
    points = points if len(points) > 1 else []  # one alone shows nothing
    curves = [curve for collected in ablation_sets(records) for curve in _curves(collected)]
    if not points and not curves:
        return None
    figure = new_figure(6.5 * (bool(points) + bool(curves)) + 1, 5.5)
    panels = list(figure.subplots(1, bool(points) + bool(curves), squeeze=False)[0])
    if curves:
        _draw_curves(panels[-1], curves)
    if points:
        panels[0].set_xscale("log")
        scatter(panels[0], points, 1.6)
        panels[0].set_ylabel(average_axis(column).replace("(ours without", "(without"), fontsize=10)
        panels[0].set_title("Models", fontsize=11, loc="left")
    for axes in panels:
        axes.set_xlabel("training pairs (logarithmic)", fontsize=10)
    if points:
        label_points(panels[0], points, SMALL)
    save(figure, path)
    parts = [_MODELS] * bool(points) + [_ABLATIONS] * bool(curves)
    title = "Quality against the number of training pairs"
    note = " Averages are without STS 2013's SMT data." if points and column != AVERAGE else ""
    return Plot(path, title, f"{title}. The points are {', and '.join(parts)}.{note}")


@dataclass(frozen=True)
class _Curve:
    name: str
    pairs: list[int]
    scores: list[list[float]]


def _curves(collected: Collected[AblationResult]) -> list[_Curve]:
    names = [(pairs, name) for name in collected.results if (pairs := pairs_of_runs(collected, name)) is not None]
    rows = [(pairs, collected.results[name]) for pairs, name in sorted(names)]
    if not any(row.group == PAIRS for _, row in rows):
        return []
    curves = []
    for name in score_sets(collected):
        found = [(pairs, values(row, name)) for pairs, row in rows]
        whole = [(p, [100 * v for v in scores if v is not None]) for p, scores in found if average(scores) is not None]
        curves.append(_Curve(set_name(name), [pairs for pairs, _ in whole], [scores for _, scores in whole]))
    return curves


def _draw_curves(axes: Axes, curves: Sequence[_Curve]) -> None:
    for index, curve in enumerate(curves):
        means = [sum(scores) / len(scores) for scores in curve.scores]
        low = [center - min(scores) for center, scores in zip(means, curve.scores, strict=True)]
        high = [max(scores) - center for center, scores in zip(means, curve.scores, strict=True)]
        color, mark = _COLORS[index % len(_COLORS)], _MARKS[index % len(_MARKS)]
        axes.errorbar(curve.pairs, means, [low, high], color=color, marker=mark, capsize=3, label=curve.name)
    axes.set_xscale("log")
    axes.set_ylabel("Pearson x 100, mean of the seeds", fontsize=10)
    axes.set_title("Ablation: number of pairs", fontsize=11, loc="left")
    axes.legend(fontsize=SMALL, loc="lower right")
    axes.grid(alpha=0.25)
    tidy(axes)
