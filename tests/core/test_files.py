"""Outputs: one run at a time, and what killed runs have left."""

from __future__ import annotations

import errno
import io
import os
import sys
import threading
import time
from functools import partial
from pathlib import Path

import pytest
from filelock import FileLock

from st_paragram.cli.main import run_reporting_errors
from st_paragram.core.files import atomic, is_full_disk, write_text
from st_paragram.core.folders import (
    _MARK,
    MARKER,
    atomic_folder,
    make_own_folder,
    remove_own_folder,
    remove_unfinished,
    scratch_folder,
)
from st_paragram.core.outputs import (
    check_different,
    check_output,
    check_output_folder,
    output_files,
    output_lock,
)
from st_paragram.errors import ParagramError


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def leave_behind(folder, *left):
    for name in left:
        if name.endswith("/"):
            (folder / name).mkdir()
            (folder / name / "torn").write_text("torn")
            (folder / name / MARKER).write_bytes(_MARK)
        else:
            (folder / name).write_text("torn")


def test_an_output_is_one_runs(tmp_path):
    output = tmp_path / "x.npy"
    with FileLock(tmp_path / ".x.npy.lock"):  # as another process would have it
        leave_behind(tmp_path, ".x.npy.0123456789ab.part")
        with pytest.raises(ParagramError) as caught, output_lock(output):
            pass
        assert (
            str(caught.value)
            == f"another run is writing {output}; wait for it, or name another output"
        )
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

    with (
        pytest.raises(ParagramError, match="exists; choose another name"),
        output_lock(output, check),
    ):
        write_text(output, "overwritten")
    assert output.read_text() == "finished" and names(tmp_path) == ["x"]


def test_what_killed_runs_have_left_goes(tmp_path):
    mine = [".x.0123456789ab.part", ".x.ab0123456789.part/"]
    others = [".xx.0123456789ab.part", ".x.y.0123456789ab.part", "x.part", ".x.part", ".x.work/"]
    leave_behind(tmp_path, *mine, *others)
    of_the_user = tmp_path / ".x.aa0123456789.part"
    of_the_user.mkdir()
    (of_the_user / "precious").touch()
    # of runs killed before they wrote the marker
    for name in (".x.bb0123456789.part", ".x.cc0123456789.part"):
        (tmp_path / name).mkdir()
    (tmp_path / name / MARKER).touch()
    with output_lock(tmp_path / "x"):
        assert names(tmp_path) == sorted(
            [".x.lock", of_the_user.name, *(name.rstrip("/") for name in others)]
        )
    remove_unfinished(tmp_path)
    assert names(tmp_path) == sorted(["x.part", ".x.part", ".x.work", of_the_user.name])
    assert names(of_the_user) == ["precious"]


def test_a_folder_takes_its_name_whole(tmp_path):
    path = tmp_path / "m"
    with atomic_folder(path) as new:
        leave_behind(tmp_path, new.relative_to(tmp_path).as_posix() + "/")
        assert not path.exists()
    assert names(path) == [MARKER, "torn"]
    with atomic_folder(path) as new:
        new.mkdir()
    assert names(tmp_path) == ["m"] and names(path) == []


def test_a_folder_whose_run_was_killed_while_it_was_replaced_comes_back(tmp_path):
    (tmp_path / ".m.0123456789ab.part" / "old").mkdir(parents=True)
    (tmp_path / ".m.0123456789ab.part" / "old" / "precious").touch()
    with output_lock(tmp_path / "m"):
        assert (tmp_path / "m" / "precious").exists()
    assert names(tmp_path) == ["m"] and names(tmp_path / "m") == ["precious"]


def test_only_folders_with_our_marker_are_removed(tmp_path):
    ours, link = tmp_path / "ours", tmp_path / "link"
    make_own_folder(ours)
    make_own_folder(ours)  # as the next run does
    (ours / "deep").mkdir()
    (ours / "deep" / "file").touch()
    of_the_user = tmp_path / "of the user"
    of_the_user.mkdir()
    (of_the_user / "precious").touch()
    (ours / "link").symlink_to(of_the_user)
    link.symlink_to(ours)
    for path in (of_the_user, link, of_the_user / "precious"):
        with pytest.raises(
            ParagramError, match=f"{path} exists, and this version of st_paragram did not make it"
        ):
            make_own_folder(path)
        remove_own_folder(path)
    remove_own_folder(ours)
    assert names(tmp_path) == ["link", "of the user"] and names(of_the_user) == ["precious"]


def test_a_lock_is_no_file_of_the_user(tmp_path):
    (tmp_path / ".x.lock").write_text("mine")
    with (
        pytest.raises(ParagramError, match=r"\.x\.lock exists and is not a lock of st_paragram"),
        output_lock(tmp_path / "x"),
    ):
        pass
    assert (tmp_path / ".x.lock").read_text() == "mine"


@pytest.mark.parametrize(
    ("marker", "own", "foreign"),
    [
        (
            "st_paragram.json",
            ["README.md", "1_MeanPool/mean_pool_config.json", "word.model"],
            "notes.txt",
        ),
        ("st_paragram.json", ["model.safetensors", "training.json"], "1_MeanPool/scores.json"),
        (
            "st_paragram.json",
            ["model.safetensors", "0_Router/query_0_MeanPool/config.json"],
            "int8/st_paragram.json",
        ),
        (
            "st_paragram.json",
            ["0_SideBySide/psp/modules.json", "decoders/model.safetensors"],
            "my_config_of_life.json",
        ),
        (
            "st_paragram.json",
            ["language-en/0_TokenEmbedding/model.safetensors"],
            "backup/model.safetensors",
        ),
        ("embeddings.json", ["shard-00000.npy"], "matrix.npy"),
        ("sentences.lance", ["sentences.lance/data/0.lance", "in-use.lock"], ".git/config"),
    ],
)
def test_a_folder_with_files_of_the_user_is_not_replaced(tmp_path, marker, own, foreign):
    output = tmp_path / "out"
    for name in (*own, *([marker] if "/" not in own[0] or "json" in marker else [])):
        (output / name).parent.mkdir(parents=True, exist_ok=True)
        (output / name).touch()
    check_output_folder(output, True, marker, "model")
    (output / foreign).parent.mkdir(exist_ok=True)
    (output / foreign).touch()
    with pytest.raises(
        ParagramError, match=f"out has files that are not of a model, such as {foreign}; move them"
    ):
        check_output_folder(output, True, marker, "model")


@pytest.mark.parametrize(
    "error",
    [
        OSError(errno.ENOSPC, "No space left on device"),
        OSError("32768 requested and 1000 written"),  # numpy's
        RuntimeError("lance error: LanceError(IO): No space left on device (os error 28)"),
        OSError(errno.EFBIG, "File too large"),
    ],
)
def test_a_full_disk_is_named(tmp_path, error):
    with (
        pytest.raises(OSError, match=r"No space left|File too large") as caught,
        atomic(tmp_path / "x"),
    ):
        raise error
    assert caught.value.filename == str(tmp_path / "x") and is_full_disk(caught.value)
    with (
        pytest.raises(OSError, match="No space left") as caught,
        atomic_folder(tmp_path / "y") as new,
    ):
        raise OSError(errno.ENOSPC, "No space left on device", str(new / "weights"))
    assert caught.value.filename == str(tmp_path / "y")
    with pytest.raises(OSError, match="No space left") as caught, atomic(tmp_path / "x"):
        raise OSError(errno.ENOSPC, "No space left on device", "elsewhere/z")
    assert caught.value.filename == "elsewhere/z"
    with pytest.raises(ValueError, match="another"), atomic(tmp_path / "x"):
        raise ValueError("another")
    assert not names(tmp_path)


def test_a_full_disk_of_temporary_files_is_named(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with pytest.raises(OSError, match="No space left") as caught, scratch_folder() as folder:
        assert folder.parent == tmp_path
        raise OSError(errno.ENOSPC, "No space left on device")
    assert caught.value.filename == str(tmp_path) and not names(tmp_path)


def test_a_full_standard_output_is_named(capsys, monkeypatch):
    class Full(io.StringIO):
        def flush(self):
            raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr("sys.stdout", Full())
        assert run_reporting_errors("a", lambda: 0) == 1
    assert capsys.readouterr().err == (
        "a: standard output: No space left on device; free disk space\n"
    )


@pytest.mark.parametrize(
    "check", [check_output, partial(check_output_folder, marker="x", kind="y")]
)
def test_outputs_are_refused_where_nothing_can_be_created(check, tmp_path, monkeypatch):
    check(tmp_path / "new" / "x", overwrite=False)
    with pytest.raises(ParagramError, match=r"/no: no such folder; create it, or correct the path"):
        check(tmp_path / "no" / "such" / "x", overwrite=False)
    if sys.platform == "linux":
        with pytest.raises(ParagramError, match=r"^/proc is not writable .*; choose another place"):
            check(Path("/proc/x"), overwrite=False)
    assert not names(tmp_path)


def test_a_device_is_not_an_output_folder():
    with pytest.raises(ParagramError, match=f"{os.devnull} is a file, but a folder is expected"):
        check_output_folder(Path(os.devnull), overwrite=True, marker="x", kind="y")


def test_a_run_that_waits_says_for_what(tmp_path, caplog):
    output, taken = tmp_path / "x", threading.Event()

    def other():
        with FileLock(tmp_path / ".x.lock"):
            taken.set()
            time.sleep(0.2)

    thread = threading.Thread(target=other)
    thread.start()
    assert taken.wait(10)
    with output_lock(output, wait=True):
        pass
    thread.join()
    assert caplog.messages == [f"waiting for another run: another run is writing {output}"]


def test_links_to_nothing_are_not_replaced(tmp_path):
    link = tmp_path / "link"
    link.symlink_to(tmp_path / "nowhere")
    with pytest.raises(ParagramError, match="link is a link to a file that does not exist"):
        check_output(link, overwrite=False)
    with pytest.raises(ParagramError, match="link is a link to a folder that does not exist"):
        check_output_folder(link, False, "st_paragram.json", "model")


def test_empty_folders_of_the_user_stay(tmp_path):
    (tmp_path / "out/empty").mkdir(parents=True)
    (tmp_path / "out/st_paragram.json").touch()
    with pytest.raises(ParagramError, match="has files that are not of a model, such as empty"):
        check_output_folder(tmp_path / "out", True, "st_paragram.json", "model")


def test_one_file_for_two_outputs_is_refused(tmp_path):
    (tmp_path / "folder").mkdir()
    (tmp_path / "link").symlink_to("folder")
    (tmp_path / "circle").symlink_to("circle")
    outputs = [tmp_path / "folder" / "a", tmp_path / "link" / "a"]
    with pytest.raises(ParagramError, match="same file"), output_files(*outputs, overwrite=True):
        pass
    check_different([tmp_path / "circle", *outputs[:1]], ["-", tmp_path / "link" / "b"])
