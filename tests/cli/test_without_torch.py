"""Every command on an averaging model works in a process that cannot import torch, and gives the
same bytes.
"""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import time
import urllib.request

import numpy as np
import pytest
from support.without import HEAVY, run_without

import st_paragram
from st_paragram.cli.main import main
from st_paragram.core.extras import missing_from_light

COMMAND = "from st_paragram.cli.main import main\nraise SystemExit(main(sys.argv[1:]))"
SEVERAL = """import json
from st_paragram.cli.main import main
for command in json.loads(sys.argv[1]):
    status = main(command)
    assert status == 0, command
"""
SIDES = "--source en.txt --target es.txt"


@pytest.fixture
def texts(tmp_path, pairs, monkeypatch):
    """The current folder, with the texts that commands read; their first English line."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "en.txt").write_text("".join(f"{one}\n" for one, _ in pairs[:60]))
    (tmp_path / "es.txt").write_text("".join(f"{other}\n" for _, other in pairs[:60]))
    (tmp_path / "pairs.tsv").write_text("".join(f"{one}\t{other}\n" for one, other in pairs[:60]))
    return pairs[0][0]


def run(*commands, packages=(*HEAVY, "faiss")):
    """What commands, one after another, print in a process that cannot import the packages."""
    words = [command.split() if isinstance(command, str) else command for command in commands]
    done = run_without(SEVERAL, [json.dumps(words)], packages)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_texts_are_embedded_scored_deduplicated_mined_and_aligned(texts, tmp_path):
    run(
        "embed en.txt --output x.npy",
        "embed en.txt es.txt --output shards --shard-lines 50",
        "score pairs.tsv --output scored.tsv",
        "dedupe pairs.tsv --pairs --sides either --output once.tsv",
        f"mine {SIDES} --output mined.tsv",
        f"align {SIDES} --output aligned.tsv",
    )
    lines = (tmp_path / "en.txt").read_text().splitlines()
    expected = st_paragram.load("p-sp-mini", device="cpu").encode(lines)
    np.testing.assert_array_equal(np.load("x.npy"), expected)
    assert json.loads((tmp_path / "shards/embeddings.json").read_text())["rows"] == 120
    found = {
        name: (tmp_path / f"{name}.tsv").read_text()
        for name in ("pairs", "scored", "once", "mined", "aligned")
    }
    assert found["scored"].count("\n") == 60 and found["aligned"]
    assert 0 < found["once"].count("\n") <= 60 and set(found["once"].split("\n")) <= set(
        found["pairs"].split("\n")
    )
    assert main(f"mine {SIDES} --output again.tsv".split()) == 0
    assert found["mined"] == (tmp_path / "again.tsv").read_text() != ""


def test_an_index_is_made_changed_and_searched(texts):
    found = run(
        "index es.txt --output lines.index",
        "index en.txt --add-to lines.index --tag lang=en",
        ["index", "--delete-from", "lines.index", "--where", "line = 8"],
        "index --compact lines.index",
        ["search", "lines.index", texts, "--where", "lang = 'en'", "-k", "1"],
    )
    assert found.endswith(f"\t61\t{texts}\n")


def test_models_are_copied_and_described(texts, tmp_path):
    copies = [
        f"export p-sp-mini {number} {more}"
        for number, more in enumerate(("--dim 50 --normalize", "--dtype int8"))
    ]
    said = run(*copies, "get p-sp-mini --output mini", "info mini --check", "info")
    assert (
        "averaging" in said
        and "st_paragram" in said
        and len(list(tmp_path.glob("*/README.md"))) == 3
    )
    assert st_paragram.load("mini", device="cpu").get_embedding_dimension() == 256
    (tmp_path / "mini" / "st_paragram.json").write_text(
        '{"format_version": 3, "architecture": "modules"}'
    )
    done = run_without(COMMAND, ["export", "mini", "copy"])
    assert done.returncode == 1 and "only averaging models" in done.stderr


ADVICE = [
    (["evaluate", "p-sp-mini", "--graded", "graded.tsv"], HEAVY, "run: pip install h5py scipy"),
    (["train", "bitext", "--lang", "es"], ("h5py", "scipy"), "run: pip install h5py scipy"),
    (["train", "bitext", "--lang", "es"], HEAVY, "whl/cpu (without a GPU: 1.7 GB in all instead"),
]


@pytest.mark.parametrize(("words", "packages", "advice"), ADVICE)
def test_what_is_missing_is_installed_without_torch_if_that_is_enough(
    tmp_path, words, packages, advice
):
    (tmp_path / "graded.tsv").write_text("".join(f"{i}\ta {i}\tb {i}\n" for i in range(5)))
    done = run_without(COMMAND, words, packages, tmp_path)
    error = done.stderr.splitlines()[-1]
    assert done.returncode == 1
    assert "(the light installation leaves it out)" in error and advice in error
    if "whl/cpu" not in advice:
        assert "torch" not in error


def test_what_torch_leaves_missing_is_installed_with_the_package():
    advice = missing_from_light(ImportError("no module", name="datasets"))
    assert advice == (
        "datasets is not installed (the light installation leaves it out); run: pip install"
        " st_paragram"
    )


def test_serve_answers():
    pytest.importorskip("uvicorn")
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    block = f"import sys\nfor name in {HEAVY}:\n    sys.modules[name] = None\n"
    given = [sys.executable, "-c", block + COMMAND, "serve", "--port", str(port)]
    server = subprocess.Popen(given, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        body = json.dumps({"pairs": [["a station", "the station"]]}).encode()
        request = urllib.request.Request(
            f"http://127.0.0.1:{port}/score", body, {"content-type": "application/json"}
        )
        answer = None
        while answer is None:
            try:
                answer = json.loads(urllib.request.urlopen(request, timeout=5).read())
            except OSError:
                assert server.poll() is None
                time.sleep(0.05)
        assert 0.5 < answer["scores"][0] < 1
    finally:
        server.terminate()
        server.wait(20)
