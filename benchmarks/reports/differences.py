"""The report's table of differences between two models, by paired bootstrap."""

from __future__ import annotations

from typing import Any

from reports.sections import Section
from reports.sources import Collected, short_name
from st_paragram.tables import MISSING, markdown_table

_PLACE = "against"


def differences_section(sts: Collected) -> Section | None:
    """One table for each model that others were compared with; None if none were."""
    tables = []
    compared = {model: sts.get(model, _PLACE) for model in sts.models if sts.get(model, _PLACE)}
    for first in dict.fromkeys(short_name(of["model"]) for of in compared.values()):
        others = {model: of["differences"] for model, of in compared.items() if short_name(of["model"]) == first}
        labels = dict.fromkeys(label for differences in others.values() for label in differences)
        rows = [[label, *(_cell(differences.get(label)) for differences in others.values())] for label in labels]
        tables.append(f"Compared with {first}:\n\n" + markdown_table(["Pearson x 100", *others], rows))
    if not tables:
        return None
    about = (
        "What a model has more than another on the same pairs, with the 95 % interval and the p-value of no difference "
        "(paired bootstrap over the pairs; years and averages by the papers' protocol)."
    )
    records = sts.records(_PLACE)
    settings = dict.fromkeys(str(_resamples(record.data)) for record in records)
    notes = [f"Resamples: {', '.join(settings)}."]
    return Section("STS, differences between models: Pearson x 100", about, tables, records, [*notes, *sts.notes])


def _cell(figures: dict[str, Any] | None) -> str:
    if figures is None or figures.get("difference") is None:
        return MISSING
    difference, low, high = (100 * figures[name] for name in ("difference", "low", "high"))
    return f"{difference:+.1f} ({low:+.1f} to {high:+.1f}), p {figures['p_value']:.3f}"


def _resamples(data: dict[str, Any]) -> str:
    bootstrap = data.get("bootstrap", {})
    return f"{bootstrap.get('resamples', MISSING):,}, seed {bootstrap.get('seed', MISSING)}" if bootstrap else MISSING
