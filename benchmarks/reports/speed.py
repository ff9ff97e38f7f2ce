"""The report's tables of speed: while scoring, and by the speed benchmark."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from harness.report import table_markdown

from reports.sections import Section, machine_line
from reports.sources import Collected, SpeedRun
from st_paragram.evaluation import published
from st_paragram.tables import markdown_table

RATE = "sentences_per_second"
_ENCODING = "encode-"  # how the keys of the speed benchmark's tables of encoding begin


def speed_sections(sts: Collected, speeds: Sequence[SpeedRun]) -> list[Section]:
    """Sentences per second of the models that were scored on STS, and the speed benchmark's tables of encoding."""
    rates = [(model, places[(RATE,)]) for model, places in sts.entries.items() if (RATE,) in places]
    rows = [[model, f"{entry.value:,.0f}", _hardware(entry.record.machine)] for model, entry in rates]
    sections = []
    if rows:
        rows += [[f"{row.model} (published)", f"{row.sentences_per_second:,}", row.hardware] for row in published.SPEED]
        about = (
            "Ours: text to vectors, tokenising included, of all STS sentences in one call, right after their first "
            "encoding, on the machine named. Published: 120,000 book sentences sorted by length in batches of 64, "
            "preprocessing outside the clock, on other hardware: no comparison of like with like."
        )
        table = markdown_table(("model", "sentences/s", "hardware"), rows)
        sections.append(Section("Speed while scoring STS", about, [table], sts.records(RATE)))
    for speed in speeds:
        tables = [table_markdown(table).strip() for table in speed.tables if table.key.startswith(_ENCODING)]
        if tables:
            about = f"Made by `python benchmarks/speed.py`, {speed.date}, {machine_line(speed.machine)}."
            sections.append(Section("Speed side by side", about, tables))
    return sections


def _hardware(machine: Mapping[str, Any]) -> str:
    return machine_line({name: value for name, value in machine.items() if name != "commit"})
