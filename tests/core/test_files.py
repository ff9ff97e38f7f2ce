"""Outputs: one run at a time, and what killed runs have left."""

from __future__ import annotations

import pytest
from filelock import FileLock

from st_paragram.core.files import atomic_folder, check_output, output_lock, remove_unfinished, write_text
from st_paragram.errors import ParagramError


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def leave_behind(folder, *left):
    for name in left:
        if name.endswith("/"):
            (folder / name).mkdir()
            (folder / name / "torn").write_text("torn")
        else:
            (folder / name).write_text("torn")


def test_an_output_is_one_runs(tmp_path):
    output = tmp_path / "x.npy"
    with FileLock(tmp_path / ".x.npy.lock"):  # as another process would have it
        leave_behind(tmp_path, ".x.npy.0123456789ab.part")
        with pytest.raises(ParagramError) as caught, output_lock(output):
            pass
        assert str(caught.value) == f"another run is writing {output}; wait for it, or name another output"
        assert ".x.npy.0123456789ab.part" in names(tmp_path)  # it is the other's
    with output_lock(output), pytest.raises(TimeoutError):
        FileLock(tmp_path / ".x.npy.lock", timeout=0).acquire()


def test_what_another_run_has_made_meanwhile_is_not_replaced(tmp_path):
    output, asked = tmp_path / "x", []

    def check():
        if asked:
            output.write_text("finished")
        asked.append(output)
        check_output(output, overwrite=False)

    with pytest.raises(ParagramError, match="exists; choose another name"), output_lock(output, check):
        write_text(output, "overwritten")
    assert output.read_text() == "finished" and names(tmp_path) == ["x"]


def test_what_killed_runs_have_left_goes(tmp_path):
    mine = [".x.0123456789ab.part", ".x.ab0123456789.part/"]
    others = [".xx.0123456789ab.part", ".x.y.0123456789ab.part", "x.part", ".x.part", ".x.work/"]
    leave_behind(tmp_path, *mine, *others)
    with output_lock(tmp_path / "x"):
        assert names(tmp_path) == sorted([".x.lock", *(name.rstrip("/") for name in others)])
    remove_unfinished(tmp_path)
    assert names(tmp_path) == sorted(["x.part", ".x.part", ".x.work"])


def test_a_folder_takes_its_name_whole(tmp_path):
    path = tmp_path / "m"
    with atomic_folder(path) as new:
        leave_behind(tmp_path, new.relative_to(tmp_path).as_posix() + "/")
        assert not path.exists()
    assert names(path) == ["torn"]
    with atomic_folder(path) as new:
        new.mkdir()
    assert names(tmp_path) == ["m"] and names(path) == []


def test_a_folder_whose_run_was_killed_while_it_was_replaced_comes_back(tmp_path):
    (tmp_path / ".m.0123456789ab.part" / "old").mkdir(parents=True)
    (tmp_path / ".m.0123456789ab.part" / "old" / "precious").touch()
    with output_lock(tmp_path / "m"):
        assert (tmp_path / "m" / "precious").exists()
    assert names(tmp_path) == ["m"] and names(tmp_path / "m") == ["precious"]
