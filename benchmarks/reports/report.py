"""The report: what all records say, as one Markdown file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from reports.ablations import ablations_section
from reports.differences import differences_section
from reports.introduction import introduction
from reports.models import models_section
from reports.mteb import mteb_section
from reports.retrieval import bucc_section, tatoeba_section
from reports.sections import Section
from reports.sources import KINDS, SpeedRun, ablation_sets, collect
from reports.speed import speed_sections
from reports.sts import AVERAGE, average_columns, hard_sts_section, sts_sections
from st_paragram.errors import EvaluationError
from st_paragram.tools.evaluation.bucc import BuccResult, BuccRun
from st_paragram.tools.evaluation.record import Record
from st_paragram.tools.evaluation.results import (
    HardStsResult,
    HardStsRun,
    MtebResult,
    MtebRun,
    StsResult,
    StsRun,
)
from st_paragram.tools.evaluation.tatoeba import TatoebaResult, TatoebaRun

_PICTURES = "## Pictures\n\nThese were drawn by `python benchmarks/report.py` from the figures of the tables below.\n"


def report_markdown(
    records: Sequence[Record[Any]],
    speeds: Sequence[SpeedRun] = (),
    plots: Sequence[str] = (),
    notes: Mapping[str, str] | None = None,
) -> str:
    """The whole report; what there are no records of is left out.

    Args:
        records: of any benchmarks, models and machines.
        speeds: results of the speed benchmark.
        plots: Markdown of pictures, shown behind the models.
        notes: title of a section -> what the reader must know besides, shown on top of it; "" is the page itself.

    Raises:
        EvaluationError: there is nothing to report, a benchmark is unknown, two models of one record have one name, or
            there are notes on a section that the report lacks.
    """
    if unknown := [record.benchmark for record in records if record.benchmark not in KINDS]:
        raise EvaluationError(f"a record of {unknown[0]!r}; the report knows {', '.join(KINDS)}")
    sections = _sections(records, speeds)
    if not sections:
        raise EvaluationError("no results in these records; give records with results")
    notes = dict(notes or {})
    without_smt = average_columns(collect(records, StsRun, StsResult))[AVERAGE] != AVERAGE
    above = introduction(notes.pop("", ""), without_smt)
    sections = _with_notes(sections, notes)
    first = sections[0].markdown() if sections[0].title == "Models" else ""
    rest = [section.markdown() for section in sections[bool(first) :]]
    pictures = "\n".join([_PICTURES, *(f"{plot}\n" for plot in plots)]) if plots else ""
    return "\n".join(part for part in (above, first, pictures, *rest) if part)


def _with_notes(sections: Sequence[Section], notes: Mapping[str, str]) -> list[Section]:
    """Sections with their notes on top; of several with one title, all of them."""
    titles = [section.title for section in sections]
    if strange := [title for title in notes if title not in titles]:
        raise EvaluationError(
            f"notes on {strange[0]!r}, which is no section of this report; it has {', '.join(titles)}"
        )
    return [
        replace(section, about="\n\n".join(part for part in (notes.get(section.title, ""), section.about) if part))
        for section in sections
    ]


def _sections(records: Sequence[Record[Any]], speeds: Sequence[SpeedRun]) -> list[Section]:
    sts = collect(records, StsRun, StsResult)
    ablations = [ablations_section(rows, first=not number) for number, rows in enumerate(ablation_sets(records))]
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
