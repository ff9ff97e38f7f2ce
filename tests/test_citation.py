"""CITATION.cff and CHANGELOG.md name the version of setup.cfg."""

from __future__ import annotations

import configparser
import re
from pathlib import Path

import yaml

ROOT = Path(__file__).parents[1]


def test_version_and_date_are_the_same_everywhere():
    parser = configparser.ConfigParser()
    parser.read(ROOT / "setup.cfg", encoding="utf-8")
    version = parser["metadata"]["version"]
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    changes = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    newest, note = re.findall(r"^## (\S+) \((.+)\)$", changes, re.MULTILINE)[0]
    assert version == newest == citation["version"]
    released = citation.get("date-released")  # none before the release
    assert note == ("not yet released" if released is None else str(released))
    assert parser["metadata"]["license"] == citation["license"]
