"""`st-paragram cache` lists what is stored, and clears what is rebuilt."""

import pytest

from st_paragram.cli.main import main
from st_paragram.core.files import locked
from st_paragram.learning.training.training_data import choose_data

STORED = ("stores/en-es-0123456789abcdef.h5", "tasks/en-0123456789abcdef.arrow", "lid/lid.176.bin")


@pytest.fixture
def cache(tmp_path, monkeypatch):
    """A cache with something of each kind."""
    monkeypatch.setenv("ST_PARAGRAM_CACHE", str(tmp_path))
    choose_data("es", ["built-in"])._built_in_text()
    for name in STORED:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(bytes(2000))
    return tmp_path


def test_everything_is_listed_with_its_size(cache, capsys):
    assert main(["cache"]) == 0
    lines = [line.split(maxsplit=1) for line in capsys.readouterr().out.splitlines()]
    assert [name for name, _ in lines[:-1]] == sorted(path.name for path in cache.iterdir()) and len(lines) == 5
    assert [size for name, size in lines[:-1] if name in ("stores", "tasks", "lid")] == ["2.0 kB"] * 3
    assert lines[-1] == [str(cache)]


def test_clearing_keeps_downloads(cache, capsys):
    assert main(["cache", "clear"]) == 0
    assert [path.name for path in cache.rglob("*")] == ["lid", "lid.176.bin"]
    assert capsys.readouterr().out.count(" removed\n") == 3
    assert main(["cache", "clear"]) == 0


def test_a_folder_in_use_is_not_cleared(cache, capsys):
    with locked(cache / "stores"):
        assert main(["cache", "clear"]) == 1
    assert "another run is using it" in capsys.readouterr().err
    assert (cache / STORED[0]).is_file()
