"""The benchmarks, an entry each: what data they need, what runs them, and what shows their results.

What an entry names is imported when it is used, so that a command can refuse its options at once.
"""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from st_paragram.errors import SettingsError
from st_paragram.families.muse.nli_files import nli_files
from st_paragram.tools.evaluation.bucc_files import bucc_folder, bucc_pairs
from st_paragram.tools.evaluation.mteb.data import local_tasks
from st_paragram.tools.evaluation.results import BenchmarkRun
from st_paragram.tools.evaluation.retrieval_files import answer_folders, semantic_folders
from st_paragram.tools.evaluation.sts import catalogue
from st_paragram.tools.evaluation.sts.sts_files import benchmark_folders
from st_paragram.tools.evaluation.tatoeba_files import tatoeba_files, tatoeba_folder
from st_paragram.tools.evaluation.transfer_files import transfer_folder, transfer_tasks

_HERE = "st_paragram.tools.evaluation"
_RESULTS, _RUNS = f"{_HERE}.results", f"{_HERE}.folder_runs"


@dataclass(frozen=True)
class Request:
    """What a benchmark is to do; each takes what concerns it.

    Args:
        models: their names.
        data: folder of evaluation data; None if all shall come from the hub.
        hub: take from the hub what the folder lacks of STS.
        languages: of Tatoeba, answer retrieval, inference and mteb; all that there are if empty.
        pairs: of languages, of BUCC; all that there are if empty.
        untrained: add random embeddings; mteb scores none.
        compare: on STS, compare every model with the first.
        limit: queries of a set of semantic retrieval, the first ones; None: all of them.
    """

    models: Sequence[str]
    data: Path | None
    hub: bool = False
    languages: Sequence[str] = ()
    pairs: Sequence[str] = ()
    untrained: bool = False
    compare: bool = False
    limit: int | None = None


@dataclass(frozen=True)
class Benchmark:
    """A benchmark; functions and types are given as `module:name`.

    Args:
        has_data: whether a folder has data of it.
        results: the dataclass of its runs (see `results.BenchmarkRun`), which records are read back as.
        run: the function that does what a `Request` asks for and returns such a run.
        report: the function that gives the Markdown of a run: tables beside published rows, and notes, part by part.
        needs: a package beside the core ones, and the extra that brings it.
        on_hub: whether its data can come from the Hugging Face hub.
    """

    has_data: Callable[[Path], bool]
    results: str
    run: str
    report: str
    needs: tuple[str, str] | None = None
    on_hub: bool = False


def _has_sts(folder: Path, names: Iterable[str]) -> bool:
    """Whether there are files in a folder of one of these years of STS, or of the STS Benchmark."""
    return any(any(place.iterdir()) for name in names for place in benchmark_folders(folder, name))


#: In the order in which they are run.
BENCHMARKS = {
    "sts": Benchmark(
        lambda folder: _has_sts(folder, catalogue.BENCHMARKS),
        f"{_RESULTS}:StsRun",
        f"{_RUNS}:sts",
        "st_paragram.tools.evaluation.sts.sts_tables:sts_report",
        on_hub=True,
    ),
    "hard-sts": Benchmark(
        lambda folder: _has_sts(folder, catalogue.YEARS),
        f"{_RESULTS}:HardStsRun",
        f"{_RUNS}:hard_sts",
        "st_paragram.tools.evaluation.sts.hard_tables:hard_sts_report",
        on_hub=True,
    ),
    "tatoeba": Benchmark(
        lambda folder: bool(tatoeba_files(tatoeba_folder(folder))),
        f"{_RESULTS}:TatoebaRun",
        f"{_RUNS}:tatoeba",
        "st_paragram.tools.evaluation.tatoeba_tables:tatoeba_report",
    ),
    "bucc": Benchmark(
        lambda folder: bool(bucc_pairs(bucc_folder(folder))),
        f"{_RESULTS}:BuccRun",
        f"{_RUNS}:bucc",
        "st_paragram.tools.evaluation.bucc_tables:bucc_report",
    ),
    "semantic-retrieval": Benchmark(
        lambda folder: bool(semantic_folders(folder)),
        f"{_HERE}.semantic_retrieval:SemanticRetrievalRun",
        f"{_RUNS}:semantic_retrieval",
        f"{_HERE}.retrieval_tables:semantic_report",
    ),
    "answer-retrieval": Benchmark(
        lambda folder: bool(answer_folders(folder)),
        f"{_HERE}.answer_retrieval:AnswerRetrievalRun",
        f"{_RUNS}:answer_retrieval",
        f"{_HERE}.retrieval_tables:answer_report",
    ),
    "transfer": Benchmark(
        lambda folder: bool(transfer_tasks(transfer_folder(folder))),
        f"{_HERE}.transfer:TransferRun",
        f"{_RUNS}:transfer",
        f"{_HERE}.transfer_tables:transfer_report",
        needs=("sklearn", "probing"),
    ),
    "nli": Benchmark(
        lambda folder: bool(nli_files(folder)),
        "st_paragram.families.muse.nli:NliRun",
        f"{_RUNS}:nli",
        f"{_HERE}.transfer_tables:nli_report",
    ),
    "mteb": Benchmark(
        lambda folder: bool(local_tasks(folder)),
        f"{_RESULTS}:MtebRun",
        f"{_RUNS}:mteb",
        "st_paragram.tools.evaluation.mteb.tables:mteb_report",
        needs=("mteb", "eval"),
        on_hub=True,
    ),
}


def benchmarks_in(folder: str | Path) -> list[str]:
    """The benchmarks of which a folder has data.

    Raises:
        TextError: a file is broken.
    """
    return [name for name, benchmark in BENCHMARKS.items() if benchmark.has_data(Path(folder))]


def missing_package(name: str) -> str | None:
    """One line on the package that a benchmark needs and that is not installed; None if nothing is missing."""
    package, extra = BENCHMARKS[name].needs or ("", "")
    if not package or importlib.util.find_spec(package) is not None:
        return None
    return f'{package} is not installed; pip install "st_paragram[{extra}]"'


def check_data(name: str, data: Path | None) -> None:
    """Refuse a benchmark that has no place to take its data from.

    Raises:
        SettingsError: there is no folder, and the benchmark's data are not read from the hub.
    """
    if data is None and not BENCHMARKS[name].on_hub:
        raise SettingsError(f"{name}: its data are not read from the hub; give --data DIR")


def run_benchmark(name: str, request: Request) -> BenchmarkRun:
    """Score models on one benchmark.

    Raises:
        SettingsError: the hub has no data of this benchmark, or as the functions of `benchmark_runs`.
        EvaluationError: the folder has no data of this benchmark.
        TextError: a file is broken.
        ModelDirectoryError, MissingExtraError: as the functions of `benchmark_runs`.
    """
    check_data(name, request.data)
    run: BenchmarkRun = _named(BENCHMARKS[name].run)(request)
    return run


def report(run: BenchmarkRun) -> Iterator[str]:
    """Tables beside published rows, and notes, part by part, whichever benchmark a run is of."""
    parts: Iterator[str] = _named(BENCHMARKS[run.benchmark].report)(run)
    return parts


def run_types() -> dict[str, type[Any]]:
    """Benchmark -> the type of its runs."""
    return {name: _named(benchmark.results) for name, benchmark in BENCHMARKS.items()}


def _named(place: str) -> Any:  # noqa: ANN401 - a function or a type
    module, _, name = place.partition(":")
    return getattr(importlib.import_module(module), name)
