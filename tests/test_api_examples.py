"""The examples in the docstrings of public names run, in a folder with small files, and print what
they say.
"""

import doctest
import shutil

import pytest
from support.doc_folder import make_folder

import st_paragram
from st_paragram import distributed

NAMES = sorted(st_paragram._MODULES)
STEPS = [name for name in distributed.__all__ if isinstance(getattr(distributed, name), type)]
FLAGS = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    return make_folder(tmp_path_factory.mktemp("api"))


def example_of(name):
    """The example of a public name's own docstring."""
    text = getattr(distributed if name in STEPS else st_paragram, name).__doc__ or ""
    return doctest.DocTestParser().get_doctest(text, {}, name, None, 0)


@pytest.mark.parametrize("name", [*NAMES, *STEPS])
def test_each_public_name_has_an_example_that_runs(name, files, tmp_path, monkeypatch):
    test = example_of(name)
    assert test.examples, f"{name} has no example"
    for path in files.iterdir():
        if path.name in "".join(each.source for each in test.examples):
            (shutil.copytree if path.is_dir() else shutil.copy)(path, tmp_path / path.name)
    monkeypatch.chdir(tmp_path)
    report = []
    outcome = doctest.DocTestRunner(verbose=False, optionflags=FLAGS).run(test, out=report.append)
    assert not outcome.failed, "".join(report)
