"""Two processes at once on one output: one makes it, the other is refused in a line, and never is it a mixture.

    PYTHONPATH=tests python -m hostile.together --rounds 20
    PYTHONPATH=tests python -m hostile.together embed export --rounds 100

Both run the same command with inputs that differ: from one moment on, up to 0.3 s apart, or so that one begins about
when the other ends. In one of three rounds an older output stands there that both are to replace: then both may
succeed, one after the other.
"""

from __future__ import annotations

import argparse
import os
import shutil
import tempfile
from collections import Counter, defaultdict
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from tqdm import tqdm

from hostile.campaign import is_defect
from hostile.children import Child, command
from hostile.commands import COMMANDS
from hostile.kill import table
from hostile.undisturbed import LIMIT, ROWS, Undisturbed

#: All commands that make something but one that also fetches: a file that another process fetches is refused by itself.
TOGETHER = [name for name, one in COMMANDS.items() if not (one.mirror or one.starts)]

_SEED = 2014
_APART = 0.3  # seconds between the starts, at most


def attempt(undisturbed: Undisturbed, name: str, number: int) -> str:
    """Run a command twice at once; returns what came of it."""
    rng, folder = np.random.default_rng([_SEED, number]), undisturbed.folder / f"round {number}"
    replace, one, reference = bool(rng.random() < 1 / 3), COMMANDS[name], undisturbed.reference(name)
    if replace:
        shutil.copytree(reference.folders[int(rng.integers(2))], folder)
    else:
        folder.mkdir()
    apart = [(0.0, 0.0), (0.0, _APART), (0.8 * reference.seconds, 1.2 * reference.seconds)][rng.integers(3)]
    delays = [0.0, float(rng.uniform(*apart))]
    rng.shuffle(delays)
    lines = [one.line(kind, undisturbed.inputs, folder, replace) for kind in (0, 1)]
    children = _run_at_once(lines, delays, folder)
    return _judge(name, children, one.contents(folder), reference.contents, replace or one.replaces)


def _run_at_once(lines: list[list[str]], delays: list[float], folder: Path) -> list[Child]:
    """Start both, let them go at one moment, and wait for both."""
    gate = os.pipe()
    children = []
    for kind, (words, delay) in enumerate(zip(lines, delays, strict=True)):
        children.append(Child(command(words, folder, gate, delay), folder.with_name(f"{folder.name} {kind}.log")))
    for end in gate:  # with the last one that can write they wake up
        os.close(end)
    for child in children:
        child.wait(LIMIT)
    return children


def _judge(
    name: str, children: list[Child], found: dict[str, str], expected: list[dict[str, str]], replace: bool
) -> str:
    said = "\n".join(child.said for child in children)
    winners = [kind for kind, child in enumerate(children) if child.status == 0]
    if "Traceback" in said or any(child.status not in (0, 1) for child in children):
        return f"wrong: a traceback, or exit {[child.status for child in children]}\n{said}"
    if not winners:
        return f"wrong: both were refused\n{said}"
    if found not in [expected[kind] for kind in winners]:
        return f"wrong: a mixture, a loss or leftovers\n{_differences(found, expected)}\n{said}"
    if len(winners) == 2:
        return "both, one after the other" if replace else f"wrong: a finished output was replaced\n{said}"
    refusals = [line for line in children[1 - winners[0]].said.splitlines() if line.startswith("st-paragram ")]
    for reason in ("another run is writing", "exists"):
        if len(refusals) == 1 and reason in refusals[0]:
            return f"one refused: {reason}"
    return f"wrong: no plain refusal\n{said}"


def _differences(found: dict[str, str], expected: list[dict[str, str]]) -> str:
    return "; ".join(
        ", ".join(sorted(path for path in {*found, *one} if found.get(path) != one.get(path))) for one in expected
    )


def run_here(names: Sequence[str], rounds: int, rows: int = ROWS) -> dict[str, Counter[str]]:
    """Make rounds of each command; count what came of them, by command. What was wrong is printed."""
    outcomes: dict[str, Counter[str]] = defaultdict(Counter)
    tqdm.monitor_interval = 0  # no thread: it would be lost in a fork
    with tempfile.TemporaryDirectory(prefix="together-") as folder:
        undisturbed = Undisturbed(names, Path(folder), rows)
        for number in tqdm(range(rounds * len(names)), unit="round", disable=None):
            name = names[number % len(names)]
            outcome = attempt(undisturbed, name, number)
            shutil.rmtree(Path(folder) / f"round {number}")
            outcomes[name][outcome.partition("\n")[0]] += 1
            if is_defect(outcome):
                print(f"{name}, round {number}: {outcome}", flush=True)
    return dict(sorted(outcomes.items()))


def main(arguments: list[str] | None = None) -> int:
    """Make rounds and print a table; 1 if something was wrong."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("command", nargs="*", choices=[[], *TOGETHER], help="all of them by default")
    parser.add_argument("--rounds", type=int, default=20, help="of each command (%(default)s)")
    parser.add_argument("--rows", type=int, default=ROWS, help="of the texts (%(default)s)")
    given = parser.parse_args(arguments)
    outcomes = run_here(given.command or TOGETHER, given.rounds, given.rows)
    print(table(outcomes, "rounds"))
    return int(any(is_defect(outcome) for counts in outcomes.values() for outcome in counts))


if __name__ == "__main__":
    raise SystemExit(main())
