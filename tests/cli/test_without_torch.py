"""Every command on an averaging model works in a process that cannot import torch, and gives the same bytes."""

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

COMMAND = "from st_paragram.cli.main import main\nraise SystemExit(main(sys.argv[1:]))"


@pytest.fixture(scope="module")
def texts(tmp_path_factory, pairs):
    """A folder with the texts that commands read."""
    folder = tmp_path_factory.mktemp("texts")
    (folder / "en.txt").write_text("".join(f"{one}\n" for one, _ in pairs[:60]))
    (folder / "es.txt").write_text("".join(f"{other}\n" for _, other in pairs[:60]))
    (folder / "pairs.tsv").write_text("".join(f"{one}\t{other}\n" for one, other in pairs[:60]))
    return folder


def run(*arguments, cwd=None, packages=HEAVY):
    """The command's standard output; its process cannot import the packages."""
    done = run_without(COMMAND, arguments, packages, cwd)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_embed_writes_the_same_bytes_as_the_sentence_transformer(texts, tmp_path):
    run("embed", texts / "en.txt", "--output", tmp_path / "x.npy")
    lines = (texts / "en.txt").read_text().splitlines()
    expected = st_paragram.load("p-sp-mini", device="cpu").encode(lines)
    np.testing.assert_array_equal(np.load(tmp_path / "x.npy"), expected)


def test_embed_sharded_and_score(texts, tmp_path):
    run("embed", texts / "en.txt", texts / "es.txt", "--output", tmp_path / "shards", "--shard-lines", 50)
    assert json.loads((tmp_path / "shards/embeddings.json").read_text())["rows"] == 120
    run("score", texts / "pairs.tsv", "--output", tmp_path / "scored.tsv")
    assert len((tmp_path / "scored.tsv").read_text().splitlines()) == 60


def test_dedupe(texts, tmp_path):
    text = ("dedupe", texts / "pairs.tsv", "--pairs", "--sides", "either")
    run(*text, "--output", tmp_path / "once.tsv", packages=(*HEAVY, "faiss"))
    pairs, once = (path.read_text().splitlines() for path in (text[1], tmp_path / "once.tsv"))
    assert 0 < len(once) <= 60 and set(once) <= set(pairs)


def test_mine_and_align(texts, tmp_path):
    sides = ("--source", texts / "en.txt", "--target", texts / "es.txt")
    run("mine", *sides, "--output", tmp_path / "mined.tsv")
    assert main(["mine", *map(str, sides), "--output", str(tmp_path / "again.tsv")]) == 0
    mined = (tmp_path / "mined.tsv").read_text()
    assert mined and mined == (tmp_path / "again.tsv").read_text()
    run("align", *sides, "--output", tmp_path / "aligned.tsv")
    assert (tmp_path / "aligned.tsv").read_text()


def test_index_and_search_without_faiss(texts, tmp_path):
    packages = (*HEAVY, "faiss")
    run("index", texts / "es.txt", "--output", tmp_path / "lines.index", packages=packages)
    query = (texts / "es.txt").read_text().splitlines()[7]
    found = run("search", tmp_path / "lines.index", query, packages=packages).split("\t")
    assert float(found[-3].split()[-1]) == pytest.approx(1, abs=1e-5) or query in "\t".join(found)
    run("index", texts / "en.txt", "--add-to", tmp_path / "lines.index", "--tag", "lang=en", packages=packages)
    run("index", "--delete-from", tmp_path / "lines.index", "--lines", "8", packages=packages)
    run("index", "--compact", tmp_path / "lines.index", packages=packages)
    first = (texts / "en.txt").read_text().splitlines()[0]
    found = run("search", tmp_path / "lines.index", first, "--where", "lang = 'en'", "-k", 1, packages=packages)
    assert found.endswith(f"\t61\t{first}\n")


EXPORTS = """from st_paragram.cli.main import main
for number, options in enumerate(["--dtype float16 --dim 50 --normalize", "--dtype int8"]):
    assert main(["export", "p-sp-mini", f"{sys.argv[1]}/{number}", *options.split()]) == 0
"""


def test_export(tmp_path):
    done = run_without(EXPORTS, [tmp_path])
    assert done.returncode == 0, done.stderr
    assert len(list(tmp_path.glob("*/README.md"))) == 2


def test_get_and_info(tmp_path):
    run("get", "p-sp-mini", "--output", tmp_path / "mini")
    assert st_paragram.load(tmp_path / "mini", device="cpu").get_embedding_dimension() == 256
    assert "averaging" in run("info", tmp_path / "mini", "--check")
    assert "st_paragram" in run("info")


def test_the_paraphrase_filter(texts):
    script = (
        "from st_paragram.tools.cleaning.paraphrases import ParaphraseScore\n"
        "print(ParaphraseScore(model='p-sp-mini').scores([('a station', 'the station')]))"
    )
    done = run_without(script)
    assert done.returncode == 0, done.stderr
    assert 0.5 < json.loads(done.stdout)[0] < 1


def test_a_model_that_needs_torch_says_so(tmp_path):
    (tmp_path / "st_paragram.json").write_text('{"format_version": 3, "architecture": "modules"}')
    done = run_without(COMMAND, ["export", tmp_path, tmp_path / "copy"])
    assert done.returncode == 1 and "only averaging models" in done.stderr


def _free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


def test_serve_answers():
    pytest.importorskip("uvicorn")
    port = _free_port()
    block = f"import sys\nfor name in {HEAVY}:\n    sys.modules[name] = None\n"
    given = [sys.executable, "-c", block + COMMAND, "serve", "--port", str(port)]
    server = subprocess.Popen(given, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        body = json.dumps({"pairs": [["a station", "the station"]]}).encode()
        request = urllib.request.Request(f"http://127.0.0.1:{port}/score", body, {"content-type": "application/json"})
        for _ in range(200):
            try:
                answer = json.loads(urllib.request.urlopen(request, timeout=5).read())
                break
            except OSError:
                assert server.poll() is None
                time.sleep(0.05)
        assert 0.5 < answer["scores"][0] < 1
    finally:
        server.terminate()
        server.wait(20)
