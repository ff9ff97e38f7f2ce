"""The Markdown of a run, whichever benchmark it is of."""

from __future__ import annotations

from collections.abc import Iterator
from functools import singledispatch

from st_paragram.evaluation.bucc_tables import bucc_report
from st_paragram.evaluation.mteb.tables import mteb_report
from st_paragram.evaluation.results import BenchmarkRun, BuccRun, HardStsRun, MtebRun, StsRun, TatoebaRun
from st_paragram.evaluation.sts.hard_tables import hard_sts_report
from st_paragram.evaluation.sts.sts_tables import sts_report
from st_paragram.evaluation.tatoeba_tables import tatoeba_report


@singledispatch
def report(run: BenchmarkRun) -> Iterator[str]:
    """Tables beside published rows, and notes, part by part.

    Raises:
        NotImplementedError: a run of another benchmark.
    """
    raise NotImplementedError(type(run).__name__)


report.register(StsRun, sts_report)
report.register(HardStsRun, hard_sts_report)
report.register(TatoebaRun, tatoeba_report)
report.register(BuccRun, bucc_report)
report.register(MtebRun, mteb_report)
