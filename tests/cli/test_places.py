"""What commands say of a file where a folder is expected, of a folder where a file is, and of what is missing.

Each is one line that has the right word and names the place once.
"""

from __future__ import annotations

import errno
import shutil

import pytest

from st_paragram import SearchIndex
from st_paragram.cli.main import main
from st_paragram.core.encoding.find import shipped_folder
from st_paragram.errors import one_line

STORE = "prepare --lang es --text {} --vocab-size 60 --output store.h5"
SIDES = "--source lines.txt --target lines.txt"
# Commands with {} where a file is expected that is read.
FILES = {
    "prepare": "prepare --lang es --text {} --output o.h5",
    "prepare --moses": "prepare --lang es --moses {} lines.txt --output o.h5",
    "prepare --vocab": "prepare --lang es --text pairs.tsv --vocab {} --output o.h5",
    "bitext": "bitext --lang es --no-download --text {} --output o.h5",
    "pivot": "pivot --text en-es:{} --output o.tsv",
    "train --data": "train bitext --lang es --data {} --output o",
    "train --dev": "train bitext --lang es --data pairs.tsv --dev {} --output o",
    "train --dev-bitext": "train bitext --lang es --data pairs.tsv --dev-bitext {} --output o",
    "embed": "embed {} --output o.npy",
    "score": "score {} --output o.tsv",
    "score --labels": "score pairs.tsv --output o.tsv --labels {}",
    "mine --source": "mine --source {} --target lines.txt --output o.tsv",
    "align --source": "align --source {} --target lines.txt --output o.tsv",
    "align --documents": "align --documents {} --output o.tsv",
    "index": "index {} --output o",
    "search --queries": "search index --queries {}",
    "serve --api-key-file": "serve p-sp-mini --port 0 --api-key-file {}",
    "import": "import {} lines.txt --output o",
    "import SENTENCEPIECE": "import lines.txt {} --output o",
    "push --scores": "push model a/b --dry-run --scores {}",
}
# Where a folder is expected that is read.
FOLDERS = {
    "evaluate --data": "evaluate p-sp-mini --data {} --benchmarks tatoeba",
    "serve --index": "serve p-sp-mini --port 0 --index {}",
    "train muse --qa": "train muse --langs en es --qa {} --output o",
    "train muse --nli": "train muse --langs en es --nli {} --output o",
}
# Where a model is expected.
MODELS = {
    "embed": "embed lines.txt --output o.npy --model {}",
    "score": "score pairs.tsv --output o.tsv --model {}",
    "mine": f"mine {SIDES} --output o.tsv --model {{}}",
    "align": f"align {SIDES} --output o.tsv --model {{}}",
    "index": "index lines.txt --output o --model {}",
    "search": "search index hello --model {}",
    "evaluate": "evaluate {} --data folder --benchmarks tatoeba",
    "serve": "serve {} --port 0",
    "export": "export {} o",
    "push": "push {} a/b --dry-run",
    "demo": "demo {}",
    "generate": "generate {} lines.txt --task translate --output o.txt",
}
# Where a file is expected that is written.
OUTPUTS = {
    "prepare": "prepare --lang es --text pairs.tsv --output {}",
    "pivot": "pivot --text en-es:pairs.tsv --output {}",
    "pivot --json": "pivot --text en-es:pairs.tsv --output o.tsv --json {}",
    "evaluate --json": "evaluate p-sp-mini --data folder --benchmarks tatoeba --json {}",
    "score": "score pairs.tsv --output {}",
    "mine": f"mine {SIDES} --output {{}}",
    "align": f"align {SIDES} --output {{}}",
    "search": "search index hello --output {}",
}
# Where a folder is expected that is written.
OUTPUT_FOLDERS = {
    "bitext --folder": "bitext --lang es --corpus Tanzil --folder {} --output o.h5",
    "download --folder": "download --lang es --corpus Tanzil --folder {}",
    "prepare --rejects": "prepare --lang es --text pairs.tsv --vocab-size 60 --rejects {} --output o.h5",
    "prepare --keep-text": "prepare --lang es --text pairs.tsv --vocab-size 60 --keep-text {} --output o.h5",
    "train": "train bitext --lang es --data pairs.tsv --output {}",
    "towers": "towers p-sp-mini --qa qa --output {}",
    "embed FOLDER": "embed lines.txt --output {}",
    "index": "index lines.txt --output {}",
    "export": "export p-sp-mini {}",
    "import": "import lines.txt lines.txt --output {}",
    "get": "get p-sp-mini --output {}",
}


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A folder with small files and empty folders."""
    folder = tmp_path_factory.mktemp("places")
    rows = [(f"the cat number {i} sleeps", f"el gato {i} duerme") for i in range(20)]
    texts = {
        "lines.txt": "".join(f"{first}\n" for first, _ in rows),
        "pairs.tsv": "".join(f"{first}\t{second}\n" for first, second in rows),
        "scored.tsv": "".join(f"{first}\t{second}\t0.8\n" for first, second in rows),
        "list.tsv": "lines.txt\tlines.txt\n",
        "a-file": "a\tb\n",
        "an-empty-one": "",
    }
    for name, text in texts.items():
        (folder / name).write_text(text)
    (folder / "a-loop").symlink_to("a-loop")
    for name in ("folder", "a-place"):
        (folder / name).mkdir()
    (folder / "qa").mkdir()
    (folder / "qa" / "en.tsv").write_text("".join(f"{first}\t{second}\n" for first, second in rows))
    shutil.copytree(shipped_folder(), folder / "model")
    SearchIndex.build(folder / "lines.txt", folder / "index", "p-sp-mini")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        assert main(STORE.format("pairs.tsv").split()) == 0
    return folder


@pytest.fixture
def said(place, monkeypatch, capsys):
    """Runs a command on a path and gives the one line that it says."""
    monkeypatch.chdir(place)
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setenv("XDG_CACHE_HOME", str(place / "cache"))
    before = sorted(place.iterdir())

    def run(command, path, shown=None):
        packages(command)
        assert main(command.format(path).split()) == 1, command
        error = capsys.readouterr().err.strip()
        assert "\n" not in error and error.startswith("st-paragram "), error
        assert error.count(shown or path) == 1, error
        assert "Errno" not in error and "errno" not in error, error
        left = {each.name for each in place.iterdir() if each not in before}
        assert left <= {"cache", "o.work"}, left  # what was done for bitext is kept
        return error

    return run


def packages(command):
    """Skip what needs packages that are not installed."""
    if command.startswith("serve"):
        pytest.importorskip("uvicorn")
    if command.startswith("demo"):
        pytest.importorskip("gradio")


def commands(*tables):
    rows = [(f"{kind} {name}", command, kind) for kind, table in tables for name, command in table.items()]
    marks = [[pytest.mark.slow] if "demo" in command or "mteb" in command else [] for _, command, _ in rows]
    given = [
        pytest.param(command, kind, id=name, marks=mark)
        for (name, command, kind), mark in zip(rows, marks, strict=True)
    ]
    return pytest.mark.parametrize(("command", "kind"), given)


READ, WRITTEN = ("file", FILES), ("output", OUTPUTS)
FOLDER, MODEL, NEW_FOLDER = ("folder", FOLDERS), ("model", MODELS), ("new folder", OUTPUT_FOLDERS)


@commands(READ, WRITTEN, FOLDER, MODEL, NEW_FOLDER)
def test_the_wrong_kind_of_place_is_named(command, kind, said):
    if kind in ("file", "output"):
        error = said(command, "a-place")
        assert "a-place is a folder, where a " in error or "Is a directory" in error
    else:
        assert "a-file is a file, where a" in said(command, "./a-file" if kind == "model" else "a-file", "a-file")


@commands(READ, FOLDER, MODEL)
@pytest.mark.parametrize("path", ["a-missing-one", "a-file/a-missing-one", "a-loop"])
def test_what_is_missing_is_named_once(command, kind, path, said):
    error = said(command, path if kind == "file" else f"./{path}", path)
    assert any(word in error.lower() for word in ("no such", "not a directory", "too many levels")), error


@commands(WRITTEN, NEW_FOLDER)
def test_an_output_below_a_file_is_refused(command, kind, said):
    assert "a-file is a file, where a folder is expected" in said(command, "a-file/new", "a-file")


@commands(("file", {name: command for name, command in FILES.items() if name != "import SENTENCEPIECE"}))
def test_an_empty_file_is_named_once(command, kind, said):
    said(command, "an-empty-one")


def test_an_error_about_a_file_that_is_named_says_only_why(tmp_path):
    error = PermissionError(errno.EACCES, "Permission denied", str(tmp_path / "x"))
    assert one_line(error, about=tmp_path / "x") == "Permission denied" == one_line(error, about=str(tmp_path / "x"))
    assert str(tmp_path / "x") in one_line(error, about=tmp_path / "y")
    assert one_line(ValueError("two\nlines"), about="x") == "two lines"
