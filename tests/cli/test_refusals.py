"""What commands refuse: in one line that names the place once, before anything heavy is imported, leaving nothing."""

from __future__ import annotations

import errno
import json
import shutil
import subprocess
import sys

import pytest

from st_paragram import SearchIndex
from st_paragram.cli.main import main
from st_paragram.core.encoding.find import shipped_folder
from st_paragram.errors import one_line

HEAVY = ("torch", "sentence_transformers", "transformers", "faiss", "matplotlib", "mteb", "huggingface_hub")
SCRIPT = f"""
import contextlib, io, json, os, sys
for name in {HEAVY!r}:
    sys.modules[name] = None  # an import of it fails
from st_paragram.cli.main import main
ended = {{}}
for command in json.loads(sys.argv[1]):
    before, out, err = sorted(os.walk(".")), io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        status = main(command.split())
    ended[command] = [status, out.getvalue(), err.getvalue(), before == sorted(os.walk("."))]
print(json.dumps(ended))
"""

SIDES = "--source en.txt --target es.txt"
PREPARE = "prepare --lang es --vocab-size 60"
#: Commands with {} where a file is expected that is read.
FILES = [
    f"{PREPARE} --text {{}} --output new.h5",
    f"{PREPARE} --moses {{}} en.txt --output new.h5",
    f"{PREPARE} --text pairs.tsv --vocab {{}} --output new.h5",
    "bitext --lang es --no-download --text {} --output new.h5",
    "pivot --text en-es:{} --output new.tsv",
    "train bitext --lang es --data {} --output new",
    "train bitext --lang es --data pairs.tsv --dev {} --output new",
    "train bitext --lang es --data pairs.tsv --dev-bitext {} --output new",
    "embed {} --output new.npy",
    "score {} --output new.tsv",
    "score pairs.tsv --output new.tsv --labels {}",
    "score pairs.tsv --output new.tsv --background-source {} --background-target es.txt",
    "dedupe {} --output new.txt",
    "mine --source {} --target en.txt --output new.tsv",
    "align --source {} --target en.txt --output new.tsv",
    "align --documents {} --output new.tsv",
    "index {} --output new",
    "search index --queries {}",
    "import {} en.txt --output new",
    "import en.txt {} --output new",
    "evaluate p-sp-mini --pairs {}",
]
#: Where a model is expected.
MODELS = [
    "embed en.txt --output new.npy --model {}",
    "score pairs.tsv --output new.tsv --model {}",
    f"mine {SIDES} --output new.tsv --model {{}}",
    f"align {SIDES} --output new.tsv --model {{}}",
    "index en.txt --output new --model {}",
    "search en.txt hello --model {}",
    "evaluate {} --data eval --benchmarks tatoeba",
    "export {} new",
    "generate {} en.txt --task translate --output new.txt",
]
#: Where a file, and where a folder, is expected that is written.
OUTPUTS = [
    f"{PREPARE} --text pairs.tsv --output {{}}",
    "score pairs.tsv --output {}",
    "dedupe en.txt --output {}",
    f"mine {SIDES} --output {{}}",
    f"align {SIDES} --output {{}}",
    "search index hello --output {}",
]
FOLDERS = [
    "download --lang es --corpus Tanzil --folder {}",
    "train bitext --lang es --data pairs.tsv --output {}",
    "embed en.txt --output {}",
    "index en.txt --output {}",
    "export p-sp-mini {}",
    "import en.txt en.txt --output {}",
    "get p-sp-mini --output {}",
]
REFUSED = {
    f"{PREPARE} --output new.h5": "no text; give at least one",
    f"{PREPARE} --text en.txt --output new.h5": "en.txt: row 1 has 1 column",
    f"{PREPARE} --text pairs.tsv --output new.h5 --workers 0": "workers",
    f"{PREPARE} --text en-de:pairs.tsv --output new.h5": "columns en-de",
    f"{PREPARE} --text pairs.tsv --cleaning default --min-length 2 --output new.h5": "--min-length cannot be combined",
    f"{PREPARE} --text pairs.tsv --vocab en.txt --output new.h5": "not a sentencepiece model",
    "bitext --lang es --no-download": "no text: --no-download needs --text or --moses",
    "bitext --lang es --corpus Nothing": "Nothing: not in the catalog",
    "download --lang es --parallel 0": "parallel",
    "download": "no languages to fetch",
    "embed empty --output new.npy": "empty: empty",
    "embed en.txt --output new.npy --dim 300": "300",
    "score en.txt --output new.tsv": "en.txt: row 1 has 1 column",
    f"mine {SIDES} --output new.tsv --neighbors 0": "neighbors is 0; it must be greater than or equal to 1",
    f"mine {SIDES} --output new.tsv --neighbors 70": "70",
    f"mine {SIDES} --output new.tsv --memory 1M": "memory is 1,048,576 bytes; give at least 256M",
    f"mine {SIDES} --output new.tsv --ids": "en.txt",
    "mine --source en.txt --target empty --output new.tsv": "empty: no sentences",
    "align --source en.txt --target empty --output new.tsv": "empty",
    "align --documents list --output new.tsv": "list, row 2: none: No such file",
    "index empty --output new": "empty: ",
    "index en.txt --output new --answers": "answers",
    "search none query": "none: no search index",
    "search eval query": "eval: no search index",
    "export all-MiniLM-L6-v2 new": "or name one of the hub as owner/name",
    "evaluate p-sp-mini --data none": "none: no such folder",
    "evaluate p-sp-mini --data empty-folder": "empty-folder: no data of a benchmark",
    "evaluate p-sp-mini --queries en.txt": "--queries, --corpus and --qrels belong together",
    "evaluate p-sp-mini --data en.txt --benchmarks tatoeba": "en.txt is a file, where a folder of evaluation data",
    "towers p-sp-mini --output new": "nothing to train on",
}
SAID = {command.format("none"): "none" for command in FILES}
SAID |= {command.format("qa"): "qa" for command in FILES}
SAID |= {command.format("nobody"): "no model 'nobody'" for command in MODELS if not command.startswith("evaluate")}
SAID |= {command.format("./en.txt"): "en.txt is a file, where a" for command in MODELS}
SAID |= {command.format("qa"): "qa is a folder, where a" for command in OUTPUTS}
SAID |= {command.format("old"): "old is a file, where a" for command in FOLDERS}
SAID |= {command.format("old/new"): "old is a file, where a folder is expected" for command in [*OUTPUTS, *FOLDERS]}
SAID |= {command.format("old"): "old exists; choose another name" for command in OUTPUTS} | REFUSED


@pytest.fixture(scope="module")
def ended(tmp_path_factory, pairs):
    """Status, output and errors of all commands, in one process, in a folder with all that they name."""
    folder = tmp_path_factory.mktemp("refusals")
    texts = {name: "".join(f"{pair[side]}\n" for pair in pairs[:60]) for side, name in enumerate(("en.txt", "es.txt"))}
    texts |= {"pairs.tsv": "".join(f"{one}\t{other}\n" for one, other in pairs[:60])}
    texts |= {"list": "en.txt\tes.txt\nnone\tes.txt\n", "empty": "", "old": "old", "qa/en.tsv": "who\tshe\n"}
    for name, text in (texts | {"eval/tatoeba/spa-eng.tsv": "uno\tone\n", "data/x": "", "empty-folder/x": ""}).items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    shutil.copytree(shipped_folder(), folder / "model")
    SearchIndex.build(["one two"], folder / "index", "p-sp-mini")
    process = [sys.executable, "-c", SCRIPT, json.dumps(list(SAID))]
    made = subprocess.run(process, capture_output=True, text=True, cwd=folder, check=False)
    assert made.returncode == 0, made.stderr
    return json.loads(made.stdout)


@pytest.mark.parametrize("command", SAID)
def test_what_cannot_be_is_refused_in_a_line_and_leaves_nothing(ended, command):
    status, out, err, unchanged = ended[command]
    assert (status, unchanged) == (1, True) and (not out or command.startswith("download"))
    line = err.strip().split("\n")[-1]
    assert line.startswith(f"st-paragram {command.split()[0]}: ") and SAID[command] in line
    assert "rrno" not in line and err.count("\n") - err.count("WARNING") == 1


@pytest.mark.parametrize("words", ["", "--qa none", "--nli en.txt", "--qa qa --model none", "--qa qa --overwrite"])
def test_towers_are_refused(words, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "en.txt").write_text("one\n")
    (tmp_path / "qa").mkdir()
    assert main(["towers", *([] if "--model" in words else ["p-sp-mini"]), *words.split(), "--output", "qa"]) == 1
    said = capsys.readouterr().err
    assert said.startswith("st-paragram towers: ") and said.count("\n") == 1


def test_an_error_about_a_file_that_is_named_says_only_why(tmp_path):
    error = PermissionError(errno.EACCES, "Permission denied", str(tmp_path / "x"))
    assert one_line(error, about=tmp_path / "x") == "Permission denied" == one_line(error, about=str(tmp_path / "x"))
    assert str(tmp_path / "x") in one_line(error, about=tmp_path / "y")
    assert one_line(ValueError("two\nlines"), about="x") == "two lines"
