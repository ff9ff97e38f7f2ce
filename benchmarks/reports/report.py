"""The report: what all records say, as one Markdown file."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from reports.ablations import ablations_section
from reports.differences import differences_section
from reports.models import models_section
from reports.mteb import mteb_section
from reports.retrieval import bucc_section, tatoeba_section
from reports.sections import Section
from reports.sources import KINDS, SpeedRun, ablation_sets, collect
from reports.speed import speed_sections
from reports.sts import hard_sts_section, sts_sections
from st_paragram.errors import EvaluationError
from st_paragram.evaluation.record import Record
from st_paragram.evaluation.results import (
    BuccResult,
    BuccRun,
    HardStsResult,
    HardStsRun,
    MtebResult,
    MtebRun,
    StsResult,
    StsRun,
    TatoebaResult,
    TatoebaRun,
)

_INTRODUCTION = """\
# Results

How well our models follow grades of similarity, find translations and mine parallel text, under the protocols that the
headings name. Rows marked (published) are the papers' own figures, measured with their models and data; all other
figures were made by the commands beneath their tables (absolute paths are cut to their last component).
Figures are shares times 100; "-": not measured, "constant": all scores were alike, so that there is no correlation.
"""


def report_markdown(
    records: Sequence[Record[Any]],
    speeds: Sequence[SpeedRun] = (),
    plots: Sequence[str] = (),
    notes: Sequence[str] = (),
) -> str:
    """The whole report; what there are no records of is left out.

    Args:
        records: of any benchmarks, models and machines.
        speeds: results of the speed benchmark.
        plots: Markdown of pictures, shown behind the models.
        notes: what the reader must know besides, shown on top.

    Raises:
        EvaluationError: there is nothing to report, a benchmark is unknown, or two models of one record have one name.
    """
    if unknown := [record.benchmark for record in records if record.benchmark not in KINDS]:
        raise EvaluationError(f"a record of {unknown[0]!r}; the report knows {', '.join(KINDS)}")
    sections = _sections(records, speeds)
    if not sections:
        raise EvaluationError("no results in these records; give records with results")
    first = sections[0].markdown() if sections[0].title == "Models" else ""
    rest = [section.markdown() for section in sections[bool(first) :]]
    pictures = (
        "\n".join(
            [
                "## Pictures\n\nDrawn by `python benchmarks/report.py` from the figures of the tables below.\n",
                *(f"{plot}\n" for plot in plots),
            ]
        )
        if plots
        else ""
    )
    introduction = _INTRODUCTION + "".join(f"\n{note}\n" for note in notes)
    return "\n".join(part for part in (introduction, first, pictures, *rest) if part)


def _sections(records: Sequence[Record[Any]], speeds: Sequence[SpeedRun]) -> list[Section]:
    sts = collect(records, StsRun, StsResult)
    ablations = [ablations_section(collected) for collected in ablation_sets(records)]
    found = [
        models_section(records),
        *sts_sections(sts),
        differences_section(sts),
        hard_sts_section(collect(records, HardStsRun, HardStsResult)),
        tatoeba_section(collect(records, TatoebaRun, TatoebaResult)),
        bucc_section(collect(records, BuccRun, BuccResult)),
        mteb_section(collect(records, MtebRun, MtebResult), sts),
        *speed_sections(sts, speeds),
        *ablations,
    ]
    return [section for section in found if section is not None]
