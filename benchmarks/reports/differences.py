"""The report's table of differences between two models, by paired bootstrap."""

from __future__ import annotations

from reports.sections import Section, listed
from reports.sources import Collected, short_name
from st_paragram.core.tables import MISSING, markdown_table
from st_paragram.tools.evaluation.results import Comparison, StsResult


def differences_section(sts: Collected[StsResult]) -> Section | None:
    """One table for each model that others were compared with; None if none were."""
    tables = []
    compared = {model: of.against for model, of in sts.results.items() if of.against}
    for first in dict.fromkeys(short_name(against.model) for against in compared.values()):
        others = {model: of.differences for model, of in compared.items() if short_name(of.model) == first}
        labels = dict.fromkeys(label for differences in others.values() for label in differences)
        rows = [[label, *(_cell(differences.get(label)) for differences in others.values())] for label in labels]
        tables.append(f"Compared with {first}:\n\n" + markdown_table(["Pearson x 100", *others], rows))
    if not tables:
        return None
    about = (
        "A figure is what the model of the column has more than the other one on the same pairs, "
        "with its 95 % interval and the p-value of no difference.\n"
        "They come from a paired bootstrap over the pairs. Years and averages are by the papers' protocol."
    )
    records = sts.records("against")
    settings = dict.fromkeys(f"{record.run.resamples:,} resamples with seed {record.run.seed}" for record in records)
    notes = [f"The bootstrap took {listed(list(settings))}."]
    return Section("STS, differences between models: Pearson x 100", about, tables, records, [*notes, *sts.notes])


def _cell(found: Comparison | None) -> str:
    if found is None:
        return MISSING
    difference, low, high = (100 * figure for figure in (found.difference, found.low, found.high))
    return f"{difference:+.1f} ({low:+.1f} to {high:+.1f}), p {found.p_value:.3f}"
