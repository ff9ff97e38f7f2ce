"""The STS benchmarks as mteb keeps them on the Hugging Face hub, by the package datasets."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from st_paragram.damage import printable
from st_paragram.errors import EvaluationError
from st_paragram.evaluation.graded_pairs import GradedPairs, graded_rows
from st_paragram.evaluation.sts.catalogue import BENCHMARKS, YEARS, SetInfo
from st_paragram.extras import require

#: Commits of the data sets: those that mteb scores.
REVISIONS = {
    "mteb/sts12-sts": "a0d554a64d88156834ff5ae9920b964011b16384",
    "mteb/sts13-sts": "7e90230a92c190f1bf69ae9002b8cea547a64cca",
    "mteb/sts14-sts": "6031580fec1f6af667f0bd2da0a551cf4f0b2375",
    "mteb/sts15-sts": "ae752c7c21bf194d8b67fd573edf7ae58183cbe3",
    "mteb/sts16-sts": "4d8694f8f0e0100860b497b999b3dbed754a0513",
    "mteb/sts17-crosslingual-sts": "faeb762787bd10488a50c8b5be4a3b82e411949c",
    "mteb/stsbenchmark-sts": "b0fddb56ed78048fa8b90373c8a3cfc37b684831",
}


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
        return {}, {benchmark.name: _fetch(benchmark.name, benchmark.hub, None, "test")}
    subsets = {info.key: info.mteb for info in infos if info.mteb}
    if benchmark.name == "stsb":
        return {key: _fetch(key, benchmark.hub, None, split) for key, split in subsets.items()}, {}
    return {key: _fetch(key, benchmark.hub, subset, "test") for key, subset in subsets.items()}, {}


def _fetch(name: str, path: str, subset: str | None, split: str) -> GradedPairs:
    load_dataset = require("datasets", "eval", "data of the hub").load_dataset
    try:
        data: Any = load_dataset(path, subset, split=split, revision=REVISIONS[path])
    except Exception as error:  # datasets raises what its many parts raise
        reason = printable(str(error).split("\n")[0])
        message = f"{name}: the hub did not give {path} ({type(error).__name__}: {reason}); try --data with files"
        raise EvaluationError(message) from error
    return graded_rows(name, zip(data["score"], data["sentence1"], data["sentence2"], strict=True))
