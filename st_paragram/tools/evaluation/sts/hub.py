"""The STS benchmarks as mteb keeps them on the Hugging Face hub, by the package datasets."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from st_paragram.core.damage import printable
from st_paragram.core.extras import require
from st_paragram.errors import EvaluationError
from st_paragram.tools.evaluation.graded_pairs import GradedPairs, graded_rows
from st_paragram.tools.evaluation.sts.catalogue import BENCHMARKS, YEARS, Benchmark, SetInfo


def hub_pairs(infos: Sequence[SetInfo]) -> tuple[dict[str, GradedPairs], dict[str, GradedPairs]]:
    """Fetch sets of one benchmark.

    Returns:
        Sets by key (2017, STS Benchmark), and concatenations by year (2012-2016, whose sets' names are lost there).

    Raises:
        MissingExtraError: the package datasets is not installed.
        EvaluationError: the hub does not give the data.
        TextError: a row is not a graded pair.
    """
    benchmark = BENCHMARKS[infos[0].benchmark]
    if benchmark.name in YEARS:
        return {}, {benchmark.name: _fetch(benchmark.name, benchmark, None, "test")}
    subsets = {info.key: info.mteb for info in infos if info.mteb}
    if benchmark.name == "stsb":
        return {key: _fetch(key, benchmark, None, split) for key, split in subsets.items()}, {}
    return {key: _fetch(key, benchmark, subset, "test") for key, subset in subsets.items()}, {}


def _fetch(name: str, benchmark: Benchmark, subset: str | None, split: str) -> GradedPairs:
    load_dataset = require("datasets", "eval", "data of the hub").load_dataset
    try:
        data: Any = load_dataset(benchmark.hub, subset, split=split, revision=benchmark.revision)
        rows = list(zip(data["score"], data["sentence1"], data["sentence2"], strict=True))
    except Exception as error:  # datasets raises what its many parts raise
        reason = printable(str(error).split("\n")[0])
        raise EvaluationError(
            f"{name}: the hub did not give {benchmark.hub} ({type(error).__name__}: {reason}); try --data with files"
        ) from error
    return graded_rows(name, rows)
