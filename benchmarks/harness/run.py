"""A run of the benchmark: sections, printed and written as they come."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Iterator, Sequence

from tqdm import tqdm

from harness import section_encode, section_encoders, section_load, section_roofline, section_scaling, section_train
from harness.options import Options
from harness.plots import plot_table
from harness.report import machine_markdown, table_markdown, write_report
from harness.results import Table
from harness.units import Unit, run_units
from st_paragram.core.figures import check_plots
from st_paragram.core.machine import describe_machine

SECTIONS: dict[str, Callable[[Options], Iterator[Unit]]] = {
    "encode": section_encode.units,
    "load": section_load.units,
    "train": section_train.units,
    "encoders": section_encoders.units,
    "roofline": section_roofline.units,
    "scaling": section_scaling.units,
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
