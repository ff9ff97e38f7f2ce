"""The report's tables of speed: while scoring, and by the speed benchmark."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from harness.speed.report import table_markdown

from reports.sections import Section, machine_line
from reports.sources import Collected, SpeedRun
from st_paragram.core.tables import markdown_table
from st_paragram.tools.evaluation.results import StsResult


@dataclass(frozen=True)
class PublishedSpeed:
    """Sentences per second on 120,000 book sentences; batch 64, sorted by length, preprocessing not counted."""

    model: str
    hardware: str
    sentences_per_second: int


#: The paper's Table of speeds, EMNLP 2022.
PUBLISHED = tuple(
    PublishedSpeed(model, hardware, rate)
    for model, hardware, rate in (
        ("P-SP", "GTX 1080 Ti", 13_863),
        ("P-SP", "1 CPU core", 12_776),
        ("P-SP", "32 CPU cores", 15_316),
        ("LASER", "GTX 1080 Ti", 6_033),
        ("LASER", "1 CPU core", 26),
        ("Sentence-BERT", "GTX 1080 Ti", 288),
        ("Sentence-BERT", "1 CPU core", 2),
        ("InferSent", "GTX 1080 Ti", 4_445),
        ("InferSent", "1 CPU core", 16),
    )
)

_RATE = "sentences_per_second"
_ENCODING = "encode-"  # how the keys of the speed benchmark's tables of encoding begin


def speed_sections(sts: Collected[StsResult], speeds: Sequence[SpeedRun]) -> list[Section]:
    """Sentences per second of the models that were scored on STS, and the speed benchmark's tables of encoding."""
    rows = []
    for model, result in sts.results.items():
        if result.sentences_per_second is not None:
            machine = machine_line(sts.origins[model][(_RATE,)].machine)
            rows.append([model, f"{result.sentences_per_second:,.0f}", machine])
    sections = []
    if rows:
        rows += [[f"{row.model} (published)", f"{row.sentences_per_second:,}", row.hardware] for row in PUBLISHED]
        about = (
            "Our rates are from text to vectors, tokenising included: all STS sentences in one call, right after they "
            "were encoded for the first time, on the machine that is named.\n"
            "The published ones are for 120,000 book sentences sorted by length, in batches of 64, "
            "with preprocessing outside the clock, on other hardware.\n"
            "So like is not compared with like; [speed](speed.md) has a fair comparison."
        )
        table = markdown_table(("model", "sentences/s", "hardware"), rows)
        sections.append(Section("Speed while scoring STS", about, [table], sts.records(_RATE)))
    for speed in speeds:
        tables = [table_markdown(table).strip() for table in speed.tables if table.key.startswith(_ENCODING)]
        if tables:
            made = f"These were measured by `python benchmarks/speed.py` on {speed.date}."
            about = f"{made} The machine: {machine_line(speed.machine)}."
            sections.append(Section("Speed side by side", about, tables))
    return sections
