"""CITATION.cff and CHANGELOG.md name the version of setup.cfg, which names all licenses."""

from __future__ import annotations

import configparser
import email
import io
import re
from pathlib import Path

import yaml
from huggingface_hub import ModelCard
from setuptools import Distribution

from st_paragram.core.model_directory.find import SHIPPED_MODELS, shipped_folder

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
    code, _ = parser["metadata"]["license_expression"].split(" AND ")
    assert code == citation["license"]


def test_the_package_names_the_licenses_of_code_and_models(monkeypatch):
    monkeypatch.chdir(ROOT)
    distribution = Distribution()
    distribution.parse_config_files(["setup.cfg"])
    metadata = io.StringIO()
    distribution.metadata.write_pkg_file(metadata)
    fields = email.message_from_string(metadata.getvalue())
    models = {card_of(name).data.license.upper() for name in SHIPPED_MODELS}
    assert fields["License-Expression"] == " AND ".join(["Apache-2.0", *models])
    assert fields.get_all("License-File") == ["LICENSE", "LICENSE-MODELS"]
    assert Path("LICENSE").read_text("utf-8").split()[:2] == ["Apache", "License"]
    assert "CC-BY-SA-4.0" in Path("LICENSE-MODELS").read_text("utf-8")


def card_of(name):
    return ModelCard.load(shipped_folder(name) / "README.md")
