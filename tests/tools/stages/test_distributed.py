"""The stages on datatrove's executors give the very store that one process gives."""

from __future__ import annotations

import os
import stat
import sys
import textwrap
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
from st_paragram.tools.preparation.pipeline import Sizes

from st_paragram.core.text.parallel import TextSource, parse_source
from st_paragram.errors import MissingExtraError, ParagramError, SettingsError
from st_paragram.tools.embed_files import CollectionSettings, embed_collection
from st_paragram.tools.preparation.prepare import PrepareWork, prepare
from st_paragram.tools.preparation.settings import PrepareSettings
from st_paragram.tools.stages.distributed import Cluster, ClusterExecutor
from st_paragram.tools.stages.stage import Stage
from st_paragram.tools.stages.work import Work

Same = Callable[[Path, ClusterExecutor], None]

PLAIN = PrepareSettings(("en", "es"), vocab_size=120, character_coverage=1.0)
SIZES = Sizes(shard_rows=200, task_bytes=8000)


def text(path: Path) -> TextSource:
    rows = (f"the row number {i // 2}\tla fila que es el número {i // 3}\n" for i in range(900))
    path.write_text("".join(rows), encoding="utf-8", newline="\n")
    return parse_source(str(path), PLAIN.languages)


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def same_store(folder: Path, executor: ClusterExecutor) -> None:
    source = text(Path("a.tsv"))
    times = prepare([source], "cluster.h5", PLAIN, work=PrepareWork(executor=executor, sizes=SIZES)).times
    assert sum(each.tasks for each in times) > 20
    prepare([source], folder / "one.h5", PLAIN)
    assert (folder / "cluster.h5").read_bytes() == (folder / "one.h5").read_bytes()
    assert {path.name for path in folder.iterdir()} <= {"a.tsv", "one.h5", "cluster.h5", "logs", "bin"}


def same_vectors(folder: Path, executor: ClusterExecutor) -> None:
    texts = [folder / "a.txt", folder / "b.txt"]
    for number, path in enumerate(texts):
        path.write_text("".join(f"line {i} of text {number}\n" for i in range(700)), encoding="utf-8")
    settings = CollectionSettings(shard_lines=200, dtype="int8")
    embed_collection(texts, folder / "cluster", "p-sp-mini", settings, work=Work(executor=executor))
    embed_collection(texts, folder / "one", "p-sp-mini", settings)
    shards = sorted(path.name for path in (folder / "one").iterdir())
    assert sorted(path.name for path in (folder / "cluster").iterdir()) == shards and len(shards) > 8
    for name in shards:
        assert (folder / "cluster" / name).read_bytes() == (folder / "one" / name).read_bytes()


same_results = pytest.mark.parametrize("same", [same_store, same_vectors])


@pytest.mark.slow
@same_results
def test_several_processes_of_datatrove(tmp_path: Path, same: Same) -> None:
    pytest.importorskip("datatrove")
    same(tmp_path, ClusterExecutor(Cluster.LOCAL, tmp_path / "logs", ranks=3, workers=2))


@pytest.mark.slow
@same_results
def test_two_nodes_of_ray(tmp_path: Path, same: Same) -> None:
    pytest.importorskip("datatrove")
    ray = pytest.importorskip("ray")
    from ray.cluster_utils import Cluster as RayCluster

    node = {"num_cpus": 1, "object_store_memory": 80 * 2**20, "memory": 2**30}
    cluster = RayCluster(initialize_head=True, head_node_args={**node, "include_dashboard": False})
    try:
        cluster.add_node(**node)
        ray.init(address=cluster.address, log_to_driver=False, logging_level="ERROR")
        assert len(ray.nodes()) == 2
        options = {"mem_per_cpu_gb": 0.25}
        same(tmp_path, ClusterExecutor(Cluster.RAY, tmp_path / "logs", ranks=4, workers=2, options=options))
    finally:
        ray.shutdown()
        cluster.shutdown()


@pytest.mark.slow
@same_results
def test_a_queue_of_slurm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, same: Same) -> None:
    """A stand-in for Slurm: `sbatch` runs the tasks of an array one after another, `squeue` knows no jobs."""
    pytest.importorskip("datatrove")
    command(
        tmp_path / "bin" / "sbatch",
        r"""
        job="${!#}"
        last=$(sed -n 's/^#SBATCH --array=0-\([0-9]*\).*/\1/p' "$job")
        if ! grep -q merge_stats "$job"; then
            for task in $(seq 0 "$last"); do
                RUN_OFFSET=0 SLURM_NODELIST=here SLURM_ARRAY_TASK_ID=$task bash "$job" > "$0.$task.log" 2>&1
            done
        fi
        echo Submitted batch job 7
        """,
    )
    command(tmp_path / "bin" / "squeue", "true")
    command(tmp_path / "bin" / "scontrol", "echo here")
    command(tmp_path / "bin" / "srun", 'shift 3; exec "$@"')
    command(
        tmp_path / "bin" / "launch_pickled_pipeline",
        f'exec {sys.executable} -m datatrove.tools.launch_pickled_pipeline "$@"',
    )
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")
    options = {"partition": "cpu", "time": "1:00:00"}
    same(tmp_path, ClusterExecutor(Cluster.SLURM, tmp_path / "logs", ranks=2, options=options, poll=0.01))


def command(path: Path, script: str) -> None:
    path.parent.mkdir(exist_ok=True)
    path.write_text("#!/bin/bash\n" + textwrap.dedent(script).strip() + "\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)


@pytest.mark.slow
def test_refused_text_comes_out_as_one_line(tmp_path: Path) -> None:
    pytest.importorskip("datatrove")
    (tmp_path / "bad.tsv").write_text("one two three\tun deux trois\n" * 3 + "no tab here\n")
    source = parse_source(str(tmp_path / "bad.tsv"), PLAIN.languages)
    executor = ClusterExecutor(Cluster.LOCAL, tmp_path / "logs", ranks=2)
    with pytest.raises(ParagramError, match=r"bad\.tsv: row 4 has 1 column"):
        prepare([source], tmp_path / "s.h5", PLAIN, work=PrepareWork(executor=executor))
    assert not (tmp_path / "s.h5").exists()


@dataclass(frozen=True)
class Undone(Stage):
    """A stage whose tasks leave nothing."""

    name = "undone"
    pipe: bool = False

    def digests(self) -> list[str]:
        return ["any"]

    def results(self) -> list[Path]:
        return [self.folder() / str(task) for task in range(3)]

    def local(self, task: int) -> bool:
        return self.pipe

    def run(self, task: int) -> None:
        """Leave no marker."""


@pytest.mark.slow
def test_tasks_left_undone_are_told(tmp_path: Path) -> None:
    pytest.importorskip("datatrove")
    executor = ClusterExecutor(Cluster.LOCAL, tmp_path / "logs", workers=1)
    with pytest.raises(ParagramError, match="3 of 3 tasks of stage undone were not done; see "):
        executor.run([Undone(tmp_path)])
    with pytest.raises(ParagramError, match="a pipe can be read only on this machine"):
        executor.run([Undone(tmp_path, pipe=True)])


def test_settings_are_checked_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("datatrove")
    with pytest.raises(SettingsError, match="0 ranks"):
        ClusterExecutor(Cluster.LOCAL, tmp_path, ranks=0)
    with pytest.raises(SettingsError, match="Slurm needs time; give time="):
        ClusterExecutor(Cluster.SLURM, tmp_path, options={"partition": "cpu"})
    monkeypatch.setitem(sys.modules, "datatrove.executor.local", None)
    with pytest.raises(MissingExtraError, match=r'pip install "st_paragram\[distributed\]"'):
        ClusterExecutor(Cluster.LOCAL, tmp_path)
