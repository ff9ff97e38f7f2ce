"""What pages say of the code is so: tables of settings, the page of commands, the reference; and the site can be built.

A table stands between `<!-- settings: MODULE:CLASS -->` and `<!-- end of settings -->`. If this test fails, put what it
prints there.
"""

from __future__ import annotations

import importlib
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from support.commands_pages import pages

import st_paragram
from st_paragram.cli.main import COMMANDS
from st_paragram.core.settings import table

DOCS = Path(__file__).parents[1] / "docs"
BLOCK = re.compile(r"<!-- settings: ([\w.]+):(\w+) -->\n(.*?)<!-- end of settings -->", re.DOTALL)
BLOCKS = [
    pytest.param(path, *found, id=f"{path.name}-{found[1]}")
    for path in sorted(DOCS.glob("*.md"))
    for found in BLOCK.findall(path.read_text(encoding="utf-8"))
]


@pytest.mark.parametrize(("path", "module", "name", "text"), BLOCKS)
def test_tables_of_settings_are_those_of_the_code(path, module, name, text):
    expected = table(getattr(importlib.import_module(module), name))
    assert text.strip() == expected, f"{path.name} shall have this table of {name}:\n\n{expected}\n"


def test_the_pages_of_commands_are_current():
    made = pages()
    paths = [DOCS / "commands.md", *DOCS.glob("commands/*.md")]
    found = {path.relative_to(DOCS).as_posix(): path.read_text(encoding="utf-8") for path in paths}
    assert found == made, "`make docs` rebuilds docs/commands"
    assert set(made) == {"commands.md", *(f"commands/{name}.md" for name in COMMANDS)}
    assert "| `--margin` `{ratio,distance,absolute}` |" in made["commands/mine.md"]
    assert "## st-paragram train bgt" in made["commands/train.md"]


def test_options_that_commands_share_are_explained_once():
    made = pages()
    row = "| `--no-checks` | skip the checks for headers, "
    assert [name for name, text in made.items() if row in text] == ["commands.md"]
    assert all("`--no-checks`" in made[f"commands/{name}.md"] for name in ("prepare", "bitext", "train"))


def test_public_names_stand_in_the_reference():
    reference = "".join(path.read_text(encoding="utf-8") for path in sorted((DOCS / "reference").glob("*.md")))
    missing = []
    for name in set(st_paragram.__all__) - {"__version__"}:
        entry = f"::: st_paragram.{st_paragram._MODULES[name]}.{name}\n"
        missing += [] if entry in reference else [entry]
    assert not missing


def test_examples_import_public_names_only():
    """So that they do not depend on where things live in the package."""
    pages = [*DOCS.glob("**/*.md"), *DOCS.glob("**/*.ipynb"), DOCS.parent / "README.md", DOCS.parent / "PACKAGE.md"]
    deep = re.compile(r"(?:from|import) (st_paragram\.(?!errors\b)[\w.]+)")
    found = [(path.name, module) for path in pages for module in deep.findall(path.read_text(encoding="utf-8"))]
    assert found == []


def test_tables_end_with_a_blank_line():
    """What follows at once is a further row of them."""
    pages = [*DOCS.glob("**/*.md"), *(DOCS.parent / name for name in ("README.md", "PACKAGE.md", "CHANGELOG.md"))]
    ends = re.compile(r"^\|.*\n(?!\||\n|<!-- end of settings)(.+)", re.MULTILINE)
    found = [(path.name, text) for path in pages for text in ends.findall(path.read_text(encoding="utf-8") + "\n")]
    assert found == []


@pytest.mark.slow
def test_the_site_is_built_without_a_warning(tmp_path):
    pytest.importorskip("material")
    pytest.importorskip("mkdocstrings_handlers.python")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(tmp_path / "site")]
    environment = os.environ | {"NO_MKDOCS_2_WARNING": "1"}
    ended = subprocess.run(command, cwd=DOCS.parent, env=environment, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    pages = {path.relative_to(tmp_path / "site").as_posix(): path.read_text() for path in tmp_path.rglob("*.html")}
    assert {"index.html", "security.html", "commands.html", "reference/models.html"} <= set(pages)
    assert "def load" not in pages["index.html"] and "truncate_dim" in pages["reference/models.html"]
    loaded = [
        found
        for text in pages.values()
        for found in re.findall(r'<(?:script|link|img)[^>]+(?:src|href)="(https?://[^"]+)', text)
    ]
    assert not loaded, "pages load nothing from other servers"
