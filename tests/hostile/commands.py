"""The commands that write something: small inputs of two kinds, and how each command is called on either."""

from __future__ import annotations

import hashlib
import random
import shutil
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from support.data import make_pairs

from hostile.mirror import address

#: Where the output of a command stands, and where its inputs.
OUT, IN = "{out}", "{in}"

_DIMENSION = 64
_VOCABULARY = 240


@dataclass(frozen=True)
class Command:
    """A command and its output.

    Attributes:
        words: Of the command line; `{in}` is the folder of inputs, `{out}` the output, `{n}` the kind of input.
        output: Its name.
        torch: It needs torch; what does not starts sooner.
        replaces: It replaces an output that exists, whether that is asked for or not.
        keeps: Folders beside the output that are kept for later runs.
        mirror: It fetches what it works on.
        volatile: Files of the output in which times are written.
        starts: The input that it changes, if it does not make an output: the output is a copy of it before.
    """

    words: tuple[str, ...]
    output: str
    torch: bool = True
    replaces: bool = False
    keeps: tuple[str, ...] = ()
    mirror: bool = False
    volatile: frozenset[str] = frozenset()
    starts: str = ""

    def begin(self, inputs: Path, folder: Path) -> None:
        """Make the folder of the output."""
        folder.mkdir()
        if self.starts:
            shutil.copytree(inputs / self.starts, folder / self.output)

    def line(self, kind: int, inputs: Path, output: Path, overwrite: bool = False) -> list[str]:
        """The command line for one kind of input."""
        values = {IN: str(inputs), OUT: str(output / self.output), "{n}": str(kind), "{url}": address(inputs)}
        words = list(self.words)
        for name, value in values.items():
            words = [word.replace(name, value) for word in words]
        return [*words, "--overwrite"] if overwrite and not self.replaces else words

    def contents(self, folder: Path) -> dict[str, str]:
        """What stands in the folder of the output: digests of files by paths; of what is kept, leftovers alone."""
        found = {}
        for path in sorted(folder.rglob("*")):
            name = path.relative_to(folder).as_posix()
            if name.split("/")[0] in self.keeps and ".part" not in path.name:
                continue
            plain = path.is_file() and path.name not in self.volatile
            found[name] = hashlib.sha256(path.read_bytes()).hexdigest() if plain else ""
        return found

    def made(self, folder: Path) -> dict[str, str]:
        """The output alone; nothing if it is not there."""
        output = {self.output}
        return {name: digest for name, digest in self.contents(folder).items() if {name.split("/")[0]} == output}


_MODEL = ("--model", f"{IN}/model-0", "--output", OUT)
_STORE = ("--vocab-size", "200", "--cleaning", "paper", "--output", OUT)
_PAIRS = ("--text", f"en-es:{IN}/pairs-{{n}}.tsv", *_STORE)
_TRAINING = ("--dim", "128", "--epochs", "4", "--anneal-interval", "4")

COMMANDS = {
    "embed": Command(("embed", f"{IN}/many-{{n}}.txt", *_MODEL), "e.npy"),
    "score": Command(("score", f"{IN}/pairs-{{n}}.tsv", "--sort", *_MODEL), "y.tsv"),
    "score-background": Command(("score", f"{IN}/few-{{n}}.tsv", "--background", "self", *_MODEL), "y.tsv"),
    "dedupe": Command(("dedupe", f"{IN}/many-{{n}}.txt", "--output", OUT), "d.txt", torch=False),
    "prepare": Command(("prepare", "--lang", "es", *_PAIRS), "s.h5", torch=False),
    "paranmt": Command(
        ("paranmt", "--text", f"{IN}/scored-{{n}}.tsv", "--vocab-size", "120", "--output", OUT), "s.h5", torch=False
    ),
    "pivot": Command(
        ("pivot", "--text", f"es-en:{IN}/pairs-{{n}}.tsv", "--output", OUT), "p.tsv", torch=False, replaces=True
    ),
    "bitext": Command(("bitext", "--lang", "es", "--no-download", *_PAIRS), "s.h5", torch=False, keeps=("s.work",)),
    "bitext-mirror": Command(
        ("bitext", "--lang", "tr", "--mirror", "{url}", "--folder", "raw", "--seed", "{n}", *_STORE),
        "s.h5",
        torch=False,
        keeps=("s.work", "raw"),
        mirror=True,
    ),
    "mine": Command(("mine", "--source", f"{IN}/few-{{n}}.en", "--target", f"{IN}/few-{{n}}.es", *_MODEL), "p.tsv"),
    "align": Command(("align", "--documents", f"{IN}/documents-{{n}}/list.tsv", *_MODEL), "a.tsv"),
    "index": Command(("index", f"{IN}/few-{{n}}.en", "--index", "IVF16,Flat", *_MODEL), "i"),
    "index-add": Command(
        ("index", f"{IN}/few-{{n}}.es", "--tag", "kind={n}", "--add-to", OUT, *_MODEL[:2]),
        "i",
        replaces=True,
        starts="index",
    ),
    "index-delete": Command(
        ("index", f"{IN}/few-{{n}}.en", "--delete-from", OUT, *_MODEL[:2]), "i", replaces=True, starts="index"
    ),
    "index-compact": Command(
        ("index", "--compact", OUT, "--seed", "{n}", *_MODEL[:2]), "i", replaces=True, starts="changed"
    ),
    "search": Command(("search", f"{IN}/index", "--queries", f"{IN}/few-{{n}}.es", "--output", OUT), "f.tsv"),
    "export": Command(("export", f"{IN}/model-{{n}}", OUT, "--dtype", "int8"), "m"),
    "train": Command(
        ("train", "bitext", "--lang", "es", "--data", f"{IN}/store-{{n}}.h5", *_TRAINING, "--output", OUT),
        "t",
        volatile=frozenset({"training.json", "README.md", "SHA256SUMS"}),
    ),
    "evaluate": Command(
        ("evaluate", f"{IN}/model-{{n}}", "--data", f"{IN}/tests", "--benchmarks", "tatoeba", "--json", OUT),
        "r.json",
        replaces=True,
        volatile=frozenset({"r.json"}),
    ),
}


def make_inputs(folder: Path, names: Iterable[str], rows: int) -> None:
    """Make the inputs that commands need, of both kinds.

    Args:
        folder: An empty one.
        names: Of commands.
        rows: Of the smaller texts; the larger ones have ten times as many.
    """
    texts = [make_pairs(10 * rows, seed=kind) for kind in (0, 1)]
    for kind, pairs in enumerate(texts):
        _write_texts(folder, kind, pairs, rows)
    if any(COMMANDS[name].torch for name in names):
        _make_models([pairs[:rows] for pairs in texts], folder)


def _write_texts(folder: Path, kind: int, pairs: Sequence[tuple[str, str]], rows: int) -> None:
    rng = random.Random(kind)
    few, english, spanish = pairs[:rows], *([side[i] for side in pairs] for i in (0, 1))
    scored = [(one, other, f"{rng.uniform(0.5, 0.9):.3f}") for one, other in pairs]
    _write(folder / f"many-{kind}.txt", ((line,) for line in (*english, *spanish)))
    _write(folder / f"pairs-{kind}.tsv", pairs)
    _write(folder / f"scored-{kind}.tsv", scored)
    _write(folder / f"few-{kind}.tsv", few)
    _write(folder / f"few-{kind}.en", ((one,) for one, _ in few))
    _write(folder / f"few-{kind}.es", ((other,) for _, other in few))
    _write(folder / "tests" / "tatoeba" / "spa-eng.tsv", ((other, one) for one, other in few))
    documents = folder / f"documents-{kind}"
    for number in range(20):
        part = few[number::20]
        _write(documents / f"{number}.en", ((one,) for one, _ in part))
        _write(documents / f"{number}.es", ((other,) for _, other in part))
    _write(documents / "list.tsv", ((f"{number}.en", f"{number}.es") for number in range(20)))


def _write(path: Path, rows: Iterable[Sequence[str]]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join("\t".join(row) + "\n" for row in rows), encoding="utf-8", newline="\n")


def _make_models(texts: Sequence[Sequence[tuple[str, str]]], folder: Path) -> None:
    """A vocabulary, and over it for each kind of text a model and a store; an index."""
    import torch

    from st_paragram.core.pair_store import PairStoreWriter
    from st_paragram.core.tokenizers.sentencepiece import SentencePieceTokenizer, train_vocabulary
    from st_paragram.learning.models import directory
    from st_paragram.learning.models.encoder import pipeline
    from st_paragram.learning.modules.sentencepiece_embedding import SentencePieceEmbedding
    from st_paragram.tools.search.search_index import SearchIndex

    sentences = (text for pairs in texts for pair in pairs for text in pair)
    vocabulary = SentencePieceTokenizer(train_vocabulary(sentences, _VOCABULARY))
    for kind, pairs in enumerate(texts):
        torch.manual_seed(kind)
        model = pipeline(SentencePieceEmbedding(vocabulary, _DIMENSION), device="cpu")
        directory.save(model, folder / f"model-{kind}")
        with PairStoreWriter(folder / f"store-{kind}.h5", ("en", "es"), vocabulary, 100) as writer:
            writer.append(*(part for side in zip(*pairs, strict=True) for part in vocabulary.encode(list(side))))
    SearchIndex.build(folder / "few-0.en", folder / "index", folder / "model-0")
    changed = SearchIndex.build(folder / "few-0.en", folder / "changed", folder / "model-0", metadata={"kind": 0})
    changed.add(folder / "few-1.es", {"kind": 1})
    changed.delete(lines=range(10, 100))
