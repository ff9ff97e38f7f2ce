"""One script fills the address of the repository into README.md and mkdocs.yml."""

import importlib.util
import shutil
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[1]


@pytest.fixture
def script():
    spec = importlib.util.spec_from_file_location("set_repository", ROOT / "docs" / "hooks" / "set_repository.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def copies(tmp_path):
    for name in ("README.md", "mkdocs.yml"):
        shutil.copy(ROOT / name, tmp_path)
    return tmp_path


def test_the_address_is_filled_in_and_can_be_replaced(script, copies):
    for address in ("https://github.com/first/one", "https://github.com/an-owner/st_paragram.git"):
        script.set_repository(address, copies)
    readme = (copies / "README.md").read_text(encoding="utf-8")
    assert "git clone https://github.com/an-owner/st_paragram st_paragram" in readme
    assert readme.count("badge.svg") == 1 and "first/one" not in readme
    settings = yaml.load((copies / "mkdocs.yml").read_text(encoding="utf-8"), yaml.BaseLoader)
    assert settings["repo_url"] == "https://github.com/an-owner/st_paragram"
    assert settings["site_url"] == "https://an-owner.github.io/st_paragram/"
    assert settings["extra"] == {"version": {"provider": "mike"}}


@pytest.mark.parametrize("address", ["", "github.com/a/b", "https://example.org/a/b", "https://github.com/a"])
def test_other_addresses_change_nothing(script, copies, address):
    before = [(copies / name).read_bytes() for name in ("README.md", "mkdocs.yml")]
    with pytest.raises(ValueError, match=r"give https://github\.com/OWNER/NAME"):
        script.set_repository(address, copies)
    assert [(copies / name).read_bytes() for name in ("README.md", "mkdocs.yml")] == before
