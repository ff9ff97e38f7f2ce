"""A section of the report: tables under one heading, and beneath them the runs that made them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from reports.sources import shorten, shorten_command
from st_paragram.core.machine import MachineDescription
from st_paragram.core.tables import MISSING, hundredths
from st_paragram.tools.evaluation.published import Published
from st_paragram.tools.evaluation.record import Record
from st_paragram.tools.evaluation.results import GradedResult, HardStsRun, StsRun

CONSTANT = "constant"
PAIRS_IN_HEADS = "The heads of the columns have the numbers of pairs in brackets."
_MISSING_SET = re.compile(r"(\S+) is missing(.*)")
_TWO_REASONS = re.compile(r" \((.+); (.+)\)")


@dataclass(frozen=True)
class Section:
    """Tables of one protocol.

    Args:
        title: names the benchmark and the protocol.
        about: what is measured and how to read it.
        tables: Markdown, each perhaps with a line on top.
        records: that the figures come from.
        notes: sentences beneath.
    """

    title: str
    about: str
    tables: Sequence[str]
    records: Sequence[Record[Any]] = ()
    notes: Sequence[str] = field(default_factory=tuple)

    def markdown(self) -> str:
        """The section, ending in a line break."""
        parts = [f"## {self.title}", self.about, *self.tables, *runs_markdown(self.records), "\n".join(self.notes)]
        return "\n\n".join(part for part in parts if part) + "\n"


def runs_markdown(records: Sequence[Record[Any]]) -> list[str]:
    """The commands of each machine and day as a block of code, and the machine and the day beneath it."""
    runs: dict[str, list[str]] = {}
    for record in records:
        commands = runs.setdefault(f"{record.date}, {machine_line(record.machine)}.", [])
        if (command := shorten_command(record.command)) not in commands:
            commands.append(command)
    return [part for made, commands in runs.items() for part in ("\n".join(f"    {c}" for c in commands), made)]


def machine_line(machine: MachineDescription) -> str:
    """One line on a machine: processor, cores, threads, GPU."""
    parts = ["unknown processor" if machine.cpu == "unknown" else machine.cpu]
    for count, word in ((machine.cores, "core"), (machine.threads, "thread")):
        if count:
            parts.append(f"{count} {word}{'' if count == 1 else 's'}")
    if machine.gpu != "none":
        parts.append(machine.gpu)
    return ", ".join(parts)


def data_notes(records: Sequence[Record[Any]]) -> list[str]:
    """What the STS benchmarks said of their data, e.g. that sets are missing; each once."""
    notes = [note for record in records if isinstance(record.run, (StsRun, HardStsRun)) for note in record.run.notes]
    return [_sentence(shorten(note).rstrip(".")) + "." for note in dict.fromkeys(notes)]


def listed(names: Sequence[str]) -> str:
    """Names as a sentence has them: a, b and c."""
    return " and ".join(part for part in (", ".join(names[:-1]), *names[-1:]) if part)


def _sentence(note: str) -> str:
    if not (found := _MISSING_SET.fullmatch(note)):
        return note
    return f"The set {found[1]} is missing" + _TWO_REASONS.sub(r": \1, and \2", found[2])


def graded(figures: GradedResult | None) -> str:
    """Pearson / Spearman x 100 of a set; "constant" where the scores were all alike, "-" where it was not scored."""
    if figures is None:
        return MISSING
    return f"{correlation(figures.pearson, figures)} / {correlation(figures.spearman, figures)}"


def correlation(value: float | None, figures: GradedResult) -> str:
    """One of a set's correlations x 100, or why there is none."""
    return (figures.undefined or CONSTANT) if value is None else hundredths(value)


def published_rows(rows: Sequence[Published], columns: Sequence[str]) -> list[list[str]]:
    """Published rows that have a figure in one of these columns; Spearman's behind a slash where there is one."""
    return [
        [row.label, *(_published(row, column) for column in columns)]
        for row in rows
        if any(column in row.scores for column in columns)
    ]


def _published(row: Published, column: str) -> str:
    cell = hundredths(row.scores.get(column))
    return f"{cell} / {hundredths(row.spearman[column])}" if column in row.spearman else cell
