"""The benchmarks, a line each: the module of a benchmark, and what it needs.

The module of a benchmark has

    has_data(folder)    whether a folder of evaluation data has files of it
    run(request)        does what a `base.Request` asks for and returns a run (see `results.BenchmarkRun`)
    RUN                 the dataclass of its runs, which records are read back as
    report(run)         the Markdown of a run, part by part: tables with published rows, and notes

and is imported when it is used, so that a command can refuse its options at once. Those of the user's own files are not
found in a folder, and have no `has_data`.
"""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from st_paragram.core.families import FAMILIES
from st_paragram.errors import SettingsError
from st_paragram.tools.evaluation.base import Request
from st_paragram.tools.evaluation.results import BenchmarkRun


@dataclass(frozen=True)
class Benchmark:
    """A benchmark.

    Args:
        module: its module.
        needs: a package besides the core packages, and the extra that brings it.
        on_hub: whether its data can come from the Hugging Face hub.
        files: the field of a request that names the user's own files, if it scores such.
    """

    module: str
    needs: tuple[str, str] | None = None
    on_hub: bool = False
    files: str = ""

    def load(self) -> Any:  # noqa: ANN401 - a module
        """Import the module."""
        return importlib.import_module(self.module)


def _own(module: str, needs: tuple[str, str] | None = None, on_hub: bool = False) -> Benchmark:
    return Benchmark(f"st_paragram.tools.evaluation.{module}", needs, on_hub)


#: In the order in which they are run; families add theirs, see `core.families`.
BENCHMARKS = {
    "sts": _own("sts.benchmark", on_hub=True),
    "hard-sts": _own("sts.hard", on_hub=True),
    "tatoeba": _own("tatoeba"),
    "bucc": _own("bucc"),
    "semantic-retrieval": _own("semantic_retrieval"),
    "answer-retrieval": _own("answer_retrieval"),
    "transfer": _own("transfer", needs=("sklearn", "probing")),
    **{name: Benchmark(f"{entry.package}.{name}") for entry in FAMILIES.values() for name in entry.benchmarks},
    "mteb": _own("mteb.benchmark", needs=("mteb", "eval"), on_hub=True),
}

#: What is scored on the user's own files.
OWN = {
    "own-translations": Benchmark("st_paragram.tools.evaluation.own.translations", files="own_pairs"),
    "own-graded": Benchmark("st_paragram.tools.evaluation.own.graded", files="graded"),
    "own-retrieval": Benchmark("st_paragram.tools.evaluation.own.retrieval", files="retrieval"),
}


def benchmarks_in(folder: str | Path) -> list[str]:
    """The benchmarks of which a folder has data.

    Raises:
        TextError: a file is broken.
    """
    return [name for name, benchmark in BENCHMARKS.items() if benchmark.load().has_data(Path(folder))]


def missing_package(name: str) -> str | None:
    """One line on the package that a benchmark needs and that is not installed; None if nothing is missing."""
    package, extra = BENCHMARKS[name].needs or ("", "")
    if not package or importlib.util.find_spec(package) is not None:
        return None
    return f'{package} is not installed; pip install "st_paragram[{extra}]"'


def own_files(request: Request) -> list[str]:
    """The benchmarks on the user's own files that are asked for."""
    return [name for name, benchmark in OWN.items() if getattr(request, benchmark.files)]


def check_data(name: str, data: Path | None) -> None:
    """Refuse a benchmark that has no place to take its data from.

    Raises:
        SettingsError: there is no folder, and the benchmark's data are not read from the hub.
    """
    if data is None and name not in OWN and not BENCHMARKS[name].on_hub:
        raise SettingsError(f"{name}: its data is not read from the hub; give --data DIR")


def run_benchmark(name: str, request: Request) -> BenchmarkRun:
    """Score models on one benchmark.

    Raises:
        SettingsError: the hub has no data of this benchmark, or as the benchmark's `run`.
        EvaluationError: the folder has no data of this benchmark.
        TextError: a file is broken.
        ModelDirectoryError, MissingExtraError: as the benchmark's `run`.
    """
    check_data(name, request.data)
    run: BenchmarkRun = {**OWN, **BENCHMARKS}[name].load().run(request)
    return run


def report(run: BenchmarkRun) -> Iterator[str]:
    """Tables with published rows, and notes, part by part, whichever benchmark a run is of."""
    parts: Iterator[str] = {**OWN, **BENCHMARKS}[run.benchmark].load().report(run)
    return parts


def run_types() -> dict[str, type[Any]]:
    """Published benchmark -> the type of its runs."""
    return {name: benchmark.load().RUN for name, benchmark in BENCHMARKS.items()}


def own_run_types() -> dict[str, type[Any]]:
    """The same of what is scored on the user's own files."""
    return {name: benchmark.load().RUN for name, benchmark in OWN.items()}
