"""The names that `import st_paragram` offers, and that nothing is imported before they are used."""

from __future__ import annotations

import importlib
import subprocess
import sys

import pytest
from support.without import run_without

import st_paragram


@pytest.mark.parametrize("name", [name for name in st_paragram.__all__ if name != "__version__"])
def test_a_public_name_is_the_one_of_its_module(name):
    found = getattr(st_paragram, name)
    assert found is getattr(importlib.import_module(found.__module__), name)
    assert found.__doc__


def test_the_names_are_the_same_for_type_checkers_and_at_run_time():
    assert sorted(st_paragram.__all__) == sorted([*st_paragram._MODULES, "__version__"])
    assert dir(st_paragram) == sorted(st_paragram.__all__)


def test_a_name_that_is_not_there():
    with pytest.raises(AttributeError, match="public names are"):
        st_paragram.nothing  # noqa: B018


def test_importing_the_package_imports_nothing_heavy():
    code = "import st_paragram, sys; print(*sys.modules)"
    modules = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert not {"torch", "numpy", "sentence_transformers", "h5py", "yaml", "pydantic"}.intersection(modules)


@pytest.mark.parametrize("name", ["load", "PairStore", "MegaBatchTrainer"])
def test_a_name_that_the_light_installation_lacks(name):
    done = run_without(f"import st_paragram; st_paragram.{name}")
    last = done.stderr.strip().splitlines()[-1]
    assert f"MissingExtraError: st_paragram.{name}: " in last and last.endswith("pip install -e .")
