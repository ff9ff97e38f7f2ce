"""The tables of settings in the docs are those of the code, and what examples import is there.

A table stands between `<!-- settings: MODULE:CLASS -->` and `<!-- end of settings -->`. If this test fails, put what it
prints there.
"""

from __future__ import annotations

import ast
import importlib
import importlib.util
import re
from pathlib import Path

import pytest

from st_paragram.settings import table

DOCS = Path(__file__).parents[1] / "docs"
PAGES = [DOCS.parent / "README.md", *sorted(DOCS.glob("*.md"))]
EXAMPLE = re.compile(r"```python\n(.*?)```", re.DOTALL)
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


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_examples_in_python_import_what_is_there(page):
    for example in EXAMPLE.findall(page.read_text(encoding="utf-8")):
        parts = ast.parse(example).body  # refuses an example that is no Python
        for part in (each for each in parts if isinstance(each, ast.Import | ast.ImportFrom)):
            optional = ast.unparse(part).split()[1].partition(".")[0] in ("mteb",)
            if not optional or importlib.util.find_spec("mteb"):
                exec(ast.unparse(part), {})
