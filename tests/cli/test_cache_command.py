"""`st-paragram cache` lists what is stored, and clears what is rebuilt."""

import pytest

from st_paragram.cli.main import main
from st_paragram.core.files import locked


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("ST_PARAGRAM_CACHE", str(tmp_path))
    for name in ("stores/en-es-0123456789abcdef.h5", "tasks/qa/en-0123456789abcdef.h5", "lid/lid.176.bin"):
        path = tmp_path / name
        path.parent.mkdir(parents=True)
        path.write_bytes(bytes(2000))
    return tmp_path


def files(folder):
    return sorted(path.name for path in folder.rglob("*") if path.is_file() and not path.name.endswith(".lock"))


def test_listing_shows_each_folder_and_its_size(cache, capsys):
    assert main(["cache"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split() for line in lines[:-1]] == [[name, "2.0", "kB"] for name in ("lid", "stores", "tasks")]
    assert lines[-1] == str(cache)


def test_clearing_removes_stores_and_keeps_downloads(cache, capsys):
    assert main(["cache", "clear"]) == 0
    assert files(cache) == ["lid.176.bin"]


def test_a_folder_in_use_is_not_cleared(cache, capsys):
    with locked(cache / "stores"):
        assert main(["cache", "clear"]) == 1
    assert "another run is using it" in capsys.readouterr().err
    assert "en-es-0123456789abcdef.h5" in files(cache)
