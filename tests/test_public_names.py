"""The names that `import st_paragram` offers, and that nothing is imported before they are used."""

from __future__ import annotations

import importlib
import re
import subprocess
import sys
from pathlib import Path

import pytest
from support.without import HEAVY, run_without

import st_paragram
from st_paragram import losses, modules
from st_paragram.core import extras


@pytest.mark.parametrize("name", list(st_paragram._MODULES))
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


def test_names_that_are_promised_to_users():
    """These two import lines are promised to users: never remove or rename them."""
    from st_paragram.losses import MarginHardNegativeLoss
    from st_paragram.modules import MeanPool, SentencePieceEmbedding

    assert MarginHardNegativeLoss is st_paragram.MarginHardNegativeLoss
    assert MeanPool is st_paragram.MeanPool
    assert SentencePieceEmbedding is st_paragram.SentencePieceEmbedding


@pytest.mark.parametrize("module", [losses, modules])
def test_modules_and_losses_are_public_names(module):
    assert module.__all__ == sorted(module.__all__)
    for name in module.__all__:
        assert getattr(module, name) is getattr(st_paragram, name)


def test_importing_the_package_imports_nothing_heavy():
    code = "import st_paragram, sys; print(*sys.modules)"
    modules = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout.split()
    assert not {"torch", "numpy", "sentence_transformers", "h5py", "yaml", "pydantic"}.intersection(
        modules
    )


#: What the light installation lacks, and the end of the error.
LACKING = {
    "from st_paragram.modules import MeanPool": "pip install st_paragram",
    "from st_paragram.losses import MarginHardNegativeLoss": "pip install st_paragram",
    "st_paragram.load": "pip install st_paragram",
    "st_paragram.PairStore": "pip install h5py scipy",
    "st_paragram.MegaBatchTrainer": "pip install st_paragram",
}


def test_names_that_the_light_installation_lacks():
    script = f"""
import st_paragram
from st_paragram.errors import MissingNameError
for statement in {list(LACKING)}:
    try:
        exec(statement)
    except MissingNameError as error:
        print(error)
"""
    errors = run_without(script).stdout.splitlines()
    for (statement, advice), error in zip(LACKING.items(), errors, strict=True):
        # a module of public names is imported whole, and the error has the first that is missing
        name = "st_paragram." if statement.startswith("from") else f"{statement}: "
        assert error.startswith(name) and error.endswith(advice), statement
        assert "torch is not installed" in error or statement.endswith("PairStore")


def test_without_any_package_those_of_the_light_installation_are_named():
    packages = [*HEAVY, "numpy", "yaml", "tokenizers"]
    done = run_without("import st_paragram; st_paragram.Encoder", packages=packages)
    last = done.stderr.strip().splitlines()[-1]
    assert last.endswith("numpy is not installed; run: pip install numpy PyYAML tokenizers")
    light = (Path(__file__).parents[1] / "requirements-light.txt").read_text(encoding="utf-8")
    names = re.findall(r"^([\w.-]+)>=", light, re.MULTILINE)
    assert sorted(names) == sorted(extras._LIGHT.values())


# A package of an extra, and a public name that needs it
EXTRAS = {"datatrove": "CleanPairs", "lancedb": "SearchIndex"}


LIST_NAMES = """
import inspect, pydoc, st_paragram
from st_paragram.errors import MissingExtraError
from st_paragram import *
names = {name for name, _ in inspect.getmembers(st_paragram)} & set(dir(st_paragram))
available = {name for name in dir(st_paragram) if hasattr(st_paragram, name)}
assert names == set(st_paragram.__all__) == available
assert "Encoder" in globals() and "CleanPairs" not in globals()
assert "Encoder" in pydoc.render_doc(st_paragram)
try:
    st_paragram.CleanPairs
except MissingExtraError as error:
    assert isinstance(error, AttributeError) and "datatrove" in str(error)
try:
    from st_paragram import CleanPairs
except MissingExtraError as error:
    assert "datatrove" in str(error)
print(*sorted(set(dir(st_paragram)) - names))
"""


@pytest.fixture
def _no_extras(monkeypatch):
    """Make the packages of extras, and our modules that import them, as if never imported."""
    ours = ("st_paragram.tools.distributed", "st_paragram.tools.search")
    for name in list(sys.modules):
        if name.startswith((*ours, *EXTRAS)):
            parent, _, child = name.rpartition(".")
            if parent in sys.modules and hasattr(sys.modules[parent], child):
                monkeypatch.delattr(sys.modules[parent], child)
            monkeypatch.delitem(sys.modules, name)
    for package in EXTRAS:
        monkeypatch.setitem(sys.modules, package, None)


@pytest.mark.usefixtures("_no_extras")
def test_without_extras_all_other_names_can_be_listed(capsys):
    exec(LIST_NAMES, {})
    steps = [name for name, module in st_paragram._MODULES.items() if "distributed" in module]
    assert capsys.readouterr().out.split() == sorted([*steps, "SearchIndex"])


def test_without_torch_and_extras_all_other_names_can_be_listed():
    done = run_without(LIST_NAMES, packages=[*HEAVY, *EXTRAS])
    assert not done.returncode, done.stderr
    assert {"EmbedTexts", "MegaBatchTrainer", *EXTRAS.values()} <= set(done.stdout.split())
