"""Folders and digests of stages, what is forgotten, and the folder they work in."""

from dataclasses import dataclass
from pathlib import Path

import pytest
from filelock import FileLock

from st_paragram.core.files import digest, locked
from st_paragram.errors import ParagramError, SettingsError, StoreError
from st_paragram.tools.stages.executors import LocalExecutor
from st_paragram.tools.stages.metadata import metadata_file, output_state, read_metadata, write_metadata, written_before
from st_paragram.tools.stages.stage import Stage, forget
from st_paragram.tools.stages.work import Work, prune, work_folder


@dataclass(frozen=True)
class Letters(Stage):
    """A task writes a letter of a word; the words are the parts."""

    name = "letters"
    words: tuple[str, ...]

    def digests(self):
        return [digest(word) for word in self.words]

    def results(self):
        return [self.folder(part) / letter for part, word in enumerate(self.words) for letter in word]

    def run(self, task):
        path = self.results()[task]
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(path.name)
        write_metadata(path, {"part": self.part_of(path)})


@dataclass(frozen=True)
class Later(Letters):
    name = "later"


def files(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


def test_results_stand_by_stage_and_digest_of_their_part(tmp_path):
    stage = Letters(tmp_path, ("ab", "c"))
    first, second = (tmp_path / "letters" / digest(word) for word in ("ab", "c"))
    assert stage.folders == {first, second}
    assert (stage.folder(), stage.folder(1)) == (first, second)
    assert [stage.part_of(path) for path in stage.results()] == [0, 0, 1]
    assert stage.pending() == [0, 1, 2]
    stage.run(1)
    assert stage.pending() == [0, 2]
    metadata_file(stage.results()[1]).unlink()
    assert stage.pending() == [0, 1, 2]  # a result without its metadata is not done


def test_a_stage_and_those_after_it_are_forgotten(tmp_path):
    stages = [Letters(tmp_path, ("a",)), Later(tmp_path, ("a",))]

    def all_done():
        Work(executor=LocalExecutor()).run([*stages, Later(tmp_path, ("b",))])

    all_done()
    forget(stages, "later")
    assert files(tmp_path) == [f"letters/{digest('a')}/a", f"letters/{digest('a')}/a.json"]
    all_done()
    times = Work(force="letters").run(stages)
    assert [(each.name, each.tasks) for each in times] == [("letters", 1), ("later", 1)]
    with pytest.raises(SettingsError, match="no stage 'latest'; there are letters, later"):
        forget(stages, "latest")


def test_what_is_of_others_is_removed(tmp_path):
    kept, other = Letters(tmp_path, ("a", "b")), Letters(tmp_path, ("c",))
    Work().run([kept, other])
    prune(tmp_path, kept.folders)
    assert {path.name for path in (tmp_path / "letters").iterdir()} == {digest("a"), digest("b")}


def test_what_is_no_result_stays_whatever_is_removed(tmp_path):
    """Somebody may name a folder of theirs to work in."""
    stage = Letters(tmp_path, ("a",))
    theirs = [tmp_path / "data" / "raw" / "corpus.txt", tmp_path / "letters" / "to-mother" / "1.txt"]
    for path in theirs:
        path.parent.mkdir(parents=True)
        path.write_text("precious")
    with work_folder(Work(tmp_path, keep=True, force="letters"), tmp_path / "out"):
        Work(force="letters").run([stage])
        prune(tmp_path, stage.folders)
    assert all(path.read_text() == "precious" for path in theirs)


def test_what_killed_tasks_have_left_is_removed(tmp_path):
    stage = Letters(tmp_path, ("a",))
    Work().run([stage])
    done = files(tmp_path)
    for place in (stage.folder(), stage.folder() / "deep"):
        place.mkdir(exist_ok=True)
        (place / ".a.0123456789ab.part").write_text("torn")
    prune(tmp_path, stage.folders)
    assert files(tmp_path) == done


def test_metadata_that_cannot_be_read_say_what_to_do(tmp_path):
    with pytest.raises(StoreError, match=r"x\.json: not readable .*; remove its folder and start again"):
        read_metadata(tmp_path / "x")
    (tmp_path / "x.json").write_text("{")
    with pytest.raises(StoreError, match="not readable"):
        read_metadata(tmp_path / "x")


def test_an_output_is_known_by_size_and_time(tmp_path):
    output, result = tmp_path / "out", tmp_path / "result"
    assert not written_before(result, output)
    output.write_text("one")
    write_metadata(result, {"output": output_state(output)})
    assert written_before(result, output)
    output.write_text("other")
    assert not written_before(result, output)
    output.unlink()
    assert not written_before(result, output)


def run_in_folder(work: Work, output: Path, error: BaseException | None = None) -> None:
    with work_folder(work, output) as folder:
        (folder / "done").write_text("")
        if error:
            raise error


@pytest.mark.parametrize(
    ("error", "raised", "stays"),
    [
        (None, None, False),
        (ParagramError("refused"), ParagramError, False),
        (OSError(28, "No space left"), OSError, True),
        (KeyboardInterrupt(), KeyboardInterrupt, True),
        (ValueError("odd"), ValueError, True),
    ],
)
def test_the_work_folder_stays_where_there_is_work_to_save(tmp_path, error, raised, stays):
    output = tmp_path / "out"
    if raised is None:
        run_in_folder(Work(), output)
    else:
        with pytest.raises(raised):
            run_in_folder(Work(), output, error)
    assert (tmp_path / ".out.work" / "done").exists() == stays
    with pytest.raises(raised or ParagramError):
        run_in_folder(Work(tmp_path / "kept", keep=True), output, error or ParagramError("refused"))
    assert (tmp_path / "kept" / "done").exists()


def test_a_work_folder_is_one_runs(tmp_path):
    with (
        locked(tmp_path / ".out.work"),
        pytest.raises(ParagramError, match="another run is using it"),
        work_folder(Work(), tmp_path / "out"),
    ):
        pass
    assert (tmp_path / ".out.work").is_dir()


def test_an_output_is_one_runs_whatever_folders_they_work_in(tmp_path):
    seen = []
    with (
        FileLock(tmp_path / ".out.lock"),
        pytest.raises(ParagramError, match=r"another run is writing .*out; wait for it"),
        work_folder(Work(tmp_path / "other", keep=True), tmp_path / "out") as folder,
    ):
        seen.append(folder)
    assert not seen


def test_workers_are_those_of_the_executor():
    @dataclass(frozen=True)
    class Cluster:
        workers: int = -1

        def run(self, stages):
            return []

    assert [Work(executor=each).workers for each in (None, LocalExecutor(3), Cluster(), Cluster(5))] == [1, 3, 1, 5]
