"""What can be refused is refused at once: help and errors need none of the packages that take seconds to import."""

import json
import re
import subprocess
import sys

import pytest

HEAVY = ("torch", "sentence_transformers", "transformers", "faiss", "matplotlib", "mteb", "huggingface_hub")
SCRIPT = """
import contextlib, io, json, sys
for name in {heavy!r}:
    sys.modules[name] = None  # an import of it fails
from st_paragram.cli.main import main
ended = []
for arguments in json.loads(sys.argv[1]):
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            status = main(arguments)
        except SystemExit as error:
            status = error.code
    ended.append([status, out.getvalue(), err.getvalue()])
print(json.dumps(ended))
"""
COMMANDS = ("mine", "align", "index", "search", "score", "dedupe", "embed", "export")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Two texts, something that has the files of a model, an output of an earlier run."""
    folder = tmp_path_factory.mktemp("start")
    for name in ("a", "b", "pairs"):
        (folder / name).write_text("one\tuno\n")
    (folder / "model").mkdir()
    (folder / "old").write_text("old")
    (folder / "list").write_text("a\tb\nnone\tb\n")
    return folder


MINE, BOTH, MODEL = ["mine", "--output", "new"], ["--source", "a", "--target", "b"], ["--model", "model"]
REFUSED = [
    ([*MINE, "--source", "none", "--target", "b", *MODEL], "none: No such file"),
    ([*MINE, "--source", "a", "--target", ".", *MODEL], ". is a folder, where a file is expected; name a file"),
    ([*MINE, *BOTH, "--model", "nobody"], "no model 'nobody': no such folder"),
    (["mine", "--output", "old", *BOTH, *MODEL], "old exists; choose another name or give --overwrite"),
    (["mine", "--output", "a/new", *BOTH, *MODEL], "a is a file, where a folder is expected"),
    ([*MINE, *BOTH, *MODEL, "--memory", "1M"], "memory is 1,048,576 bytes; give at least 256M"),
    ([*MINE, *BOTH, *MODEL, "--neighbors", "0"], "neighbors is 0; it must be greater than or equal to 1"),
    (["align", "--output", "new", "--source", "none", "--target", "b", *MODEL], "none: No such file"),
    (["align", "--output", "old", *BOTH, *MODEL], "old exists; choose another name or give --overwrite"),
    (["align", "--output", "new", *BOTH, "--model", "nobody"], "no model 'nobody'"),
    (["align", "--output", "new", "--documents", "list", *MODEL], "list, row 2: none: No such file"),
    (["index", "none", "--output", "new", *MODEL], "none: No such file"),
    (["index", "a", "--output", "old", *MODEL], "old is a file, where a folder is expected"),
    (["index", "a", "--output", "new", "--model", "nobody"], "no model 'nobody'"),
    (["search", "none", "query"], "none: no such index folder"),
    (["search", "model", "query"], "model: not a search index"),
    (["search", "none", "query", "--output", "old"], "old exists"),
    (["score", "none", "--output", "new", *MODEL], "none: No such file"),
    (["score", "pairs", "--output", "old", *MODEL], "old exists; choose another name or give --overwrite"),
    (["score", "pairs", "--output", "new", "--model", "nobody"], "no model 'nobody'"),
    (["score", "pairs", "--output", "new", "--background-source", "none", "--background-target", "b"], "none: No such"),
    (["score", "pairs", "--output", "new", "--labels", "none", *MODEL], "none: No such file"),
    (["dedupe", "none", "--output", "new"], "none: No such file"),
    (["dedupe", "a", "--output", "old"], "old exists; choose another name or give --overwrite"),
    (["embed", "none", "--output", "new.npy", *MODEL], "none: No such file"),
    (["embed", "a", "--output", "old", *MODEL], "old is a file, where a folder is expected; choose another name"),
    (["embed", "a", "--output", "new.npy", "--model", "nobody"], "no model 'nobody'"),
    (["export", "nobody", "new"], "no model 'nobody'"),
    (["export", "all-MiniLM-L6-v2", "new"], "or name one of the hub as owner/name"),
    (["export", "model", "old"], "old is a file, where a folder is expected"),
]


@pytest.fixture(scope="module")
def ended(folder):
    """Status, output and errors of all commands, in one process."""
    commands = [*(arguments for arguments, _ in REFUSED), ["--help"], *([name, "--help"] for name in COMMANDS)]
    process = [sys.executable, "-c", SCRIPT.format(heavy=HEAVY), json.dumps(commands)]
    made = subprocess.run(process, capture_output=True, text=True, cwd=folder, check=False)
    assert made.returncode == 0, made.stderr
    return json.loads(made.stdout)


@pytest.mark.parametrize("number", range(len(REFUSED)), ids=[" ".join(arguments) for arguments, _ in REFUSED])
def test_what_cannot_be_is_refused_in_a_line_before_anything_is_loaded(ended, number):
    status, out, err = ended[number]
    assert (status, out) == (1, "")
    assert REFUSED[number][1] in err and err.count("\n") == 1


def test_nothing_is_left_behind(ended, folder):
    assert sorted(path.name for path in folder.iterdir()) == ["a", "b", "list", "model", "old", "pairs"]


def test_help_shows_every_default(ended):
    assert all(status == 0 for status, _, _ in ended[len(REFUSED) :])
    helps = {name: " ".join(out.split()) for name, (_, out, _) in zip(COMMANDS, ended[-len(COMMANDS) :], strict=True)}
    assert "--memory SIZE" in helps["mine"] and "(default: 4G)" in helps["mine"]
    assert re.search("--most-repeats( N)?, --max-repeats N", helps["mine"])  # Python 3.13 names the value once
    for option in ("--neighbors N", "--recall X", "--precision {float16,int8}"):
        assert option in helps["mine"]
    assert "--neighbors N" in helps["align"] and "--skip-below SCORE" in helps["align"] and "--all" in helps["align"]
    assert "-k N" in helps["search"] and "default: half of them" in helps["search"]
    assert "--margin {ratio,distance,absolute}" in helps["score"] and "(default: 0.95)" in helps["score"]
    assert "--approximate" in helps["index"]
