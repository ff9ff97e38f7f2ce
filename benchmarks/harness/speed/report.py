"""Tables as Markdown, and a whole run as JSON."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from harness.speed.results import Spread, Table

from st_paragram.core.files import write_json
from st_paragram.core.machine import MachineDescription


def table_markdown(table: Table) -> str:
    """A table with its title and notes, ending in a line break.

    A peer that was not measured has its reason in the last column and dashes elsewhere.
    """
    headings = ["", f"median, {table.unit}", "min - max", "middle half"]
    if table.reference is not None:
        headings.append(f"{table.reference} / this (min - max)")
    extra = list(dict.fromkeys(heading for row in table.rows for heading in row.columns))
    headings += [*extra, ""]
    lines = [f"### {table.title}", "", _line(headings), _line(["---", *["---:"] * (len(headings) - 2), "---"])]
    for row in table.rows:
        spread, ratio = table.spread(row), table.ratio(row)
        cells = [row.name, *_spread_cells(spread)]
        if table.reference is not None:
            cells.append(
                "-" if ratio is None else f"{number(ratio.median)} ({number(ratio.low)} - {number(ratio.high)})"
            )
        lines.append(_line([*cells, *(row.columns.get(heading, "-") for heading in extra), row.note]))
    rounds = sorted({len(row.rounds) for row in table.rows if row.rounds})
    count = " to ".join(str(value) for value in sorted({rounds[0], rounds[-1]})) if rounds else "0"
    return "\n".join([*lines, "", " ".join([*table.notes, f"Rounds: {count}."])]) + "\n"


def number(value: float) -> str:
    """Three digits or more, as people read them: 12,345, 123, 12.3, 0.123."""
    size = abs(value)
    if size >= 100 or value == 0:
        return f"{value:,.0f}"
    return f"{value:.1f}" if size >= 10 else f"{value:.2f}" if size >= 1 else f"{value:.3g}"


def machine_markdown(machine: MachineDescription) -> str:
    """The description of a machine as a list."""
    values = {name.replace("_", " "): value for name, value in asdict(machine).items() if name != "libraries"}
    values["libraries"] = ", ".join(f"{name} {version}" for name, version in machine.libraries.items())
    return "\n".join(f"- {name}: {value}" for name, value in values.items()) + "\n"


def write_report(
    output: Path, machine: MachineDescription, settings: dict[str, Any], tables: Sequence[Table], date: str
) -> None:
    """Write `speed.json` (every round) and `speed.md` (what was printed) into the folder `output`."""
    values = {"date": date, "machine": asdict(machine), "settings": settings, "tables": [t.as_json() for t in tables]}
    write_json(output / "speed.json", values)
    parts = [f"## Speed, {date}\n", machine_markdown(machine), *map(table_markdown, tables)]
    (output / "speed.md").write_text("\n".join(parts), encoding="utf-8")


def _spread_cells(spread: Spread | None) -> list[str]:
    if spread is None:
        return ["-"] * 3
    ends = f"{number(spread.low)} - {number(spread.high)}"
    return [number(spread.median), ends, f"{number(spread.first_quartile)} - {number(spread.third_quartile)}"]


def _line(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"
