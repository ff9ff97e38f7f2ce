"""Score models on a benchmark with the data that a folder, or the Hugging Face hub, has of it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from st_paragram.evaluation.available import Benchmark, check_data
from st_paragram.evaluation.benchmark_runs import run_bucc, run_hard_sts, run_mteb, run_sts, run_tatoeba
from st_paragram.evaluation.bucc_files import read_bucc_pairs
from st_paragram.evaluation.bucc_scores import BuccTask
from st_paragram.evaluation.mteb.data import LOCAL_TASKS, local_tasks
from st_paragram.evaluation.results import BenchmarkRun
from st_paragram.evaluation.sts.catalogue import YEARS
from st_paragram.evaluation.sts.sts_files import find_sts
from st_paragram.evaluation.tatoeba_files import read_tatoeba


def run_benchmark(
    benchmark: Benchmark,
    names: Sequence[str],
    data: Path | None,
    hub: bool = False,
    languages: Sequence[str] = (),
    pairs: Sequence[str] = (),
    untrained: bool = False,
    compare: bool = False,
) -> BenchmarkRun:
    """Score models on one benchmark.

    Args:
        benchmark: which.
        names: of the models.
        data: folder of evaluation data; None if all shall come from the hub.
        hub: take from the hub what the folder lacks of STS.
        languages: of Tatoeba and mteb; all that there are if empty.
        pairs: of languages, of BUCC; all that there are if empty.
        untrained: add random embeddings; mteb scores none.
        compare: on STS, compare every model with the first.

    Raises:
        SettingsError: the hub has no data of this benchmark, or as the functions of `benchmark_runs`.
        EvaluationError: the folder has no data of this benchmark.
        TextError: a file is broken.
        ModelDirectoryError, MissingExtraError: as the functions of `benchmark_runs`.
    """
    if benchmark is Benchmark.STS:
        return run_sts(names, find_sts(data, (), hub), untrained, compare)
    if benchmark is Benchmark.HARD_STS:
        return run_hard_sts(names, find_sts(data, YEARS, hub), untrained)
    if benchmark is Benchmark.MTEB:
        return run_mteb(names, local_tasks(data) if data else LOCAL_TASKS, data, languages)
    check_data(benchmark, data)
    assert data is not None
    if benchmark is Benchmark.TATOEBA:
        return run_tatoeba(names, read_tatoeba(data, languages), untrained=untrained)
    return run_bucc(names, BuccTask(read_bucc_pairs(data, pairs), split=True), untrained)
