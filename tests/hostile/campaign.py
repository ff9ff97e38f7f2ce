"""Many tries of one kind, each of which can be repeated by its number; what came of them, counted.

    PYTHONPATH=tests python -m hostile.campaign checkpoints --tries 20000
    PYTHONPATH=tests python -m hostile.campaign checkpoints --only 1234

A target is a module of `hostile.targets`, with

    TRIES, QUICK: int
        how many tries a long campaign makes, and the tests
    prepare(folder: Path) -> Any
        what all tries share, made once in an empty folder
    attempt(shared: Any, rng: np.random.Generator, folder: Path) -> str
        one try, in an empty folder of its own; returns its outcome in a word or two ("unharmed")

A `ParagramError` of one line is the outcome "refused". Whatever else is raised is a defect, and so are the death of the
process, a try that takes longer than `--limit`, and an outcome that begins with "wrong".
"""

from __future__ import annotations

import argparse
import importlib
import json
import queue
import signal
import subprocess
import sys
import tempfile
import threading
import traceback
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
from tqdm import tqdm

from st_paragram.errors import ParagramError

#: The names of all targets.
TARGETS = sorted(path.stem for path in Path(__file__).with_name("targets").glob("[!_]*.py"))

_SEED = 20_22


def is_defect(outcome: str) -> bool:
    """Whether an outcome is one that must not be."""
    return outcome.startswith(("wrong", "traceback", "crash", "hang"))


def one_try(target: Any, shared: Any, number: int) -> str:
    """The outcome of a try; a defect has its traceback, or what is wrong, in further lines."""
    with tempfile.TemporaryDirectory(prefix="hostile-") as folder:
        try:
            return str(target.attempt(shared, np.random.default_rng([_SEED, number]), Path(folder)))
        except ParagramError as error:
            return "refused" if "\n" not in str(error) else f"wrong: an error of several lines\n{error}"
        except Exception as error:  # every other one is a defect
            return f"traceback: {type(error).__name__}\n{traceback.format_exc()}"


def load(name: str) -> Any:
    """The module of a target."""
    return importlib.import_module(f"hostile.targets.{name}")


def run_here(name: str, tries: int, first: int = 0) -> Counter[str]:
    """Make tries in this process.

    Raises:
        AssertionError: a defect; says which try it was.
    """
    target, outcomes = load(name), Counter[str]()
    with tempfile.TemporaryDirectory(prefix="hostile-") as folder:
        shared = target.prepare(Path(folder))
        for number in range(first, first + tries):
            outcome = one_try(target, shared, number)
            assert not is_defect(outcome), f"{name}, try {number}: {outcome}"
            outcomes[outcome] += 1
    return outcomes


def _work(name: str, first: int, tries: int) -> None:
    """Make tries; print the number and the outcome of each as a line of JSON."""
    answers, sys.stdout = sys.stdout, sys.stderr  # where libraries may print what they like
    target = load(name)
    with tempfile.TemporaryDirectory(prefix="hostile-") as folder:
        shared = target.prepare(Path(folder))
        for number in range(first, first + tries):
            print(json.dumps([number, one_try(target, shared, number)]), file=answers, flush=True)


def _follow(worker: subprocess.Popen[str], lines: queue.Queue[str | None]) -> None:
    """Hand on what a worker prints, then None."""
    assert worker.stdout is not None
    for line in worker.stdout:
        lines.put(line)
    lines.put(None)


def run_apart(name: str, tries: int, first: int, limit: float, log: Path) -> Counter[str]:
    """Make tries in other processes: one that dies or hangs is a defect, and the next goes on behind it."""
    outcomes, number, last = Counter[str](), first, first + tries
    with tqdm(total=tries, unit="try", desc=name, disable=None) as bar, log.open("a", encoding="utf-8") as defects:
        while number < last:
            command = [sys.executable, "-m", "hostile.campaign", name, "--worker", f"--first={number}"]
            command.append(f"--tries={last - number}")
            with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as worker:
                lines: queue.Queue[str | None] = queue.Queue()
                threading.Thread(target=_follow, args=(worker, lines), daemon=True).start()
                while number < last:
                    try:
                        line = lines.get(timeout=limit)
                    except queue.Empty:
                        worker.kill()
                        line, outcome = None, "hang"
                    else:
                        outcome = json.loads(line)[1] if line else f"crash: {_death(worker)}"
                    number += 1
                    bar.update()
                    outcomes[outcome.partition("\n")[0]] += 1
                    if is_defect(outcome):
                        defects.write(f"{name}, try {number - 1}: {outcome}\n")
                        defects.flush()
                    if line is None:
                        break
    return outcomes


def _death(worker: subprocess.Popen[str]) -> str:
    """How a process ended."""
    code = worker.wait()
    return signal.Signals(-code).name if code < 0 else f"exit {code}"


def main(arguments: list[str] | None = None) -> int:
    """Run campaigns and print their outcomes; 1 if there was a defect."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("target", nargs="*", choices=[[], *TARGETS], help="all of them by default")
    parser.add_argument("--tries", type=int, help="how many; by default as many as the target asks for")
    parser.add_argument("--first", type=int, default=0, help="number of the first try")
    parser.add_argument("--only", type=int, metavar="N", help="make one try, here, and print what came of it")
    parser.add_argument("--limit", type=float, default=120, metavar="S", help="seconds a try may take")
    parser.add_argument("--log", type=Path, default=Path("defects.log"), help="where defects are written")
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    given, defects = parser.parse_args(arguments), 0
    for name in given.target or TARGETS:
        if given.worker:
            _work(name, given.first, given.tries)
        elif given.only is not None:
            print(run_here(name, 1, given.only))
        else:
            outcomes = run_apart(name, given.tries or load(name).TRIES, given.first, given.limit, given.log)
            counted = ", ".join(f"{count:,} {outcome}" for outcome, count in outcomes.most_common())
            print(f"{name}: {sum(outcomes.values()):,} tries: {counted}", flush=True)
            defects += sum(count for outcome, count in outcomes.items() if is_defect(outcome))
    return int(defects > 0)


if __name__ == "__main__":
    raise SystemExit(main())
