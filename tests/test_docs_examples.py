"""What README.md and docs/ tell readers to type: Python runs, commands are such as exist, and the
quick ones run, too.

The blocks of a page are taken from its top to its end, Python in one namespace, in an empty folder
with small files under the names that the page uses (`support.doc_folder`). `<!-- not run: REASON
-->` before a block leaves it out; its commands are still read by the parsers, and the modules that
it imports looked for.
"""

from __future__ import annotations

import ast
import contextlib
import importlib.util
import io
import shutil
import sys
from itertools import pairwise

import matplotlib as mpl
import pytest
from support.doc_commands import problem
from support.doc_folder import PAIRS, copy_what_is_named, make_folder
from support.doc_pages import PAGES, ROOT, Block, assert_alike, blocks
from support.doc_server import DocServer

from st_paragram.cli.main import main, parse
from st_paragram.runs import training_data

#: Commands that take milliseconds on small files; on pages of recipes, whose text is small, some
#: more.
RUN = {
    "align",
    "clean",
    "dedupe",
    "embed",
    "export",
    "generate",
    "get",
    "index",
    "info",
    "mine",
    "score",
    "search",
}
RUN_IN_RECIPES = RUN | {"prepare", "serve", "train"}
#: Options of `evaluate` on small files, since its benchmarks need data that are not there; and of
#: `push`, which sends nothing then.
SAFE = {"--translations", "--graded", "--queries", "--dry-run"}
TESTED_ELSEWHERE = "integrations.md"  # in test_integrations.py
OPTIONAL = ("lancedb", "qdrant_client", "pymilvus")  # which development may do without
# they train a model or start processes
SLOW = (
    "five_minutes.md",
    "many_machines.md",
    "modules.md",
    "web_service.md",
    "your_language.md",
)


@pytest.fixture(scope="module")
def prepared(tmp_path_factory):
    with contextlib.redirect_stdout(io.StringIO()):
        return make_folder(tmp_path_factory.mktemp("documentation"))


@pytest.fixture(autouse=True)
def _small(monkeypatch):
    monkeypatch.setattr(training_data, "BUILT_IN_PAIRS", PAIRS)
    mpl.use("agg")


@pytest.fixture
def server():
    """The server of a page of recipes."""
    server = DocServer()
    yield server
    server.stop()


def run_python(block: Block, names: dict[str, object]) -> None:
    """Run a block, with the page's own line numbers; of one that cannot run, look for the modules
    that it imports.
    """
    if block.runs:
        exec(compile("\n" * (block.line - 1) + block.text, str(block.page), "exec"), names)
        return
    parts = [
        part
        for part in ast.walk(ast.parse(block.text))
        if isinstance(part, ast.Import | ast.ImportFrom)
    ]
    modules = [
        name
        for part in parts
        for name in (getattr(part, "module", None), *(one.name for one in part.names))
    ]
    missing = [name for name in modules if name and is_missing(name)]
    assert not missing, f"{block.where}: {', '.join(missing)}"


def is_missing(module: str) -> bool:
    """Whether an installed package lacks a module.

    Several packages may share a namespace, such as llama_index, and need not all be installed.
    """
    parts = module.split(".")
    is_namespace = True
    for end in range(1, len(parts) + 1):
        spec = importlib.util.find_spec(".".join(parts[:end]))
        if spec is None:
            return not is_namespace
        is_namespace = spec.origin is None
        if spec.submodule_search_locations is None:  # a module without modules below it
            return end < len(parts)
    return False


def test_modules_of_packages_that_are_not_installed_are_not_missing(tmp_path, monkeypatch):
    (tmp_path / "shared" / "core").mkdir(parents=True)
    (tmp_path / "shared" / "core" / "__init__.py").touch()
    monkeypatch.syspath_prepend(tmp_path)
    assert is_missing("shared.core.vectors") and is_missing("st_paragram.nothing")
    for module in ("shared.core", "shared.embeddings.vectors", "not_installed.vectors", "json"):
        assert not is_missing(module)


def run_command(words: list[str], where: str, capsys) -> None:
    """Run a quick command as `st-paragram` would; an output of an earlier one is replaced."""
    given = parse(words[1:])
    changes = any(getattr(given, name, None) for name in ("add_to", "delete_from", "compact"))
    words = [*words, "--overwrite"] if hasattr(given, "overwrite") and not changes else words
    assert main(words[1:]) == 0, f"{where}: {' '.join(words)}: {capsys.readouterr().err}"


def named(pages):
    marks = {name: [pytest.mark.slow] for name in SLOW}
    return [
        pytest.param(each, marks=marks.get(each.name, []), id=each.relative_to(ROOT).as_posix())
        for each in pages
    ]


@pytest.mark.parametrize("page", named(PAGES))
def test_a_page_runs_from_its_top_to_its_end(page, prepared, tmp_path, monkeypatch, capsys, server):
    found = blocks(page)
    shell = [
        " ".join(words)
        for block in found
        if block.language == "shell"
        for words in block.commands()
    ]
    # scripts are not run, and need no files
    commands = [line for line in shell if line.startswith("st-paragram")]
    copy_what_is_named(
        prepared,
        tmp_path,
        "\n".join([*commands, *(b.text for b in found if b.language == "python")]),
    )
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {"__name__": "page"}
    run = RUN_IN_RECIPES if page.parent.name == "recipes" else RUN
    for block, after in pairwise([*found, None]):
        lines = len(block.text.rstrip("\n").split("\n"))
        # right below
        is_output = after and after.language == "text" and after.line - block.line - lines in (2, 3)
        needs_more = any(
            name in block.text and not importlib.util.find_spec(name) for name in OPTIONAL
        )
        words = block.commands() if block.language == "shell" and block.runs else []
        ours = [each for each in words if each[0] == "st-paragram"]
        quick = [each for each in ours if each[1] in run or SAFE.intersection(each)]
        requests = [each for each in words if page.parent.name == "recipes" and each[0] == "curl"]
        capsys.readouterr()
        if block.language == "python" and page.name != TESTED_ELSEWHERE and not needs_more:
            run_python(block, names)
            is_output = is_output and block.runs
        elif requests:
            if shutil.which("curl") is None:
                pytest.skip("curl is not installed")
            sys.stdout.write(server.run(block.text))
        else:
            for each in quick:
                if each[1] == "serve":
                    server.start(each)
                else:
                    run_command(each, block.where, capsys)
            is_output = is_output and quick and len(quick) == len(words)
        if is_output:
            assert_alike(capsys.readouterr().out, after)


@pytest.mark.parametrize(
    "page", [pytest.param(each, id=each.relative_to(ROOT).as_posix()) for each in PAGES]
)
def test_commands_of_a_page_exist_with_their_options(page, prepared, monkeypatch):
    monkeypatch.chdir(prepared)
    shell = [
        (block.where, words)
        for block in blocks(page)
        if block.language == "shell"
        for words in block.commands()
    ]
    wrong = [
        f"{where}: {' '.join(words)}: {said}" for where, words in shell if (said := problem(words))
    ]
    assert not wrong, "\n".join(wrong)
