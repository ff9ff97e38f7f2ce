"""Whole processes, from start to end: a first sentence in Python, and commands."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from harness.processes import child_environment, thread_environment
from harness.speed.inputs import built_in_sentences
from harness.speed.results import Measure, Round, Row, Table
from tqdm import tqdm

SENTENCE = "Where is the station?"
OURS = "Encoder"
# The highest resident memory of the process itself; what `wait4` has for it includes that of the process before it.
_REPORT = """
import re
print(re.search(r"VmHWM:\\s+(\\d+)", open("/proc/self/status").read())[1], file=sys.stderr)
"""
_IMPORT_STOCK = "from sentence_transformers import SentenceTransformer"
_IMPORT_STATIC = "from model2vec import StaticModel"
_COMMAND = "from st_paragram.cli.main import main; main(sys.argv[1:]) and sys.exit('it failed')"


@dataclass(frozen=True)
class Process:
    """What is started: Python code, and the arguments that it finds in `sys.argv`."""

    name: str
    code: str
    arguments: tuple[str, ...] = ()
    note: str = ""


def processes(model: str, folder: Path, lines: int) -> list[Process]:
    """Prepare a folder with exports of a model, a pair and an index of so many lines; give what is to be measured."""
    from st_paragram.cli.main import main

    plain, static, pair, text, index = (
        str(folder / name) for name in ("plain", "model2vec", "pair.tsv", "text", "index")
    )
    Path(pair).write_text(f"{SENTENCE}\t¿Dónde está la estación?\n", encoding="utf-8")
    Path(text).write_text("".join(f"{each}\n" for each in islice(built_in_sentences(lines), lines)), encoding="utf-8")
    main(["export", model, plain])
    main(["export", model, static, "--dtype", "float32"])
    main(["index", text, "--output", index, "--model", model])
    encode = f".encode({SENTENCE!r})"
    first = "import, load, a sentence"
    score = ("score", pair, "--output", str(folder / "scored.tsv"), "--overwrite", "--model", model)
    return [
        Process(OURS, f"from st_paragram import Encoder; Encoder(sys.argv[1]){encode}", (model,), first),
        Process("st_paragram.load", f"import st_paragram; st_paragram.load(sys.argv[1]){encode}", (model,), first),
        Process("stock export", f"{_IMPORT_STOCK}; SentenceTransformer(sys.argv[1]){encode}", (plain,), first),
        Process("model2vec", f"{_IMPORT_STATIC}; StaticModel.from_pretrained(sys.argv[1]){encode}", (static,), first),
        Process("NumPy alone", "import numpy", note="import"),
        Process("st-paragram score", _COMMAND, score, "a pair"),
        Process("st-paragram search", _COMMAND, ("search", index, SENTENCE), f"an index of {lines:,} lines"),
    ]


def measure(started: Sequence[Process], rounds: int) -> Table:
    """Start every process in turn, round by round, after a first round that does not count."""
    rows = {process.name: Row(process.name, note=process.note) for process in started}
    memory: dict[str, int] = {}
    for number in tqdm(range(-1, rounds), desc="start-up", disable=None):
        for process in started:
            row = rows[process.name]
            if number >= 0 and row.name not in memory:
                continue  # it could not run
            seconds, peak, failure = _run(process)
            if failure:
                row.note = failure
                continue
            memory[row.name] = max(memory.get(row.name, 0), peak)
            if number >= 0:
                row.rounds.append(Round(seconds, 1))
    for name, peak in memory.items():
        rows[name].columns["peak memory, MiB"] = f"{peak / 2**10:,.0f}"
    notes = ["New processes from start to end, on one thread; memory is resident (VmHWM)."]
    return Table("startup", "Start-up", "s", Measure.TIME, list(rows.values()), OURS, notes=notes)


def _run(process: Process) -> tuple[float, int, str]:
    """Seconds, the peak of memory in KiB, and why it failed, if it did."""
    command = [sys.executable, "-c", f"import sys\n{process.code}{_REPORT}", *process.arguments]
    environment = child_environment() | thread_environment(1) | {"HF_HUB_OFFLINE": "1"}
    began = time.perf_counter()
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    seconds = time.perf_counter() - began
    last = (done.stderr.strip().split("\n") or [""])[-1]
    return (seconds, 0, f"cannot run: {last[:150]}") if done.returncode else (seconds, int(last), "")
