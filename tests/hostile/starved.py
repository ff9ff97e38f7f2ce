"""Starts with too few threads or too little memory: each must end with a result, or with one line that says why not.

    PYTHONPATH=tests python -m hostile.starved --starts 1000

Most starts are single jobs of the compiled kernels and of the tokenizer, in processes that are forked before there is
any thread; the others are whole commands. Limits and numbers of threads are drawn at random. A library that ends the
process is named: an exception in a thread of its own cannot be caught by anybody else.
"""

from __future__ import annotations

import argparse
import importlib
import os
import random
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # no threads before the fork
os.environ.setdefault("HF_HUB_OFFLINE", "1")

import numpy as np
from tqdm import tqdm

from hostile.limits import Ending, Limits, forked
from st_paragram.core.native import kernels
from st_paragram.core.tokenizers.sentencepiece import SentencePieceTokenizer, train_vocabulary
from st_paragram.core.tokenizers.word_cache import WordEncoder

Job = Callable[[int], bool]  # does something on so many threads; says whether the result is right

_WHOLE = 150  # of a thousand starts
_STACK = 8 << 20  # bytes of address space that a thread takes, as a rule
_HEAVY = (
    "st_paragram.tools.embed_files",
    "st_paragram.learning.models.directory",
    "st_paragram.learning.training.train",
    "st_paragram.learning.training.training_data",
    "st_paragram.learning.training.development",
)


class Kernels:
    """Jobs of single kernels, with the results that one thread gave."""

    def __init__(self) -> None:
        rng = np.random.default_rng(0)
        self.table = rng.normal(size=(3_000, 64)).astype(np.float32)
        self.ids = rng.integers(0, 3_000, 24_000).astype(np.int32)
        self.offsets = np.arange(0, 24_001, 8)
        self.columns = rng.integers(0, 3_000, (4, 300))
        letters = rng.integers(97, 113, (4_000, 7)).astype(np.uint8).view("S7")[:, 0]
        words = np.char.decode(letters)
        self.texts = [" ".join(row) for row in words[rng.integers(0, 4_000, (3_000, 9))].tolist()]
        self.model = SentencePieceTokenizer(train_vocabulary(self.texts[:100], 60))
        jobs = (self._means, self._mining, self._training, self._tokens)
        named = {job.__name__.strip("_"): job for job in jobs}
        self.jobs: dict[str, Job] = {name: self._compared(job, job(1)) for name, job in named.items()}

    @staticmethod
    def _compared(job: Callable[[int], bytes], expected: bytes) -> Job:
        return lambda threads: job(threads) == expected

    def _means(self, threads: int) -> bytes:
        out = np.empty((3_000, 64), np.float32)
        kernels().mean_rows(self.table, self.ids, self.offsets, out, True, threads)
        return out.tobytes()

    def _mining(self, threads: int) -> bytes:
        none, sides = np.empty(0, np.int64), (self.table[:1500], self.table[1500:])
        found = np.empty((2, 1500), np.int64)
        if kernels().has_byte_products():
            kernels().hardest_negatives(*sides, none, none, np.empty(0, np.uint8), True, threads, *found)
        return found.tobytes() if kernels().has_byte_products() else b""

    def _training(self, threads: int) -> bytes:
        """A step that is refused must not have changed anything; another try on one thread makes it."""
        state = [self.table.copy(), np.zeros_like(self.table), np.zeros_like(self.table), np.zeros(3_000, np.int64)]
        state += [np.array(0), np.zeros((4, 64)), np.array(0)]
        step = kernels().TrainingStep(*state, 0.9, 0.999, 1e-8, 264)
        for count in (threads, 1):
            try:
                step.train(self.ids, self.offsets, self.columns, 0.4, 1e-3, count, 0.1, 7)
            except Exception:
                if count == 1 or any(part.any() for part in state[1:]) or not np.array_equal(state[0], self.table):
                    raise
            else:
                break
        return state[0].tobytes()

    def _tokens(self, threads: int) -> bytes:
        encoder = WordEncoder(self.model.model_proto, True)
        encoded = encoder.encode(self.texts, num_threads=threads)
        return encoded.ids.tobytes() + encoded.offsets.tobytes()


class Commands:
    """Whole commands on a small model and a small store."""

    def __init__(self, folder: Path) -> None:
        """Make what they need in another process, since this one must not have started threads when it forks."""
        self.folder = folder
        subprocess.run([sys.executable, "-m", "hostile.starved", "--make", str(folder)], check=True)
        for module in _HEAVY:
            importlib.import_module(module)
        self.expected = np.load(folder / "expected.npy")
        self.jobs: dict[str, Job] = {"embed": self._embed, "train": self._train}

    def _run(self, threads: int, *arguments: str | Path) -> None:
        import torch

        from st_paragram.cli.main import main

        torch.set_num_threads(threads)
        status = main([str(argument) for argument in arguments])
        if status != 0:
            raise MemoryError(f"exit status {status}")  # with a line on stderr, or the text is looked at

    def _embed(self, threads: int) -> bool:
        output = self.folder / f"{os.getpid()}.npy"
        self._run(threads, "embed", self.folder / "lines.txt", "--model", self.folder / "model", "--output", output)
        return np.array_equal(np.load(output), self.expected)

    def _train(self, threads: int) -> bool:
        output = self.folder / f"model-{os.getpid()}"
        settings = ("--dim", "16", "--epochs", "1", "--batch-size", "64", "--device", "cpu", "--output", output)
        self._run(threads, "train", "bitext", "--lang", "es", "--data", self.folder / "en-es.h5", *settings)
        return (output / "model.safetensors").is_file()


def make(folder: Path) -> None:
    """Write a store, a model, lines and their embeddings."""
    from support.data import make_pairs

    import st_paragram
    from st_paragram.core.pair_store import PairStoreWriter

    pairs = make_pairs(1200)
    vocabulary = SentencePieceTokenizer(train_vocabulary((text for pair in pairs for text in pair), 300))
    with PairStoreWriter(folder / "en-es.h5", ("en", "es"), vocabulary, 100, {}) as writer:
        writer.append(*vocabulary.encode([a for a, _ in pairs]), *vocabulary.encode([b for _, b in pairs]))
    model = st_paragram.pipeline(st_paragram.SentencePieceEmbedding(vocabulary, 64), device="cpu")
    st_paragram.save(model, folder / "model")
    lines = [text for pair in pairs for text in pair]
    (folder / "lines.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    np.save(folder / "expected.npy", model.encode(lines))


def limits(rng: random.Random, wanted: int, least: float) -> Limits:
    """Limits at random: of memory, of threads, or of both; often just enough for the threads that are wanted."""
    kind = rng.randrange(6)
    if kind == 0:
        return Limits(threads=rng.randint(1, 2 * wanted + 2))
    stacks = rng.choice((0, wanted * _STACK))
    memory = stacks + int(2 ** rng.uniform(np.log2(least), 10) * (1 << 20))
    return Limits(memory, rng.randint(1, 2 * wanted + 2) if kind == 1 else None)


def starts(jobs: dict[str, Job], count: int, rng: random.Random, least: float) -> Iterator[tuple[str, Ending]]:
    """Jobs in turn, each under limits of its own: the name of each and how it ended."""
    names = list(jobs)
    for number in range(count):
        name, threads = names[number % len(names)], int(200 ** rng.random())
        allowed = limits(rng, threads, least)
        ending = forked(lambda job=jobs[name], threads=threads: job(threads), allowed)
        if "Traceback" in ending.text and ending.outcome == "refused":
            ending = Ending("traceback", ending.text)
        yield name, Ending(ending.outcome, f"{name} on {threads} threads, {allowed}\n{ending.text}")


def main(arguments: list[str] | None = None) -> int:
    """Make starts and print what came of them; 1 if one ended as it must not."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--starts", type=int, default=1000)
    parser.add_argument("--whole", type=int, help="how many are whole commands (default: 15 %%)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--log", type=Path, default=Path("defects.log"), help="where deaths are written")
    parser.add_argument("--make", type=Path, help=argparse.SUPPRESS)
    given = parser.parse_args(arguments)
    if given.make:
        make(given.make)
        return 0
    whole = given.starts * _WHOLE // 1000 if given.whole is None else given.whole
    outcomes: Counter[tuple[str, str]] = Counter()
    defects, deaths, rng = 0, [], random.Random(given.seed)
    folder = Path(tempfile.mkdtemp(prefix="starved-"))
    folder.chmod(0o777)  # jobs of another user write into it
    try:
        with tqdm(total=given.starts, unit="start", disable=None) as bar:
            for name, ending in _all_starts(given.starts - whole, whole, rng, folder):
                outcomes[name, ending.outcome] += 1
                bar.update()
                defects += ending.is_defect
                if ending.outcome not in ("done", "refused"):
                    deaths.append(f"{ending.outcome}: {ending.text}\n")
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    for (name, outcome), count in sorted(outcomes.items()):
        print(f"{name:10} {count:5} {outcome}")
    given.log.write_text("\n".join(deaths), encoding="utf-8")
    print(f"{sum(outcomes.values()):,} starts, {defects} defects")
    return int(defects > 0)


def _all_starts(single: int, whole: int, rng: random.Random, folder: Path) -> Iterator[tuple[str, Ending]]:
    yield from starts(Kernels().jobs, single, rng, 0.25)
    if whole:
        yield from starts(Commands(folder).jobs, whole, rng, 30)


if __name__ == "__main__":
    raise SystemExit(main())
