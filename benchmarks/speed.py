"""Speed compared with other packages: `python benchmarks/speed.py`.

All programs use the same weights (`--model`, in float32) and the same text, on one thread and on
two. In each round, every program runs once, in a new process, one after another. Tables show the
median and range of the rounds. Programs that are not installed are left out, with the reason: `pip
install model2vec`.

encode   a list of strings to a matrix: a first pass over new sentences, and later passes; the same
         for paragraphs of eight of these sentences, whose words are known by then; also the
         milliseconds to load the model and to encode one new sentence
train    pairs/s of whole trainers
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from harness.encoding import SINGLES, later_rate, paragraphs, rate, single_ms
from harness.machine import describe_machine
from harness.models import load_encoder, load_model2vec, load_pipeline, load_plain
from harness.output import new_file, table, write_result
from harness.processes import Program, command, in_turn
from harness.texts import sentences

from st_paragram.cli.main import run_reporting_errors
from st_paragram.core.sample import sample_pairs

OURS, PLAIN = "st_paragram", "sentence-transformers"
LEAST_SECONDS = 1.0  # minimum time of the later passes together
TRAIN_SECONDS = 10  # approximate time per trainer, which sets its number of steps with RATES
RATES = {OURS: 6000, PLAIN: 300}  # pairs/s on one thread, for 1,024 dimensions
BATCH, COMPONENTS = 128, 1024


ENCODERS = {
    OURS: load_encoder,
    "st_paragram.load": load_pipeline,
    PLAIN: load_plain,
    "model2vec": load_model2vec,
}
WITHOUT_KERNELS = "st_paragram, NumPy only"


def encode_process(name: str, model: str, files: Sequence[str]) -> dict[str, float]:
    """Load a model, encode single sentences, then each file twice; return figures by name."""
    texts = {Path(file).stem: json.loads(Path(file).read_text(encoding="utf-8")) for file in files}
    ENCODERS[name](model)  # imports
    started = time.perf_counter()
    encode = ENCODERS[name](model).encode
    figures = {"load, ms": 1000 * (time.perf_counter() - started)}
    figures["one sentence, ms"] = single_ms(encode, texts.pop("singles"))
    for kind, some in texts.items():
        figures[f"{kind}/s, first pass"] = rate(encode, some)
        figures[f"{kind}/s, later"] = later_rate(encode, some, LEAST_SECONDS)
    return figures


def train_process(name: str, store: str, pairs: int) -> dict[str, float]:
    """Train on a number of pairs of a store; return pairs/s."""
    with tempfile.TemporaryDirectory() as folder:
        return {"pairs/s": (_train_ours if name == OURS else _train_plain)(store, pairs, folder)}


def _train_ours(store: str, pairs: int, folder: str) -> float:
    from st_paragram import TrainingRun
    from st_paragram.core.pair_store import PairStore
    from st_paragram.runs.run import run_training

    data = PairStore(store)
    settings = {
        "dim": COMPONENTS,
        "batch_size": BATCH,
        "megabatch_size": 60,
        "anneal_interval": 0,
        "device": "cpu",
    }
    settings["epochs"] = pairs / len(data)
    run = TrainingRun(data.languages[1], Path(folder) / "model", [store], overrides=settings)
    return run_training(run).pairs_per_second


def _train_plain(store: str, pairs: int, folder: str) -> float:
    from datasets import Dataset
    from sentence_transformers import (
        SentenceTransformer,
        SentenceTransformerTrainer,
        SentenceTransformerTrainingArguments,
    )
    from sentence_transformers.sentence_transformer.losses import MultipleNegativesRankingLoss
    from sentence_transformers.sentence_transformer.modules import StaticEmbedding
    from tokenizers import Tokenizer

    from st_paragram.core.pair_store import PairStore

    data, rows = PairStore(store), np.arange(pairs)
    rows %= len(data)
    tokenizer = Tokenizer.from_file(str(Path(store).with_name("model") / "tokenizer.json"))
    model = SentenceTransformer(
        modules=[StaticEmbedding(tokenizer, embedding_dim=COMPONENTS)], device="cpu"
    )
    arguments = SentenceTransformerTrainingArguments(
        folder,
        max_steps=max(1, pairs // BATCH),
        per_device_train_batch_size=BATCH,
        dataloader_pin_memory=False,
        save_strategy="no",
        report_to="none",
        disable_tqdm=True,
        use_cpu=True,
    )
    texts = Dataset.from_dict(
        {"anchor": list(data.texts("a", rows)), "positive": list(data.texts("b", rows))}
    )
    loss = MultipleNegativesRankingLoss(model)
    trained = SentenceTransformerTrainer(
        model=model, args=arguments, train_dataset=texts, loss=loss
    ).train()
    return float(arguments.max_steps * BATCH / trained.metrics["train_runtime"])


def encode_programs(
    folder: Path, text: Path | None, count: int, threads: int
) -> dict[str, Program]:
    """Return the programs of the section `encode`, after writing the texts."""
    lines = sentences(text, count + SINGLES)
    some = lines[:count]
    texts = {"sentences": some, "paragraphs": paragraphs(some)}
    files = []
    for kind, values in {"singles": lines[count:], **texts}.items():
        files.append(str(folder / f"{kind}.json"))
        Path(files[-1]).write_text(json.dumps(values), encoding="utf-8")
    programs = {
        name: Program(
            [__file__, "--process", "encode", name, str(folder / "model"), *files], threads
        )
        for name in ENCODERS
    }
    plain = Program(programs[OURS].arguments, threads, {"ST_PARAGRAM_NATIVE": "0"})
    return programs | {WITHOUT_KERNELS: plain}


def train_programs(
    folder: Path, bitext: str | None, seconds: float, threads: int
) -> dict[str, Program]:
    """Return the programs of the section `train`, after making the store."""
    store, texts = folder / "pairs.h5", folder / "pairs.tsv"
    if not store.is_file():
        texts.write_text("".join(f"{a}\t{b}\n" for a, b in sample_pairs("es")), encoding="utf-8")
        vocabulary = ["--vocab", folder / "model" / "sentencepiece.model"]
        made = [
            "prepare",
            "--lang",
            "xx",
            "--text",
            bitext or texts,
            "--output",
            store,
            "--no-checks",
            *vocabulary,
        ]
        command(*made).run()
    return {
        name: Program(
            [__file__, "--process", "train", name, str(store), str(int(seconds * rate))], threads
        )
        for name, rate in RATES.items()
    }


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("--model", default="p-sp-mini", help="averaging model (%(default)s)")
    add(
        "--text",
        type=Path,
        metavar="FILE",
        help="one sentence per line (default: the built-in sample, 8 languages)",
    )
    add("--count", type=int, default=40_000, help="number of sentences (%(default)s)")
    add(
        "--bitext",
        metavar="FILE",
        help="two tab-separated columns to train on (default: the built-in sample, en-es)",
    )
    add(
        "--train-seconds",
        type=float,
        default=TRAIN_SECONDS,
        help="approximate time per training (%(default)s)",
    )
    add("--rounds", type=int, default=7, help="(%(default)s)")
    add("--threads", type=int, nargs="+", default=[1, 2], help="(%(default)s)")
    add("--only", choices=["encode", "train"], help="run only this section")
    add("--json", type=new_file, metavar="FILE", help="also write every round")
    add("--process", nargs="+", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.process:
        section, name, path, *more = arguments.process
        print(
            json.dumps(
                encode_process(name, path, more)
                if section == "encode"
                else train_process(name, path, int(more[0]))
            )
        )
        return 0
    results = {}
    machine = describe_machine()
    print(
        f"{machine.cpu}, {machine.cores} cores, {machine.instructions}; {arguments.rounds} rounds:"
        " median (range)"
    )
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        command("export", arguments.model, folder / "model", "--dtype", "float32").run()
        for section in [arguments.only] if arguments.only else ["encode", "train"]:
            for threads in arguments.threads:
                if section == "encode":
                    programs = encode_programs(folder, arguments.text, arguments.count, threads)
                else:
                    programs = train_programs(
                        folder, arguments.bitext, arguments.train_seconds, threads
                    )
                runs = in_turn(programs, arguments.rounds)
                results[f"{section}, threads: {threads}"] = {
                    program: [
                        run.figures | {"peak memory, MiB": run.peak_anonymous_mb} for run in some
                    ]
                    for program, some in runs.items()
                }
                print(
                    f"\n### {section}, threads:"
                    f" {threads}\n\n{table(results[f'{section}, threads: {threads}'])}",
                    flush=True,
                )
    options = {name: str(value) for name, value in vars(arguments).items()}
    write_result(arguments.json, options=options, rounds=results)
    return 0


if __name__ == "__main__":
    sys.exit(run_reporting_errors("speed", main))
