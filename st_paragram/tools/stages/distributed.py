"""Stages on datatrove's executors: several processes, a Ray cluster, or Slurm (extra `distributed`).

All machines need this package, the work folder and the texts under the same paths: a shared file system. Only the
markers in the work folder record what is done, so executors can be changed between runs.
"""

from __future__ import annotations

import logging
import os
import shutil
import subprocess
import time
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import Any

from st_paragram.core.extras import require
from st_paragram.errors import ParagramError, SettingsError
from st_paragram.tools.stages.executors import StageTime
from st_paragram.tools.stages.stage import Stage

logger = logging.getLogger(__name__)

_POLL = 5.0  # seconds between two looks at a Slurm job


class Cluster(str, Enum):
    """Datatrove's executors."""

    LOCAL = "datatrove"
    RAY = "ray"
    SLURM = "slurm"


@dataclass(frozen=True)
class ClusterExecutor:
    """Runs each stage as one pipeline of datatrove, whose rank r does tasks r, r + ranks, ...

    Attributes:
        cluster: Which executor.
        logs: A folder for datatrove's logs; on the shared file system.
        ranks: Into how many parts the tasks of a stage are cut.
        workers: How many parts are worked on at once; -1: all.
        options: Further arguments of datatrove's executor, such as `partition` and `time`, which Slurm needs; for Ray
            also `address`, the cluster to join if this process is not part of one yet.
        poll: Seconds between two looks at a Slurm job.
    """

    cluster: Cluster
    logs: Path
    ranks: int = 1
    workers: int = -1
    options: Mapping[str, Any] = field(default_factory=dict)
    poll: float = _POLL

    def __post_init__(self) -> None:
        """Check what can be checked before any work.

        Raises:
            SettingsError: Numbers out of range, or Slurm without a partition or a time limit.
            MissingExtraError: datatrove or Ray is not installed.
        """
        if self.ranks < 1 or not (self.workers >= 1 or self.workers == -1):
            raise SettingsError(f"{self.ranks} ranks, {self.workers} workers: at least 1 of each (workers: or -1, all)")
        lacking = [name for name in ("partition", "time") if name not in self.options]
        if self.cluster is Cluster.SLURM and lacking:
            raise SettingsError(f"Slurm needs {' and '.join(lacking)}; give {lacking[0]}=...")
        _datatrove(self.cluster)

    def run(self, stages: Sequence[Stage]) -> list[StageTime]:
        """Do all tasks, stage by stage; waits for each.

        Raises:
            ParagramError: What a task raised first, or which tasks were left undone and where to look.
        """
        return [self._run(stage) for stage in stages]

    def _run(self, stage: Stage) -> StageTime:
        started = time.perf_counter()
        pending = stage.pending()
        if any(stage.local(task) for task in pending):
            raise ParagramError("a pipe can be read only on this machine; give files, or choose the local executor")
        if pending:
            logs = self.logs / f"{stage.name}-{uuid.uuid4().hex[:8]}"
            pipeline = [RunTasks(stage, logs / "errors")]
            ranks = min(self.ranks, len(stage.results()))
            executor = _datatrove(self.cluster)(
                pipeline=pipeline, tasks=ranks, workers=self.workers, logging_dir=str(logs), **self._arguments(stage)
            )
            if self.cluster is Cluster.RAY:
                _join_ray(self.options.get("address"))
            executor.run()
            if self.cluster is Cluster.SLURM:
                self._wait(stage, executor.job_id, logs)
            _check(stage, logs)
        return StageTime(stage.name, len(pending), time.perf_counter() - started)

    def _arguments(self, stage: Stage) -> dict[str, Any]:
        own: dict[str, Any] = {"start_method": "spawn"} if self.cluster is Cluster.LOCAL else {}
        if self.cluster is Cluster.SLURM:
            own = {"job_name": f"st_paragram_{stage.name}"}
        return own | {name: value for name, value in self.options.items() if name != "address"}

    def _wait(self, stage: Stage, job: object, logs: Path) -> None:
        """Wait until all is done, something went wrong, or the job has left the queue."""
        while stage.pending() and not _errors(logs):
            command = ["squeue", "--noheader", "--jobs", str(job)]
            answer = subprocess.run(command, capture_output=True, text=True, check=False)
            if not answer.stdout.strip():
                time.sleep(self.poll)  # a shared file system may show last results late
                return
            time.sleep(self.poll)


class RunTasks:
    """A step of a datatrove pipeline: does the tasks of its rank that are not done."""

    def __init__(self, stage: Stage, errors: Path) -> None:
        """Keep the stage, and the folder for what goes wrong on purpose."""
        self.stage = stage
        self.errors = errors
        self.folder = Path.cwd()  # paths may be relative to it, and other processes start elsewhere

    def __call__(self, data: object, rank: int = 0, world_size: int = 1) -> None:
        """Do tasks; errors raised on purpose are left for the process that waits, since trying again is useless."""
        os.chdir(self.folder)
        pending = set(self.stage.pending())
        for task in range(rank, len(self.stage.results()), world_size):
            if task not in pending:
                continue
            try:
                self.stage.run(task)
            except ParagramError as error:
                self.errors.mkdir(parents=True, exist_ok=True)
                (self.errors / f"{task:05d}").write_text(str(error), encoding="utf-8")
                return


def _errors(logs: Path) -> list[str]:
    return [path.read_text(encoding="utf-8") for path in sorted((logs / "errors").glob("*"))]


def _check(stage: Stage, logs: Path) -> None:
    for message in _errors(logs):
        raise ParagramError(message)
    if left := stage.pending():
        seen = f"{len(left)} of {len(stage.results())} tasks of stage {stage.name} were not done"
        raise ParagramError(f"{seen}; see {logs}, then start again, which does only what is left")
    shutil.rmtree(logs, ignore_errors=True)


def _join_ray(address: str | None) -> None:
    """Join a cluster, or start one of this machine alone; nothing if that has been done."""
    import ray

    ray.init(address=address, ignore_reinit_error=True, log_to_driver=False, logging_level=logging.WARNING)


def _datatrove(cluster: Cluster) -> Any:  # noqa: ANN401 - one of three classes
    def needed(module: str) -> Any:  # noqa: ANN401
        return require(module, "distributed", f"executor {cluster.value!r}")

    if cluster is Cluster.RAY:
        needed("ray")
        return needed("datatrove.executor.ray").RayPipelineExecutor
    if cluster is Cluster.SLURM:
        return needed("datatrove.executor.slurm").SlurmPipelineExecutor
    return needed("datatrove.executor.local").LocalPipelineExecutor
