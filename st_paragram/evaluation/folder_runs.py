"""The benchmarks on the data that a folder, or the Hugging Face hub, has of them: what `benchmarks.BENCHMARKS` runs."""

from __future__ import annotations

from pathlib import Path
from typing import cast

from st_paragram.evaluation.benchmark_runs import run_bucc, run_hard_sts, run_mteb, run_sts, run_tatoeba
from st_paragram.evaluation.benchmarks import Request
from st_paragram.evaluation.bucc_files import read_bucc_pairs
from st_paragram.evaluation.bucc_scores import BuccTask
from st_paragram.evaluation.mteb.data import LOCAL_TASKS, local_tasks
from st_paragram.evaluation.results import BuccRun, HardStsRun, MtebRun, StsRun, TatoebaRun
from st_paragram.evaluation.sts.catalogue import YEARS
from st_paragram.evaluation.sts.sts_files import find_sts
from st_paragram.evaluation.tatoeba_files import read_tatoeba


def sts(request: Request) -> StsRun:
    """STS 2012-2017 and the STS Benchmark."""
    return run_sts(request.models, find_sts(request.data, (), request.hub), request.untrained, request.compare)


def hard_sts(request: Request) -> HardStsRun:
    """Hard STS, made of STS 2012-2016."""
    return run_hard_sts(request.models, find_sts(request.data, YEARS, request.hub), request.untrained)


def tatoeba(request: Request) -> TatoebaRun:
    """Tatoeba, of a folder alone."""
    sets = read_tatoeba(_folder(request), request.languages)
    return run_tatoeba(request.models, sets, untrained=request.untrained)


def bucc(request: Request) -> BuccRun:
    """BUCC, of a folder alone, with an oracle's threshold and one of the other half."""
    pairs = read_bucc_pairs(_folder(request), request.pairs)
    return run_bucc(request.models, BuccTask(pairs, split=True), request.untrained)


def mteb(request: Request) -> MtebRun:
    """The tasks of mteb that the folder has data of; without a folder, all that a folder could have."""
    tasks = local_tasks(request.data) if request.data else LOCAL_TASKS
    return run_mteb(request.models, tasks, request.data, request.languages)


def _folder(request: Request) -> Path:
    return cast(Path, request.data)  # `benchmarks.check_data` has seen that there is one
