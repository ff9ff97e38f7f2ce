"""Which benchmarks can be run: what a folder of evaluation data has, and which packages are installed."""

from __future__ import annotations

import importlib.util
from enum import Enum
from pathlib import Path

from st_paragram.errors import SettingsError
from st_paragram.evaluation.bucc_files import bucc_folder, bucc_pairs
from st_paragram.evaluation.mteb.data import local_tasks
from st_paragram.evaluation.sts.catalogue import BENCHMARKS, YEARS
from st_paragram.evaluation.sts.sts_files import benchmark_folders
from st_paragram.evaluation.tatoeba_files import tatoeba_files, tatoeba_folder


class Benchmark(str, Enum):
    """The benchmarks; the value is the name in commands and records."""

    STS = "sts"
    HARD_STS = "hard-sts"
    TATOEBA = "tatoeba"
    BUCC = "bucc"
    MTEB = "mteb"


#: What a benchmark needs besides the core packages: package, and the extra that brings it.
EXTRAS = {
    Benchmark.TATOEBA: ("faiss", "mining"),
    Benchmark.BUCC: ("faiss", "mining"),
    Benchmark.MTEB: ("mteb", "eval"),
}


#: Benchmarks whose data are read from a folder alone, and never from the hub.
FOLDER_ONLY = (Benchmark.TATOEBA, Benchmark.BUCC)


def check_data(benchmark: Benchmark, data: Path | None) -> None:
    """Refuse a benchmark that has no place to take its data from.

    Raises:
        SettingsError: there is no folder, and the benchmark's data are not read from the hub.
    """
    if data is None and benchmark in FOLDER_ONLY:
        raise SettingsError(f"{benchmark.value}: its data are not read from the hub; give --data DIR")


def benchmarks_in(folder: str | Path) -> list[Benchmark]:
    """The benchmarks of which a folder has data.

    Raises:
        TextError: a file is broken.
    """
    folder = Path(folder)
    there = {
        Benchmark.STS: any(benchmark_folders(folder, name) for name in BENCHMARKS),
        Benchmark.HARD_STS: any(benchmark_folders(folder, year) for year in YEARS),
        Benchmark.TATOEBA: bool(tatoeba_files(tatoeba_folder(folder))),
        Benchmark.BUCC: bool(bucc_pairs(bucc_folder(folder))),
        Benchmark.MTEB: bool(local_tasks(folder)),
    }
    return [benchmark for benchmark, found in there.items() if found]


def missing_package(benchmark: Benchmark) -> str | None:
    """One line on the package that a benchmark needs and that is not installed; None if nothing is missing."""
    package, extra = EXTRAS.get(benchmark, ("", ""))
    if not package or importlib.util.find_spec(package) is not None:
        return None
    return f'{package} is not installed; pip install "st_paragram[{extra}]"'
