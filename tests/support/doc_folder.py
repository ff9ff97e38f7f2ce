"""Small files under the names that pages of the documentation use, for their examples."""

from __future__ import annotations

import json
import lzma
import shutil
from pathlib import Path

import torch

import st_paragram
from st_paragram.cli.main import main
from st_paragram.core.sample import sample_pairs
from st_paragram.families.bgt.sentence_transformers_encoder import GenerativeEncoder
from support.dual_encoder import new_model, unlike_new, write_bitext
from support.generative import new_generator

PAIRS = 300
TEXTS = {
    0: "lines.txt wiki.en a.en questions.txt answers.txt sentences.txt",
    1: "wiki.es a.es more.txt",
}
# for generation, which takes longer
FEW = {0: "in.en styles.en sentences.en gone.txt", 1: "sentences.es ref.es"}


def make_folder(folder: Path) -> Path:
    """Texts, a store and a model of each kind, all tiny."""
    pairs = list(sample_pairs("es", PAIRS))
    _write_texts(folder, pairs)
    prepare = (
        f"prepare --lang es --text {folder}/en-es.tsv --vocab-size 300 --output"
        f" {folder}/data/en-es.h5"
    )
    assert main(prepare.split()) == 0
    torch.manual_seed(0)
    vocabulary = st_paragram.PairStore(folder / "data/en-es.h5").tokenizer()
    model = st_paragram.pipeline(st_paragram.SentencePieceEmbedding(vocabulary, 160))
    for name in ("p-sp-es", "p-sp-en"):
        st_paragram.save(model, folder / name)
    generator = new_generator(vocabulary)
    languages = ("en", "es")
    st_paragram.save(
        GenerativeEncoder.of(generator.semantic.pipeline, languages, vocabulary, generator),
        folder / "bgt-es",
    )
    dual = new_model(write_bitext(folder / "bitext.h5", vocabulary, pairs[:40]))
    st_paragram.save(unlike_new(dual), folder / "muse-cnn")
    return folder


def copy_what_is_named(source: Path, folder: Path, text: str) -> None:
    """Copy the files and folders whose names occur in a text."""
    for path in source.iterdir():
        if path.name == "data" and "data/en-es.h5" in text:
            shutil.copytree(path, folder / "data")
        elif path.name != "data" and path.name in text:
            (shutil.copytree if path.is_dir() else shutil.copy)(path, folder / path.name)


def _write_texts(folder: Path, pairs: list[tuple[str, str]]) -> None:
    for named, count in ((TEXTS, 12), (FEW, 2)):
        for side, names in named.items():
            for name in names.split():
                text = "".join(f"{pair[side]}\n" for pair in pairs[:count])
                (folder / name).write_text(text, encoding="utf-8")
    rows = "".join(f"{first}\t{second}\n" for first, second in pairs)
    for name in (
        "pairs.tsv",
        "bitext.tsv",
        "en-es.tsv",
        "en-es.tsv.xz",
        "paraphrases.tsv.xz",
        "en-de.tsv.xz",
    ):
        content = rows.encode()
        (folder / name).write_bytes(lzma.compress(content) if name.endswith(".xz") else content)
    (folder / "held-out.tsv").write_text(rows, encoding="utf-8")
    graded = [
        f"{i % 6}\t{first}\t{pairs[i + i % 6][1]}\n" for i, (first, _) in enumerate(pairs[:60])
    ]
    (folder / "graded.tsv").write_text("".join(graded), encoding="utf-8")
    for name, side in (("queries", 0), ("corpus", 1)):
        texts = [f"{i}\t{pair[side]}\n" for i, pair in enumerate(pairs[:40])]
        (folder / f"{name}.tsv").write_text("".join(texts), encoding="utf-8")
    (folder / "qrels.tsv").write_text("".join(f"{i}\t{i}\t1\n" for i in range(40)))
    (folder / "list.tsv").write_text("a.en\ta.es\n")
    news = [
        {"text": second, "lang": "es", "year": 2018 + i}
        for i, (_, second) in enumerate(pairs[20:26])
    ]
    (folder / "news.jsonl").write_text(
        "".join(f"{json.dumps(line)}\n" for line in news), encoding="utf-8"
    )
    labelled = [
        f"{1 - i % 2}\t{first}\t{pairs[i + i % 2][1]}\n" for i, (first, _) in enumerate(pairs[:60])
    ]
    (folder / "sample.tsv").write_text("".join(labelled), encoding="utf-8")
