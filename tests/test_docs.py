"""The reference and the tables of settings are those of the code, and the site builds without a
warning.

A table stands between `<!-- settings: MODULE:CLASS -->` and `<!-- end of settings -->`. If its test
fails, put what it prints there.
"""

from __future__ import annotations

import importlib
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from support.settings_table import table

DOCS = Path(__file__).parents[1] / "docs"
PAGES = [
    *DOCS.glob("**/*.md"),
    *DOCS.glob("**/*.ipynb"),
    DOCS.parent / "README.md",
    DOCS.parent / "PACKAGE.md",
]
RECORDS = DOCS.parent / "benchmarks" / "records"
HISTORY = ("changes.md", "development_history.md")  # they name files of their time
PATH = re.compile(
    r"(?<![\w/.])(?:benchmarks|data_prep|docs|recipes|st_paragram|tests)/[\w./-]+\.(?:md|png|py|yaml)\b"
)
BLOCK = re.compile(r"<!-- settings: ([\w.]+):(\w+) -->\n(.*?)<!-- end of settings -->", re.DOTALL)


def test_tables_of_settings_are_those_of_the_code():
    blocks = [
        (page, *found)
        for page in PAGES
        for found in BLOCK.findall(page.read_text(encoding="utf-8"))
    ]
    assert len(blocks) == 3
    for page, module, name, text in blocks:
        expected = table(getattr(importlib.import_module(module), name))
        assert text.strip() == expected, f"{page.name} needs this table of {name}:\n\n{expected}\n"


def test_files_named_in_pages_and_records_exist():
    root = DOCS.parent
    records = [path for path in RECORDS.glob("**/*.md") if path.name not in HISTORY]
    for page in [*PAGES, *records, root / "AGENTS.md"]:
        for path in PATH.findall(page.read_text(encoding="utf-8")):
            is_link = (page.parent / path).exists()
            assert is_link or (root / path).exists(), f"{page.name} names {path}, which is missing"


def test_examples_import_public_names_only():
    deep = re.compile(r"(?:from|import) (st_paragram\.(?!(?:errors|losses|modules)\b)[\w.]+)")
    assert not [
        (page.name, name)
        for page in PAGES
        for name in deep.findall(page.read_text(encoding="utf-8"))
    ]


@pytest.mark.slow
def test_the_site_builds_without_a_warning(tmp_path):
    pytest.importorskip("material")
    pytest.importorskip("mkdocstrings_handlers.python")
    command = [
        sys.executable,
        "-m",
        "mkdocs",
        "build",
        "--strict",
        "--site-dir",
        str(tmp_path / "site"),
    ]
    environment = os.environ | {"NO_MKDOCS_2_WARNING": "1"}
    ended = subprocess.run(
        command, cwd=DOCS.parent, env=environment, capture_output=True, text=True, check=False
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
    pages = {
        path.relative_to(tmp_path / "site").as_posix(): path.read_text()
        for path in tmp_path.rglob("*.html")
    }
    assert "truncate_dim" in pages["reference/models.html"] and "security.html" in pages
    assert "--anneal-interval" in pages["commands.html"]
    loaded = re.compile(r'<(?:script|link|img)[^>]+(?:src|href)="https?://')
    assert not any(map(loaded.search, pages.values())), "pages load nothing from other servers"
