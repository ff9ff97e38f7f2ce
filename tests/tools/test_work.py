"""Work folders, and worker processes: failures in them, and their end with their parent."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from itertools import count
from pathlib import Path

import pytest

from st_paragram.errors import ParagramError, SettingsError, StoreError
from st_paragram.tools.work import in_processes, make, work_folder

PARENT = """
import os, signal, time
from st_paragram.tools.work import in_processes

def work(item):
    if item:
        time.sleep(600)
    return os.getpid()

if __name__ == "__main__":
    with in_processes(work, 2) as results:
        for process in results(iter([0, 0, 0, 0, 0, 1])):
            print(process, flush=True)
            os.kill(os.getpid(), signal.SIGKILL)
"""


def half(number: int) -> float:
    """Work for another process: 1 kills it, 0 divides."""
    if number == 1:
        os._exit(1)
    return 1 / number


@pytest.mark.parametrize("workers", [1, 2])
def test_results_come_in_order_and_errors_out(workers: int) -> None:
    with in_processes(half, workers) as results:
        for _ in range(2):
            assert list(results(iter([2, 4, 8, 16, 32, 64, 128]))) == [2.0**-n for n in range(1, 8)]
    with pytest.raises(ZeroDivisionError), in_processes(half, workers) as results:
        list(results([2, 0]))
    with pytest.raises(SettingsError, match="workers is 0"), in_processes(half, 0):
        pass


def test_endless_items_are_not_all_taken() -> None:
    with in_processes(half, 2) as results:
        assert [each for each, _ in zip(results(count(2)), range(3), strict=False)] == [
            1 / 2,
            1 / 3,
            1 / 4,
        ]


def test_a_dead_worker_is_reported() -> None:
    with pytest.raises(ParagramError, match="use fewer workers"), in_processes(half, 2) as results:
        list(results([1, 2, 3]))


@pytest.mark.skipif(not Path("/proc").is_dir(), reason="looks at /proc")
def test_workers_end_with_a_process_that_was_killed(tmp_path: Path) -> None:
    (tmp_path / "parent.py").write_text(PARENT)
    parent = subprocess.run(
        [sys.executable, tmp_path / "parent.py"], capture_output=True, text=True, check=False
    )
    worker = int(parent.stdout)
    end = time.monotonic() + 20
    while _alive(worker) and time.monotonic() < end:
        time.sleep(0.1)
    assert not _alive(worker)


ERRORS = (
    (None, False),
    (ParagramError("refused"), False),
    (SettingsError("another setting helps"), True),
    (OSError("full"), True),
    (StoreError("no space left on the disk"), True),
)


@pytest.mark.parametrize(("error", "stays"), ERRORS)
@pytest.mark.parametrize("named", [True, False])
def test_a_work_folder_stays_only_where_something_can_come_of_it(
    tmp_path: Path, error: Exception | None, stays: bool, named: bool
) -> None:
    work = tmp_path / "work"
    work.mkdir()
    (work / "precious").touch()
    output = tmp_path / "out"
    try:
        with work_folder(output, folder=work if named else None) as folder:
            (folder / "file").write_text("work")
            if error:
                raise error
    except (ParagramError, OSError):
        pass
    assert folder.exists() is stays
    assert folder.parent == (work if named else tmp_path)
    assert sorted(tmp_path.rglob("precious")) == [work / "precious"]
    hidden = [path.name for path in tmp_path.iterdir() if path.name.startswith(".")]
    assert hidden == ([] if named or not stays else [".out.work"])


def test_a_work_folder_without_work_goes_after_an_error_of_a_setting(tmp_path: Path) -> None:
    with pytest.raises(SettingsError), work_folder(tmp_path / "out") as folder:
        raise SettingsError("at once")
    assert not folder.exists()


def test_outputs_of_one_name_have_separate_work(tmp_path: Path) -> None:
    with (
        work_folder(tmp_path / "a" / "x", folder=tmp_path) as one,
        work_folder(tmp_path / "b" / "x", folder=tmp_path) as two,
    ):
        assert one != two and one.parent == two.parent == tmp_path
    with work_folder(tmp_path / "a" / "x", folder=tmp_path) as again:
        assert again == one


def test_a_folder_of_the_user_does_not_serve_as_work_folder(tmp_path: Path) -> None:
    precious, link = tmp_path / ".out.work" / "precious", tmp_path / ".y.work"
    precious.parent.mkdir()
    precious.touch()
    link.symlink_to(precious.parent)
    for name in ("out", "y"):
        with (
            pytest.raises(ParagramError, match=r"\.work exists, and this version"),
            work_folder(tmp_path / name),
        ):
            pass
    with (
        pytest.raises(ParagramError, match="precious is a file"),
        work_folder(tmp_path / "z", folder=precious),
    ):
        pass
    assert (
        sorted(path.name for path in tmp_path.iterdir()) == [".out.work", ".y.work"]
        and precious.exists()
    )


def test_a_part_that_is_not_ours_is_not_removed(tmp_path: Path) -> None:
    precious = tmp_path / ".x.npy.part" / "precious"
    precious.parent.mkdir()
    precious.touch()
    with pytest.raises(ParagramError, match="did not make it"):
        make(tmp_path / "x.npy", lambda path: path.touch())
    assert precious.exists()
    assert make(tmp_path / "y.npy", lambda path: path.touch()).exists()
    assert sorted(path.name for path in tmp_path.iterdir()) == [".x.npy.part", "y.npy"]


def _alive(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_text().split()[2] not in "ZX"
    except FileNotFoundError:
        return False
