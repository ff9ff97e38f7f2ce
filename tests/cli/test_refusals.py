"""What commands refuse: in one line that names the place once, before anything heavy is imported,
leaving nothing.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys

import pytest

from st_paragram import SearchIndex
from st_paragram.core.model_directory.find import shipped_folder

HEAVY = (
    "torch",
    "sentence_transformers",
    "transformers",
    "faiss",
    "matplotlib",
    "mteb",
    "huggingface_hub",
)
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
    "pivot --text en-es:{} --output new.tsv",
    "train bitext --lang es --data {} --output new",
    "train bitext --lang es --data pairs.tsv --dev {} --output new",
    "embed {} --output new.npy",
    "score {} --output new.tsv",
    "dedupe {} --output new.txt",
    "clean {} --lang es --output new.tsv",
    "mine --source {} --target en.txt --output new.tsv",
    "align --source {} --target en.txt --output new.tsv",
    "index {} --output new",
    "search index --queries {}",
    "import {} en.txt --output new",
    "evaluate p-sp-mini --translations {}",
]
#: Where a model is expected.
MODELS = [
    "embed en.txt --output new.npy --model {}",
    f"mine {SIDES} --output new.tsv --model {{}}",
    "search en.txt hello --model {}",
    "export {} new",
    "generate {} en.txt --task translate --output new.txt",
]
#: Where a file, and where a folder, is expected that is written.
OUTPUTS = [
    f"{PREPARE} --text pairs.tsv --output {{}}",
    "dedupe en.txt --output {}",
    "clean pairs.tsv --lang es --output {}",
    f"mine {SIDES} --output {{}}",
]
FOLDERS = [
    "download --lang es --corpus Tanzil --folder {}",
    "train bitext --lang es --data pairs.tsv --output {}",
    "export p-sp-mini {}",
    "get p-sp-mini --output {}",
]
REFUSED = {
    f"{PREPARE} --output new.h5": "no text; give at least one",
    f"{PREPARE} --text en.txt --output new.h5": "en.txt: row 1 has 1 column",
    f"{PREPARE} --text pairs.tsv --output new.tsv": "new.tsv: a pair store ends in .h5; name it",
    "embed empty --columns 1 --output new.npy": "empty: empty; give a table with at least one row",
    "evaluate p-sp-mini --data old": "old is a file, but a folder is expected; give a folder of",
    "train bitext --lang es --data pairs.tsv --config a.yaml": "a.yaml: no such file; check the",
    "clean pairs.tsv --lang es --cleaning list": "list: not readable as YAML (line 1: found",
    "embed en.txt --output /proc/new.npy": "/proc is not writable",
    "embed en.txt --output no/such/new.npy": "no: no such folder; create it, or correct the path",
    "embed en.txt --model index --output new.npy": "index: not a model directory, since it has no",
    "score pairs.tsv --labels qa": "qa is a folder, but a file is expected; name a file",
    "info en.txt": "en.txt: a file, but not a pair store; name a model, a pair store (.h5), an",
    "prepare --lang es --text pairs.tsv --vocab en.txt --output new.h5": (
        "not a sentencepiece model"
    ),
    f"{PREPARE} --text pairs.tsv --columns 1 1 --output new.h5": (
        "pairs.tsv: column 1 for both languages; name two columns"
    ),
    f"{PREPARE} --text pairs.tsv --temperature 0 --output new.h5": "temperature is 0.0; it must",
    f"{PREPARE} --text pairs.tsv --temperature=-1 --output new.h5": "temperature is -1.0; it must",
    f"{PREPARE} --text pairs.tsv --temperature nan --output new.h5": "temperature is nan; it must",
    "train bitext --lang es --data pairs.tsv --columns 1 1": "column 1 for both languages",
    "bitext --lang es --no-download": "no text: --no-download needs --text or --moses",
    "bitext --lang es --corpus Nothing": "Nothing: not in the catalog",
    "embed en.txt --output new.npy --dim 300": "300",
    "score en.txt --output new.tsv": "en.txt: row 1 has 1 column",
    "align --source en.txt --target empty --output new.tsv": "empty",
    "align --documents list --output new.tsv": "list, row 2: none: No such file",
    "search eval query": "eval: not a search index",
    "export all-MiniLM-L6-v2 new": "give a path, p-sp-mini, p-sp-base, p-sp-large, p-sp-LANG",
    "evaluate p-sp-mini --queries en.txt": "--queries, --corpus and --qrels belong together",
    "towers p-sp-mini --output new": "nothing to train on",
}
SAID = {command.format("none"): "none" for command in FILES}
SAID |= {command.format("qa"): "qa" for command in FILES}
SAID |= {
    command.format("nobody"): "no model 'nobody'"
    for command in MODELS
    if not command.startswith("evaluate")
}
SAID |= {command.format("./en.txt"): "en.txt is a file, but a" for command in MODELS}
SAID |= {command.format("qa"): "qa is a folder, but a" for command in OUTPUTS}
SAID |= {command.format("old"): "old is a file, but a" for command in FOLDERS}
SAID |= {
    command.format("old/new"): "old is a file, but a folder is expected"
    for command in [*OUTPUTS, *FOLDERS]
}
SAID |= {command.format("old"): "old exists; choose another name" for command in OUTPUTS} | REFUSED


@pytest.fixture(scope="module")
def ended(tmp_path_factory, pairs):
    """Status, output and errors of all commands, in one process, in a folder with all that they
    name.
    """
    folder = tmp_path_factory.mktemp("refusals")
    texts = {
        name: "".join(f"{pair[side]}\n" for pair in pairs[:60])
        for side, name in enumerate(("en.txt", "es.txt"))
    }
    texts |= {"pairs.tsv": "".join(f"{one}\t{other}\n" for one, other in pairs[:60])}
    texts |= {
        "list": "en.txt\tes.txt\nnone\tes.txt\n",
        "empty": "",
        "old": "old",
        "qa/en.tsv": "who\tshe\n",
    }
    for name, text in (
        texts | {"eval/tatoeba/spa-eng.tsv": "uno\tone\n", "data/x": "", "empty-folder/x": ""}
    ).items():
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
