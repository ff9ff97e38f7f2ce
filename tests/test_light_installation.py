"""The light installation runs what docs/without_torch.md promises, with `requirements-light.txt`
alone.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import st_paragram

ROOT = Path(__file__).parents[1]
SOURCES = (
    "setup.cfg",
    "setup.py",
    "pyproject.toml",
    "PACKAGE.md",
    "LICENSE",
    "LICENSE-MODELS",
    "requirements-light.txt",
)

pytestmark = pytest.mark.slow


def build_wheel(folder: Path) -> Path:
    """A wheel of the sources with the kernels that are built here, as it would be built from a
    clone.
    """
    sources = folder / "sources"
    shutil.copytree(
        ROOT / "st_paragram",
        sources / "st_paragram",
        ignore=shutil.ignore_patterns("__pycache__", "*.so"),
    )
    for name in SOURCES:
        shutil.copy(ROOT / name, sources / name)
    command = [
        sys.executable,
        "-m",
        "pip",
        "wheel",
        "--quiet",
        "--no-deps",
        "--no-build-isolation",
        "--no-index",
    ]
    without_compiler = os.environ | {"CC": "/nowhere", "CXX": "/nowhere"}
    subprocess.run(
        [*command, "--wheel-dir", ".", "./sources"], cwd=folder, check=True, env=without_compiler
    )
    (wheel,) = folder.glob("*.whl")
    assert wheel.stat().st_size < 95_000_000  # with the models
    return wheel


@pytest.fixture(scope="module")
def environment(tmp_path_factory):
    """Its folder of programs; skips where no package registry can be reached."""
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("PYTHONPATH", raising=False)  # it would lead to these sources
        yield installed(tmp_path_factory)


def installed(tmp_path_factory):
    folder = tmp_path_factory.mktemp("light")
    wheel = build_wheel(folder)
    subprocess.run([sys.executable, "-m", "venv", folder / "env"], check=True)
    programs = folder / "env" / ("Scripts" if os.name == "nt" else "bin")
    pip = [programs / "python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    done = subprocess.run(
        [*pip, "-r", ROOT / "requirements-light.txt"], capture_output=True, text=True, check=False
    )
    if done.returncode and "No matching distribution" in done.stderr:
        pytest.skip(f"no package registry here: {done.stderr.splitlines()[-1]}")
    assert done.returncode == 0, done.stderr
    subprocess.run([*pip, "--no-deps", wheel], check=True)
    where = "import pathlib, st_paragram; print(pathlib.Path(st_paragram.__file__).parent)"
    package = Path(
        subprocess.check_output([programs / "python", "-c", where], cwd=folder, text=True).strip()
    )
    for kernels in (ROOT / "st_paragram/core/native").glob("_kernels*"):
        shutil.copy(kernels, package / "core" / "native")
    return programs


@pytest.fixture
def run(environment, tmp_path):
    def run(*arguments):
        command = [environment / "st-paragram", *map(str, arguments)]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout

    return run


def test_it_has_none_of_the_heavy_packages(environment):
    listed = (
        subprocess.check_output([environment / "python", "-m", "pip", "list"], text=True)
        .lower()
        .split()
    )
    assert not {
        "torch",
        "transformers",
        "sentence-transformers",
        "scipy",
        "scikit-learn",
        "pandas",
    } & set(listed)


def test_commands(run, tmp_path, pairs):
    for side, name in enumerate(("en", "es")):
        (tmp_path / name).write_text("".join(f"{pair[side]}\n" for pair in pairs[:40]))
    run("embed", "en", "--output", "en.npy")
    expected = st_paragram.load("p-sp-mini", device="cpu").encode([one for one, _ in pairs[:40]])
    np.testing.assert_array_equal(np.load(tmp_path / "en.npy"), expected)
    run("mine", "--source", "en", "--target", "es", "--output", "mined.tsv")
    assert (
        pairs[3][1] in run("search", "es", pairs[3][1], "-k", "1")
        and (tmp_path / "mined.tsv").read_text()
    )


def test_copies(run, tmp_path):
    run("get", "p-sp-mini")
    run("export", "p-sp-mini", "small", "--dtype", "float16", "--dim", "100")
    assert "all numbers finite" in run("info", "small", "--check")
    assert st_paragram.load(tmp_path / "small", device="cpu").get_embedding_dimension() == 100


def test_what_needs_more_says_so(environment, tmp_path):
    command = [environment / "st-paragram", "train", "bitext", "--lang", "es"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 1 and len(done.stderr.strip().splitlines()) == 1, done.stderr
    assert "torch is not installed (the light installation leaves it out)" in done.stderr
    script = "import st_paragram; st_paragram.load('p-sp-mini')"
    done = subprocess.run(
        [environment / "python", "-c", script], capture_output=True, text=True, check=False
    )
    assert "MissingNameError: st_paragram.load: torch is not installed" in done.stderr
