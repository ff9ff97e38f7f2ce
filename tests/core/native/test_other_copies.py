"""Python started in a clone without kernels uses those of the installed package, if they fit its sources."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from st_paragram.core import native
from st_paragram.core.native.sources import sources_mark

PACKAGE = Path(native.__file__).parents[2]


@pytest.fixture
def clone(tmp_path):
    """A clone in which nothing is compiled."""
    package = tmp_path / "clone" / "st_paragram"
    for real in (package, package / "core"):
        real.mkdir(parents=True)
        for path in (PACKAGE / real.relative_to(package)).iterdir():
            if path.name not in ("core", "native", "__pycache__"):
                (real / path.name).symlink_to(path)
    leave = shutil.ignore_patterns("_kernels*", "__pycache__")
    shutil.copytree(PACKAGE / "core" / "native", package / "core" / "native", ignore=leave)
    (tmp_path / "clone" / "setup.py").touch()
    return tmp_path / "clone"


@pytest.fixture
def site(tmp_path):
    """Another folder on Python's path, with kernels of these sources."""
    if native.kernels() is None or sources_mark().encode() not in Path(native.kernels().__file__).read_bytes():
        pytest.skip("kernels that were built from these sources are not here")
    folder = tmp_path / "site" / "st_paragram" / "core" / "native"
    folder.mkdir(parents=True)
    shutil.copy(native.kernels().__file__, folder)
    return tmp_path / "site"


def report(clone: Path, *path: Path, module: str = "st_paragram.core.native") -> tuple[int, str]:
    """Status and output of the report on kernels, for a Python that was started in the clone."""
    environment = {name: value for name, value in os.environ.items() if name != native.SWITCH}
    environment["PYTHONPATH"] = os.pathsep.join(map(str, path))
    command = [sys.executable, "-m", module]
    done = subprocess.run(command, cwd=clone, env=environment, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout + done.stderr


def test_kernels_of_the_same_sources_are_used(clone, site):
    status, said = report(clone, site)
    assert status == 0 and f"Their file is {site.resolve()}" in said


def test_kernels_of_other_sources_are_not_loaded(clone, site):
    with (clone / "st_paragram/core/native/src/loops.h").open("a") as header:
        header.write("// changed\n")
    status, said = report(clone, site)
    assert status == 1
    assert f"Python imports st_paragram from {clone}, where they are not compiled" in said
    assert f"and those of {site} were built from other sources" in said
    assert "Start Python in another folder to use the installed package, or" in said
    assert f"--editable {clone}" in said and "compiler was found" not in said


def test_damaged_kernels_are_not_used(clone, site):
    (kernels,) = (site / "st_paragram/core/native").iterdir()
    kernels.write_bytes(f"no library, {sources_mark()}".encode())
    assert report(clone, site)[0] == 1


def test_an_installed_package_takes_no_others_kernels(clone, site):
    (clone / "setup.py").unlink()
    shutil.rmtree(clone / "st_paragram/core/native/src")
    status, said = report(clone, site)
    assert status == 1 and "missing: they were not built when st_paragram was installed" in said


def test_a_clone_alone_says_where_python_is(clone):
    status, said = report(clone)
    assert status == 1 and f"from {clone}, where they are not compiled.\n" in said and "other sources" not in said


def test_the_mark_depends_on_names_and_contents_but_not_on_line_ends(tmp_path):
    assert sources_mark(tmp_path) is None
    (tmp_path / "a.cpp").write_bytes(b"one\ntwo\n")
    first = sources_mark(tmp_path)
    (tmp_path / "notes.txt").write_bytes(b"not compiled")
    (tmp_path / "a.cpp").write_bytes(b"one\r\ntwo\r\n")
    assert sources_mark(tmp_path) == first and len(first) == 72
    (tmp_path / "a.cpp").rename(tmp_path / "b.cpp")
    assert sources_mark(tmp_path) != first
