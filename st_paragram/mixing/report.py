"""What a search found: a table for people, values for programs, and the mixture for `st-paragram prepare`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from st_paragram.core.files import write_json
from st_paragram.core.tables import markdown_table
from st_paragram.mixing.search import CLEAR, Finding, Result, mean_score
from st_paragram.mixing.settings import MixSettings
from st_paragram.tools.corpora.mixture import MixtureSource, write_mixture

_KINDS = {"graded": "graded pairs", "translations": "translations"}


def table(result: Result) -> str:
    """What each source adds and costs, as a Markdown table."""
    kinds = [kind for kind in _KINDS if kind in result.findings[0].by_kind]
    head = ["source", "adds", *(_KINDS[kind] for kind in kinds), "pairs", "seconds", "weight"]
    rate = result.everything[0].seconds / result.everything[0].pairs
    rows = [_row(each, kinds, rate) for each in sorted(result.findings, key=lambda each: -each.effect)]
    return markdown_table(head, rows)


def _row(each: Finding, kinds: Sequence[str], rate: float) -> list[str]:
    by_kind = [f"{each.by_kind[kind]:+.2f}" for kind in kinds]
    return [
        each.group,
        f"{each.effect:+.2f}",
        *by_kind,
        f"{each.pairs:,}",
        f"{each.pairs * rate:.1f}",
        f"{each.weight:g}",
    ]


def notes(result: Result, settings: MixSettings) -> str:
    """What the figures of the table are, and what all of them come to."""
    others = "all others" if settings.method == "leave-out" else "those that were added before it"
    lines = [
        f"adds: points that a source adds to the score of {others}; standard error {result.error:.2f}",
        f"score of all sources: {mean_score(result.everything):.2f}, of the mixture: {mean_score(result.chosen):.2f} "
        f"({result.gain:+.2f})",
    ]
    if len(result.temperatures) > 1:
        tried = ", ".join(f"{each:g}: {score:.2f}" for each, score in sorted(result.temperatures.items()))
        lines.append(f"temperature: {tried}; chosen: {result.temperature:g}")
    return "\n".join(lines)


def values(result: Result, settings: MixSettings) -> dict[str, Any]:
    """All figures, as JSON holds them."""
    return {
        "settings": asdict(settings),  # type: ignore[call-overload]
        "sources": [asdict(each) for each in result.findings],
        "standard_error": result.error,
        "clear": CLEAR,
        "all": [asdict(each) | {"score": each.score} for each in result.everything],
        "mixture": [asdict(each) | {"score": each.score} for each in result.chosen],
        "temperatures": {f"{each:g}": score for each, score in result.temperatures.items()},
        "temperature": result.temperature,
    }


def write(result: Result, settings: MixSettings, sources: Sequence[MixtureSource], output: Path) -> None:
    """Write the mixture; its first lines are the table."""
    weights = {each.group: each.weight for each in result.findings}
    lines = [
        "Written by `st-paragram mix`, for `st-paragram prepare --sources`.",
        notes(result, settings),
        table(result),
    ]
    write_mixture(output, [each.weighted(weights[each.group]) for each in sources], "\n".join(lines))


def write_values(result: Result, settings: MixSettings, path: Path) -> None:
    """Write all figures."""
    write_json(path, values(result, settings))
