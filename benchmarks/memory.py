"""Memory of training against the number of pairs: `python benchmarks/memory.py --data data/en-es.h5`.

Repeats the rows of a store to the sizes asked for, trains each for the same number of steps with
`recipes/train_bitext.py` in a process of its own, and prints the peak of its anonymous memory (RssAnon: the page cache
of the memory-mapped store is left out) and of its resident memory. Linux only.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from st_paragram.cli.main import run_reporting_errors
from st_paragram.data.pair_store import PairStore, PairStoreWriter

RECIPE = Path(__file__).parent.parent / "recipes" / "train_bitext.py"
BATCH = 128


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", required=True, help="a pair store")
    parser.add_argument("--pairs", type=int, nargs="+", default=[50_000, 300_000, 3_000_000])
    parser.add_argument("--steps", type=int, default=380)  # less than an epoch of the smallest size
    parser.add_argument("--dim", type=int, default=300)
    parser.add_argument("--megabatch-size", type=int, default=60)
    arguments = parser.parse_args()

    store = PairStore(arguments.data)
    print("| pairs | store, MB | peak RssAnon, MB | peak RSS, MB |\n| --- | --- | --- | --- |")
    with tempfile.TemporaryDirectory(dir=Path(arguments.data).parent) as folder:
        for count in arguments.pairs:
            data = Path(folder) / f"{count}.h5"
            repeat(store, count, data)
            command = [
                sys.executable,
                str(RECIPE),
                "--lang",
                store.languages[1],
                "--data",
                str(data),
                "--output",
                f"{folder}/model",
            ]
            command += ["--config", str(RECIPE.parent / "configs" / "small.yaml"), "--overwrite"]
            command += ["--dim", str(arguments.dim), "--megabatch-size", str(arguments.megabatch_size)]
            command += ["--anneal-interval", "10", "--epochs", str(arguments.steps * BATCH / count)]
            anonymous, resident = peak_memory(command)
            size = data.stat().st_size / 2**20
            print(f"| {count:,} | {size:.0f} | {anonymous / 2**10:.0f} | {resident / 2**10:.0f} |", flush=True)
            data.unlink()
    return 0


def repeat(store: PairStore, count: int, path: Path, block: int = 50_000) -> None:
    """Write a store of `count` pairs, the rows of `store` again and again."""
    with PairStoreWriter(path, store.languages, store.tokenizers, store.max_length) as writer:
        for start in range(0, count, block):
            rows = np.arange(start, min(start + block, count)) % len(store)
            writer.append(*store.take("a", rows), *store.take("b", rows))


def peak_memory(command: list[str]) -> tuple[int, int]:
    """Run a command; return the peaks of its RssAnon and RSS in KiB, looked at five times a second."""
    with tempfile.TemporaryFile("w+") as log:  # a pipe that nobody reads would fill up and stop the process
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=log)
        peaks = [0, 0]
        while process.poll() is None:
            status = Path(f"/proc/{process.pid}/status").read_text()
            for index, field in enumerate(("RssAnon", "VmRSS")):
                if found := re.search(rf"{field}:\s+(\d+) kB", status):
                    peaks[index] = max(peaks[index], int(found[1]))
            time.sleep(0.2)
        if process.returncode:
            log.seek(0)
            raise SystemExit(f"{' '.join(command)} failed:\n{log.read()}")
    return peaks[0], peaks[1]


if __name__ == "__main__":
    sys.exit(run_reporting_errors("memory", main))
