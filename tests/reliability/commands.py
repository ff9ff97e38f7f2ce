"""Commands that write something, and small inputs of two kinds for them."""

from __future__ import annotations

import hashlib
import random
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from support.data import make_pairs, write_store

from st_paragram.core.tokenizers.sentencepiece import SentencePieceTokenizer, train_vocabulary
from st_paragram.learning.models import directory
from st_paragram.learning.models.sentence_transformers_encoder import pipeline
from st_paragram.learning.modules.token_embedding import SentencePieceEmbedding


@dataclass(frozen=True)
class Command:
    """A command line and its output: `{in}` is the folder of inputs, `{n}` the kind of input, `{out}` the output."""

    words: str
    output: str
    keeps: tuple[str, ...] = ()  # folders next to the output that are kept for later runs
    dated: tuple[str, ...] = ()  # files of the output that hold times

    def line(self, kind: int, inputs: Path, folder: Path) -> list[str]:
        """The words of the command line for one kind of input and an output in `folder`."""
        values = {"in": inputs, "out": folder / self.output, "n": kind}
        return [word.format(**values) for word in self.words.split()]

    def contents(self, folder: Path) -> dict[str, str]:
        """Digests of the files below a folder by their paths, without what is kept and the locks."""
        return {
            path.relative_to(folder).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
            for path in sorted(folder.rglob("*"))
            if path.is_file() and path.suffix != ".lock" and path.name not in self.dated
            if path.relative_to(folder).parts[0] not in self.keeps
        }


_PAIRS = "--text en-es:{in}/pairs-{n}.tsv --vocab-size 200 --cleaning paper --output {out}"
_MODEL = "--model {in}/model-0 --output {out}"
_TRAINING = "--dim 128 --epochs 4 --anneal-interval 4 --output {out}"

COMMANDS = {
    "embed": Command(f"embed {{in}}/many-{{n}}.txt {_MODEL}", "e.npy"),
    "score": Command(f"score {{in}}/pairs-{{n}}.tsv --sort {_MODEL}", "y.tsv"),
    "dedupe": Command("dedupe {in}/many-{n}.txt --output {out}", "d.txt"),
    "prepare": Command(f"prepare --lang es {_PAIRS}", "s.h5"),
    "bitext": Command(f"bitext --lang es --no-download {_PAIRS}", "s.h5", keeps=("s.work",)),
    "mine": Command(f"mine --source {{in}}/few-{{n}}.en --target {{in}}/few-{{n}}.es {_MODEL}", "p.tsv"),
    "align": Command(f"align --documents {{in}}/documents-{{n}}/list.tsv {_MODEL}", "a.tsv"),
    "export": Command("export {in}/model-{n} {out} --dtype int8", "m"),
    "train": Command(
        f"train bitext --lang xx --data {{in}}/store-{{n}}.h5 {_TRAINING}", "t", dated=("training.json", "README.md")
    ),
}


def start(words: Sequence[str], log: Path) -> subprocess.Popen[bytes]:
    """Start a command in a separate process group; what it prints goes into `log`."""
    with log.open("wb") as file:
        command = [sys.executable, "-m", "st_paragram.cli.main", *words]
        return subprocess.Popen(command, stdout=file, stderr=subprocess.STDOUT, start_new_session=True)


def make_inputs(folder: Path, rows: int) -> None:
    """Make the inputs of all commands, of two kinds; the larger texts have ten times `rows` lines."""
    texts = [make_pairs(10 * rows, seed=kind) for kind in (0, 1)]
    sentences = (text for pairs in texts for pair in pairs for text in pair)
    vocabulary = SentencePieceTokenizer(train_vocabulary(sentences, 240))
    for kind, pairs in enumerate(texts):
        _write_texts(folder, kind, pairs, rows)
        torch.manual_seed(kind)
        directory.save(pipeline(SentencePieceEmbedding(vocabulary, 64), device="cpu"), folder / f"model-{kind}")
        write_store(folder / f"store-{kind}.h5", pairs[:rows], vocabulary)


def _write_texts(folder: Path, kind: int, pairs: Sequence[tuple[str, str]], rows: int) -> None:
    random.Random(kind).shuffle(many := [text for pair in pairs for text in pair])
    texts = {f"many-{kind}.txt": many, f"pairs-{kind}.tsv": map("\t".join, pairs)}
    for side, language in enumerate(("en", "es")):
        sentences = [pair[side] for pair in pairs[:rows]]
        texts[f"few-{kind}.{language}"] = sentences
        texts |= {f"documents-{kind}/{number}.{language}": sentences[number::20] for number in range(20)}
    texts[f"documents-{kind}/list.tsv"] = [f"{number}.en\t{number}.es" for number in range(20)]
    (folder / f"documents-{kind}").mkdir()
    for name, lines in texts.items():
        (folder / name).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8", newline="\n")
