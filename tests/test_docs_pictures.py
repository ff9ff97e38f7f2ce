"""The diagrams of the documentation are what their script draws, so that the house cannot become stale."""

import importlib.util
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[1] / "docs" / "hooks" / "pictures.py"


@pytest.mark.skipif(sys.version_info < (3, 11), reason="the script reads TOML with Python's library, from 3.11 on")
@pytest.mark.parametrize("name", ["p-sp.svg", "from-text-to-pairs.svg", "house.svg", "quality-speed.svg"])
def test_diagrams_are_current(name):
    spec = importlib.util.spec_from_file_location("pictures", SCRIPT)
    pictures = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(pictures)
    drawn = pictures.PICTURES[name]()
    assert (pictures.IMAGES / name).read_text(encoding="utf-8") == drawn, f"run {SCRIPT}"
