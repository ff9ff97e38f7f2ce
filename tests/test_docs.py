"""The tables of settings in the docs are those of the code.

A table stands between `<!-- settings: MODULE:CLASS -->` and `<!-- end of settings -->`. If this test fails, put what it
prints there.
"""

from __future__ import annotations

import importlib
import re
from pathlib import Path

import pytest

from st_paragram.settings import table

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
