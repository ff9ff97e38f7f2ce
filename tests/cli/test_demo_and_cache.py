"""`st-paragram demo`: what it is given reaches the page; `st-paragram cache` lists what is stored,
and clears it.
"""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest
from filelock import FileLock

from st_paragram.cli.main import main
from st_paragram.core.folders import make_own_folder
from st_paragram.core.model_directory.find import find
from st_paragram.runs.training_data import choose_data
from st_paragram.tools import demo

STORED = (
    "stores/en-es-0123456789abcdef.h5",
    "tasks/qa-en-0123456789abcdef.arrow",
    "lid/lid.176.bin",
)
LEFT = (  # by killed runs
    *(
        "stores/.en-es-0123456789abcdef.h5.work/cleaned/00",
        "stores/.en-es-0123456789abcdef.h5.lock",
    ),
    *("stores/.en-es-0123456789abcdef.h5.0123456789ab.part", "tasks/in-use.lock"),
)
FOREIGN = (
    *("thesis.docx", "stores/own.h5", "stores/notes/a.txt", "tasks/plan.md"),
    *("project/stores/en-es-0123456789abcdef.h5", "built-in-notes.tsv", ".git/config"),
    *("stores/en-fr-0123456789abcdef.h5/inside", "stores/in-use.lock/inside"),
    "stores/.en-ru-0123456789abcdef.h5.work/inside",
)


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ("", (["p-sp-mini"], "127.0.0.1", None, False)),
        (
            "p-sp-mini a --host 0.0.0.0 --port 8080 --open",
            (["p-sp-mini", "a"], "0.0.0.0", 8080, True),
        ),
    ],
)
def test_options_reach_the_page(monkeypatch, capsys, options, expected):
    calls = []
    page = SimpleNamespace(local_url="http://127.0.0.1:7860/", block_thread=lambda: None)
    monkeypatch.setattr(demo, "launch", lambda *arguments: calls.append(arguments) or page)
    assert main(["demo", *options.split()]) == 0 and calls == [expected]
    shown = capsys.readouterr().out
    assert shown.startswith("The page is at http://127.0.0.1:7860/ until you press Ctrl-C.\n")
    assert ("Other machines can reach it" in shown) == ("0.0.0.0" in options)


def test_the_cache_is_listed_and_cleared_but_for_downloads(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("ST_PARAGRAM_CACHE", str(tmp_path))
    choose_data("es", ["built-in"])._built_in_text()
    find("p-sp-es")
    for path in map(tmp_path.joinpath, STORED):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(bytes(2000))
    assert main(["cache"]) == 0
    lines = [line.split(maxsplit=1) for line in capsys.readouterr().out.splitlines()]
    assert [name for name, _ in lines[:-1]] == sorted(
        path.name for path in tmp_path.iterdir()
    ) and len(lines) == 6
    assert [size for name, size in lines[:-1] if name in ("stores", "tasks", "lid")] == [
        "2.0 kB"
    ] * 3
    # as another process would have it
    with FileLock(tmp_path / "stores" / f".{Path(STORED[0]).name}.lock"):
        assert main(["cache", "clear"]) == 1
    assert "another run is writing" in capsys.readouterr().err and (tmp_path / STORED[0]).is_file()
    assert main(["cache", "clear"]) == 0
    assert [path.name for path in tmp_path.rglob("*")] == ["lid", "lid.176.bin"]


def test_files_of_others_in_the_cache_are_never_removed(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("ST_PARAGRAM_CACHE", str(tmp_path / "cache"))
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "precious").touch()
    make_own_folder(tmp_path / "cache" / Path(LEFT[0]).parents[1])
    for name in (*STORED, *LEFT, *FOREIGN):
        path = tmp_path / "cache" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"" if name.endswith("lock") else b"x")
    (tmp_path / "cache" / "stores" / "en-de-0123456789abcdef.h5").symlink_to(elsewhere)
    (tmp_path / "cache" / "link").symlink_to(elsewhere)
    assert main(["cache"]) == 0
    lines = capsys.readouterr().out.splitlines()
    kept = [line.split()[0] for line in lines if line.endswith("not made by st_paragram, kept")]
    top = {".git", "built-in-notes.tsv", "link", "project", "thesis.docx"}
    names = (
        ".en-ru-0123456789abcdef.h5.work",
        "en-de-0123456789abcdef.h5",
        "en-fr-0123456789abcdef.h5",
    )
    in_stores = {f"stores/{name}" for name in (*names, "in-use.lock", "notes", "own.h5")}
    assert set(kept) == top | in_stores | {"tasks/plan.md"}
    assert main(["cache", "clear"]) == 0
    left = {
        path.relative_to(tmp_path / "cache").as_posix()
        for path in (tmp_path / "cache").rglob("*")
        if path.is_file()
    }
    assert left == {*FOREIGN, "lid/lid.176.bin"}
    assert (tmp_path / "cache" / "stores" / "en-de-0123456789abcdef.h5").is_symlink()
    assert (elsewhere / "precious").exists() and (tmp_path / "cache" / "link").is_symlink()
