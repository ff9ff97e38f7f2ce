"""A run of the benchmark: sections, printed and written as they come, and kept, so that a run can be resumed."""

from __future__ import annotations

import datetime
import json
import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from harness.speed import section_encode, section_load, section_tables, section_train
from harness.speed.options import Options
from harness.speed.plots import plot_table
from harness.speed.report import machine_markdown, table_markdown, write_report
from harness.speed.results import Table, Unit
from tqdm import tqdm

from st_paragram.core.figures import check_plots
from st_paragram.core.files import write_json
from st_paragram.core.machine import describe_machine

logger = logging.getLogger(__name__)

SECTIONS: dict[str, Callable[[Options], Iterator[Unit]]] = {
    "encode": section_encode.units,
    "load": section_load.units,
    "train": section_train.units,
    "tables": section_tables.units,
}


def run(options: Options, sections: Sequence[str], resume: bool = False, plots: bool = True) -> list[Table]:
    """Run sections; print each table, and rewrite `speed.json` and `speed.md`, when it is made.

    Args:
        options: sizes and places.
        sections: names out of `SECTIONS`.
        resume: take what an interrupted run with the same options has finished.
        plots: draw each table, `<key>.png`.

    Raises:
        MissingExtraError: plots without matplotlib.
    """
    if plots:
        check_plots()
    options.output.mkdir(parents=True, exist_ok=True)
    machine, tables = describe_machine(), []
    date = datetime.datetime.now().astimezone().strftime("%Y-%m-%d %H:%M %Z")
    tqdm.write(machine_markdown(machine))
    settings = options.as_json()
    for section in sections:
        for table in run_units(SECTIONS[section](options), options.output / "tables", settings, resume):
            tables.append(table)
            tqdm.write(table_markdown(table))
            write_report(options.output, machine, settings, tables, date)
            if plots:
                plot_table(table, options.output / f"{table.key}.png")
    return tables


def run_units(units: Iterable[Unit], folder: Path, settings: dict[str, Any], resume: bool) -> Iterator[Table]:
    """Make tables one by one, each kept under `folder` when it is made.

    Args:
        units: what to make.
        folder: of the kept tables.
        settings: tables of other settings are made again.
        resume: take a table that is kept there instead of making it.
    """
    folder.mkdir(parents=True, exist_ok=True)
    for unit in units:
        path = folder / f"{unit.key}.json"
        if resume and (kept := _kept(path, settings)) is not None:
            logger.info("%s: taken from an earlier run", unit.key)
            yield kept
            continue
        table = unit.make()
        write_json(path, {"settings": settings, "table": table.as_json()})
        yield table


def _kept(path: Path, settings: dict[str, Any]) -> Table | None:
    if not path.is_file():
        return None
    values = json.loads(path.read_text(encoding="utf-8"))
    return Table.from_json(values["table"]) if values["settings"] == settings else None
