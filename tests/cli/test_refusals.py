"""What commands refuse: in one line, and nothing is left behind."""

from __future__ import annotations

import pytest

from st_paragram.cli.main import main

SIDES = ["--source", "en.txt", "--target", "es.txt"]
REFUSED = [
    ["prepare", "--lang", "es", "--text", "none.tsv", "--output", "new.h5"],
    ["prepare", "--lang", "es", "--text", "pairs.tsv", "--output", "old"],
    ["prepare", "--lang", "es", "--text", "pairs.tsv", "--output", "en.txt/new.h5"],
    ["prepare", "--lang", "es", "--text", "en.txt", "--output", "new.h5"],
    ["prepare", "--lang", "es", "--output", "new.h5"],
    ["prepare", "--lang", "es", "--text", "pairs.tsv", "--output", "new.h5", "--workers", "0"],
    ["bitext", "--lang", "es", "--no-download"],
    ["bitext", "--lang", "es", "--corpus", "Nothing"],
    ["bitext", "--lang", "es", "--no-download", "--text", "none.tsv"],
    ["download", "--lang", "es", "--corpus", "Tanzil", "--folder", "en.txt"],
    ["download", "--lang", "es", "--parallel", "0"],
    ["download"],
    ["pivot", "--text", "en-es:none.tsv", "--output", "new.tsv"],
    ["pivot", "--text", "en-es:pairs.tsv", "--output", "."],
    ["embed", "none.txt", "--output", "new.npy"],
    ["embed", "empty.txt", "--output", "new.npy"],
    ["embed", "en.txt", "--output", "old"],
    ["embed", "en.txt", "--output", "new.npy", "--dim", "300"],
    ["embed", "en.txt", "--output", "new.csv"],
    ["embed", "en.txt", "--output", "new", "--dim", "300"],
    ["embed", "en.txt", "--output", "new.npy", "--model", "nobody"],
    ["score", "none.tsv", "--output", "new.tsv"],
    ["score", "en.txt", "--output", "new.tsv"],
    ["score", "pairs.tsv", "--output", "new.tsv", "--background-source", "eval", "--background-target", "es.txt"],
    ["dedupe", "none.txt", "--output", "new.txt"],
    ["dedupe", "empty.txt", "--output", "new.txt"],
    ["dedupe", "empty.txt", "--pairs", "--output", "new.txt"],
    ["dedupe", "en.txt", "--pairs", "--output", "new.txt"],
    ["dedupe", "en.txt", "--output", "old"],
    ["mine", *SIDES, "--output", "old"],
    ["mine", *SIDES, "--output", "new.tsv", "--model", "nobody"],
    ["mine", "--source", "en.txt", "--target", "empty.txt", "--output", "new.tsv"],
    ["mine", *SIDES, "--output", "new.tsv", "--neighbors", "70"],
    ["mine", *SIDES, "--output", "new.tsv", "--ids"],
    ["mine", *SIDES, "--output", "new.tsv", "--index", "Nonsense"],
    ["score", "pairs.tsv", "--output", "new.tsv", "--background-source", "empty.txt", "--background-target", "es.txt"],
    ["index", "empty.txt", "--output", "new"],
    ["align", "--source", "en.txt", "--target", "empty.txt", "--output", "new.tsv"],
    ["index", "en.txt", "--output", "old"],
    ["index", "en.txt", "--output", "new", "--answers"],
    ["evaluate", "p-sp-mini", "--data", "none"],
    ["evaluate", "p-sp-mini", "--data", "empty"],
    ["evaluate", "nobody", "--data", "eval"],
    ["evaluate", "p-sp-mini", "--translations", "none.tsv"],
    ["evaluate", "p-sp-mini", "--queries", "en.txt"],
    ["towers", "p-sp-mini", "--output", "new"],
    ["towers", "none", "--qa", "qa", "--output", "new"],
    ["towers", "p-sp-mini", "--nli", "qa/en.tsv", "--output", "new"],
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory, pairs):
    """A folder with all that the commands name."""
    folder = tmp_path_factory.mktemp("refusals")
    (folder / "en.txt").write_text("".join(f"{one}\n" for one, _ in pairs[:60]))
    (folder / "es.txt").write_text("".join(f"{other}\n" for _, other in pairs[:60]))
    (folder / "pairs.tsv").write_text("".join(f"{one}\t{other}\n" for one, other in pairs[:60]))
    (folder / "again.tsv").write_text((folder / "pairs.tsv").read_text())
    (folder / "list").write_text("en.txt\tes.txt\n")
    (folder / "empty.txt").write_text("")
    (folder / "old").write_text("old")
    for name in ("empty", "nli"):
        (folder / name).mkdir()
    (folder / "qa").mkdir()
    (folder / "qa" / "en.tsv").write_text("who\tshe\n")
    (folder / "eval" / "tatoeba").mkdir(parents=True)
    (folder / "eval" / "tatoeba" / "spa-eng.tsv").write_text("uno\tone\ndos\ttwo\n")
    return folder


def contents(folder):
    """All files of a folder, with what is in them; `bitext` keeps its work in `data`."""
    found = (path for path in folder.rglob("*") if "data" not in path.relative_to(folder).parts)
    return {path: path.is_file() and path.read_bytes() for path in found}


@pytest.mark.parametrize("command", REFUSED, ids=" ".join)
def test_what_is_refused_leaves_nothing(folder, monkeypatch, capsys, command):
    monkeypatch.chdir(folder)
    before = contents(folder)
    assert main(command) == 1
    assert contents(folder) == before
    assert capsys.readouterr().err.strip().split("\n")[-1].startswith(f"st-paragram {command[0]}: ")
