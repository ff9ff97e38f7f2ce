"""The Makefile replaces and removes only folders that it created."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

MAKEFILE = Path(__file__).parents[1] / "Makefile"
pytestmark = pytest.mark.skipif(shutil.which("make") is None, reason="make is not installed")


def make(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    command = ["make", "--silent", "--file", str(MAKEFILE), *words]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


def files(folder: Path) -> set[str]:
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*") if not path.is_dir()}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with an installation of programs that do nothing."""
    (tmp_path / "bin").mkdir()
    for name in ("python", "st-paragram", "mkdocs"):
        program = tmp_path / "bin" / name
        program.write_text("#!/bin/sh\n")
        program.chmod(0o755)
    for name in (".torch", ".installed", ".installed-docs"):
        (tmp_path / name).touch()
    return tmp_path


OPTIONS = ("VENV=.", "SOURCES=")  # the folder itself serves as the environment


@pytest.mark.parametrize(("goal", "output"), [("demo", "demo"), ("docs", "site")])
def test_a_folder_of_the_user_is_not_replaced(folder: Path, goal: str, output: str) -> None:
    (folder / output).mkdir()
    (folder / output / "precious").touch()
    run = make(folder, goal, *OPTIONS)
    assert (
        run.returncode
        and f"{output} exists and make did not create it; move it elsewhere" in run.stderr
    )
    assert files(folder / output) == {"precious"}
    shutil.rmtree(folder / output)
    for _ in range(2):
        assert make(folder, goal, *OPTIONS).returncode == 0
    assert files(folder / output) == {".made-by-make"}


@pytest.mark.parametrize("has_cuda", [True, False])
def test_installation_shows_its_progress_and_its_size(folder: Path, has_cuda: bool) -> None:
    (folder / "bin/pip").write_text('#!/bin/sh\necho "pip $@"\n')
    (folder / "bin/pip").chmod(0o755)
    (folder / "bin/python").write_text("#!/bin/sh\necho 2.9.1\n")
    libraries = folder / "lib/python3.11/site-packages"
    (libraries / ("nvidia" if has_cuda else "numpy")).mkdir(parents=True)
    run = make(folder, "install", *OPTIONS)
    assert run.returncode == 0, run.stderr
    first, *report = run.stdout.splitlines()
    assert first.startswith("pip install ") and first.endswith(" --editable .[dev]")
    assert "quiet" not in first
    assert re.fullmatch(r"\.: torch 2\.9\.1; [\d.]+[KM] in all", report[0])
    assert ("make install TORCH_INDEX=" in run.stdout) == has_cuda


def test_clean_removes_only_what_make_created(folder: Path) -> None:
    own = (
        "demo/.made-by-make",
        "demo/p-sp-es/model",
        "build/lib.linux/x.so",
        "dist/st_paragram-1.whl",
        ".venv/.torch",
    )
    precious = {
        "site/page",
        "build/notes",
        "dist/thesis.pdf",
        ".venv/bin/python",
        "other.egg-info/x",
        "elsewhere/x",
    }
    for name in (*own, *precious):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).touch()
    before = files(folder)
    assert make(folder, "clean").returncode == 0
    assert files(folder) == before - set(own[:-1])
    (folder / "demo").symlink_to("elsewhere")
    assert make(folder, "clean").returncode == 0 and (folder / "elsewhere" / "x").exists()
