"""What is said about missing kernels, and the command that brings them."""

from __future__ import annotations

import json
import logging
import os
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

from st_paragram.core import installation as core_installation
from st_paragram.core import native
from st_paragram.core.native import __main__ as command
from st_paragram.core.native import installation

ROOT = Path(__file__).parents[3]
INSTALL = "pip install --force-reinstall --no-deps --no-cache-dir "


@pytest.fixture
def missing(monkeypatch):
    """An installation without kernels."""
    monkeypatch.delenv(native.SWITCH, raising=False)
    monkeypatch.setitem(sys.modules, "st_paragram.core.native._kernels", None)
    monkeypatch.setattr(native, "kernels", native.kernels.__wrapped__)
    monkeypatch.setattr(installation.shutil, "which", lambda name: f"/usr/bin/{name}")


class Distribution:
    def __init__(self, record):
        self._record = record

    def read_text(self, name):
        return self._record if name == "direct_url.json" else None


@pytest.mark.parametrize(
    ("record", "origin"),
    [
        (None, "--no-binary st_paragram st_paragram"),
        ("no JSON", "--no-binary st_paragram st_paragram"),
        ({"url": "file:///home/me/st_paragram-0.1.0-py3-none-any.whl"}, "--no-binary st_paragram st_paragram"),
        ({"url": "file:///home/me/my%20tree", "dir_info": {}}, "file:///home/me/my%20tree"),
        ({"url": "https://example.org/st_paragram.tar.gz?a=1&b=2"}, "'https://example.org/st_paragram.tar.gz?a=1&b=2'"),
        ({"url": "https://example.org/x.git", "vcs_info": {"vcs": "git"}}, "git+https://example.org/x.git"),
    ],
)
def test_the_command_installs_from_where_the_package_came(tmp_path, monkeypatch, record, origin):
    record = record if record is None or isinstance(record, str) else json.dumps(record)
    monkeypatch.setattr(installation, "distribution", lambda name: Distribution(record))
    monkeypatch.setattr(installation, "_ROOT", tmp_path)
    assert installation.install_command() == INSTALL + origin


def test_the_command_of_a_source_tree(tmp_path, monkeypatch):
    (tmp_path / "a tree").mkdir()
    (tmp_path / "a tree" / "setup.py").touch()
    monkeypatch.setattr(installation, "_ROOT", tmp_path / "a tree")
    assert installation.install_command() == f"{INSTALL}--editable '{tmp_path}/a tree'"


def test_never_installed(tmp_path, monkeypatch):
    def distribution(name):
        raise installation.PackageNotFoundError(name)

    monkeypatch.setattr(installation, "distribution", distribution)
    monkeypatch.setattr(installation, "_ROOT", tmp_path)
    assert installation.install_command() == INSTALL + "--no-binary st_paragram st_paragram"


def test_one_warning_names_reason_and_remedy(missing, caplog):
    with caplog.at_level(logging.WARNING):
        assert native.kernels() is None
    (record,) = caplog.records
    assert f"Python imports st_paragram from {ROOT}, where they are not compiled" in record.message
    assert native.SLOWER in record.message and "compiler" not in record.message
    assert installation.install_command() in record.message and "python -m st_paragram.core.native" in record.message


def test_the_report_without_kernels(missing, capsys):
    assert command.main() == 1
    text = capsys.readouterr().out
    assert text.startswith("The compiled kernels are missing: Python imports st_paragram from ")
    assert text.endswith(f"Run:\n\n    {installation.install_command()}\n")
    assert native.obstacle() == "the compiled kernels are missing"


def test_the_report_of_an_installed_package_without_a_compiler(missing, tmp_path, monkeypatch):
    monkeypatch.setattr(installation, "_ROOT", tmp_path)
    monkeypatch.setattr(installation.shutil, "which", lambda name: None)
    _, text = command.report()
    assert "missing: they were not built when st_paragram was installed." in text
    assert "\nInstall a C++ compiler (g++ or clang++), then run:\n" in text


def test_kernels_that_are_switched_off_are_not_called_missing(monkeypatch):
    monkeypatch.setenv(native.SWITCH, "0")
    monkeypatch.setattr(native, "kernels", native.kernels.__wrapped__)
    monkeypatch.setattr(core_installation, "kernels", native.kernels)
    assert native.obstacle() == "the compiled kernels are switched off: ST_PARAGRAM_NATIVE=0"
    assert core_installation.describe_installation().kernels == "switched off: ST_PARAGRAM_NATIVE is set to 0"


def test_kernels_that_cannot_be_loaded(monkeypatch):
    def load():
        raise ImportError("libstdc++.so.6: version `GLIBCXX_3.4.99' not found")

    monkeypatch.delenv(native.SWITCH, raising=False)
    monkeypatch.setattr(command, "load_kernels", load)
    in_use, text = command.report()
    assert not in_use and "they cannot be loaded (libstdc++.so.6: version" in text


@pytest.mark.parametrize("switch", ["0", ""])
def test_the_command_line(switch):
    done = subprocess.run(
        [sys.executable, "-m", "st_paragram.core.native"],
        env={**os.environ, native.SWITCH: switch},
        capture_output=True,
        text=True,
    )
    assert done.stderr == ""
    if switch:
        assert (done.returncode, "switched off: ST_PARAGRAM_NATIVE is set to 0" in done.stdout) == (1, True)
    elif native.kernels() is not None:
        named = f"run with the instruction set {native.kernels().instructions()!r}"
        assert (done.returncode, named in done.stdout) == (0, True)


@pytest.mark.skipif(os.name == "nt", reason="needs /bin/false for a compiler")
def test_an_installation_without_compiler_says_so(tmp_path):
    pytest.importorskip("pybind11")
    done = subprocess.run(
        [sys.executable, "setup.py", "build_ext", "--build-lib", tmp_path, "--build-temp", tmp_path],
        cwd=ROOT,
        env={**os.environ, "CC": "/bin/false", "CXX": "/bin/false"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    lines = [line for line in done.stderr.split("\n") if "compiled kernels of st_paragram could not be built" in line]
    assert len(lines) == 1 and "python -m st_paragram.core.native" in lines[0]


def test_kernels_built_from_other_sources_are_not_used(monkeypatch, caplog):
    monkeypatch.setattr(native.importlib, "import_module", lambda name: ModuleType(name))
    monkeypatch.setattr(native, "kernels", native.kernels.__wrapped__)
    monkeypatch.delenv(native.SWITCH, raising=False)
    with caplog.at_level(logging.WARNING):
        assert native.kernels() is None
    assert f"built from a different version: interface None, st_paragram needs {native.INTERFACE}" in caplog.text
    assert not command.report()[0]
