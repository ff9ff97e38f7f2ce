"""Commands that are killed, that run twice at once, or whose disk is full: an output is whole, or
is not there.
"""

from __future__ import annotations

import hashlib
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch
from support.data import make_pairs, write_store

from st_paragram.cli.main import main
from st_paragram.learning.models import load_save
from st_paragram.learning.models.sentence_transformers_encoder import pipeline
from st_paragram.learning.modules.token_embedding import SentencePieceEmbedding

if sys.platform == "win32":
    pytest.skip("signals and limits as those of POSIX", allow_module_level=True)

import resource

_LIMIT = 120  # seconds for a run
#: Command lines, the name of what each makes, and files of it that hold times.
COMMANDS = {
    "embed": ("embed {in}/many.txt --model {in}/model --output {out}", "e.npy", ()),
    "prepare": (
        "prepare --lang es --text {in}/pairs.tsv --vocab-size 200 --cleaning paper --output {out}",
        "s.h5",
        (),
    ),
    "mine": (
        "mine --source {in}/few.en --target {in}/few.es --model {in}/model --output {out}",
        "p.tsv",
        (),
    ),
    "train": (
        (
            "train bitext --lang xx --data {in}/store.h5 --dim 128 --epochs 4 --anneal-interval 4"
            " --output {out}"
        ),
        "t",
        ("training.json", "README.md"),
    ),
}


@pytest.fixture(scope="module")
def inputs(tmp_path_factory, vocabulary):
    folder, pairs = tmp_path_factory.mktemp("inputs"), make_pairs(4000)
    texts = {
        "many.txt": [text for pair in pairs for text in pair],
        "pairs.tsv": map("\t".join, pairs),
    }
    texts |= {
        f"few.{language}": [pair[side] for pair in pairs[:400]]
        for side, language in enumerate(("en", "es"))
    }
    for name, lines in texts.items():
        (folder / name).write_text(
            "".join(f"{line}\n" for line in lines), encoding="utf-8", newline="\n"
        )
    torch.manual_seed(0)
    load_save.save(pipeline(SentencePieceEmbedding(vocabulary, 64), device="cpu"), folder / "model")
    write_store(folder / "store.h5", pairs[:400], vocabulary)
    return folder


def line(name, inputs, folder):
    """The words of a command whose output is in `folder`."""
    words, output, _ = COMMANDS[name]
    return [word.format(**{"in": inputs, "out": folder / output}) for word in words.split()]


def contents(name, folder):
    """Digests of the files below a folder by their paths, without the locks."""
    return {
        path.relative_to(folder).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.suffix != ".lock" and path.name not in COMMANDS[name][2]
    }


def start(words, folder):
    """Start a command in a separate process group and wait for the first file in its folder, or for
    its end.
    """
    folder.mkdir(exist_ok=True)
    with folder.with_suffix(".log").open("ab") as log:
        command = [sys.executable, "-m", "st_paragram.cli.main", *words]
        child = subprocess.Popen(command, stdout=log, stderr=log, start_new_session=True)
    while child.poll() is None and not any(folder.iterdir()):
        time.sleep(0.001)
    return child


@pytest.mark.parametrize(
    "name",
    [
        "embed",
        *(pytest.param(name, marks=pytest.mark.slow) for name in ("prepare", "mine", "train")),
    ],
)
def test_killed_and_run_again(name, inputs, tmp_path):
    output, whole, rng = COMMANDS[name][1], tmp_path / "whole", random.Random(name)
    child, begun = start(line(name, inputs, whole), whole), time.perf_counter()
    assert child.wait(_LIMIT) == 0
    expected, seconds = contents(name, whole), time.perf_counter() - begun
    for number in range(3):
        folder = tmp_path / f"try {number}"
        words = line(name, inputs, folder)
        child = start(words, folder)
        time.sleep(rng.uniform(0, seconds))
        if child.poll() is None:
            os.killpg(child.pid, signal.SIGKILL)
        killed = child.wait(_LIMIT) == -signal.SIGKILL
        made = {
            path: digest
            for path, digest in contents(name, folder).items()
            if Path(path).parts[0] == output
        }
        # whose folder grows by whole checkpoints
        assert made in ({}, expected) or (name == "train" and killed)
        if made != expected:  # else it was killed while it removed its working files
            again = [*words, "--resume"] if name == "train" and made else words
            assert start(again, folder).wait(_LIMIT) == 0
            assert contents(name, folder) == expected


def test_two_at_once(inputs, tmp_path):
    folder = tmp_path / "out"
    children = [start(line("embed", inputs, folder), folder) for _ in range(2)]
    assert sorted(child.wait(_LIMIT) for child in children) == [0, 1]
    said = folder.with_suffix(".log").read_text()
    assert "another run is writing" in said or "exists" in said
    assert [path.name for path in folder.iterdir()] == ["e.npy"]


@pytest.mark.parametrize("name", ["embed", "prepare", "mine"])
def test_a_full_disk(inputs, tmp_path, capsys, name):
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1024, before[1]))
    try:
        assert main(line(name, inputs, tmp_path)) == 1
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    said = capsys.readouterr().err.splitlines()[-1]
    assert str(tmp_path) in said and said.endswith(
        (": File too large; free disk space", ": No space left on device; free disk space")
    )
    assert not (tmp_path / COMMANDS[name][1]).exists() and not list(tmp_path.rglob(".*.part"))
