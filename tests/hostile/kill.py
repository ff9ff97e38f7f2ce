"""Kill commands at random moments, run them again, and compare what they made with what undisturbed runs make.

    PYTHONPATH=tests python -m hostile.kill --kills 200
    PYTHONPATH=tests python -m hostile.kill embed train --kills 40
    PYTHONPATH=tests python -m hostile.kill --only 17

A kill is SIGKILL to the whole process group, some time after the command has touched the folder of its output: half of
the kills at any moment until it would have ended, a quarter each near the first file and near the end. In one of
three tries an older output stands there that is to be replaced. Afterwards the same command is run; as a user would,
with what its refusal asks for: `--resume`, or `--overwrite` if the output was finished.
"""

from __future__ import annotations

import argparse
import shutil
import signal
import tempfile
from collections import Counter, defaultdict
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from tqdm import tqdm

from hostile.campaign import is_defect
from hostile.children import Child, command
from hostile.commands import COMMANDS, Command
from hostile.undisturbed import LIMIT, ROWS, Reference, Undisturbed
from st_paragram.core.tables import markdown_table
from st_paragram.errors import ParagramError
from st_paragram.tools.search.index_metadata import METADATA_FILE, check_index

SAME = "same bytes"
_SEED = 2013
_DRAWS = 20  # of a moment, until a command is caught before its end


def attempt(undisturbed: Undisturbed, name: str, number: int) -> str:
    """Kill a command and run it again; returns what came of it."""
    rng, folder = np.random.default_rng([_SEED, number]), undisturbed.folder / f"try {number}"
    reference, replace = undisturbed.reference(name), bool(rng.random() < 1 / 3) and not COMMANDS[name].starts
    words = COMMANDS[name].line(0, undisturbed.inputs, folder, replace)
    for _ in range(_DRAWS):
        shutil.rmtree(folder, ignore_errors=True)
        if replace:
            shutil.copytree(reference.folders[1], folder)
        else:
            COMMANDS[name].begin(undisturbed.inputs, folder)
        killed = _kill(words, folder, reference.seconds * _moment(rng))
        if killed.status != 0:
            break
    starts = undisturbed.inputs / COMMANDS[name].starts if COMMANDS[name].starts else None
    if wrong := _judge(name, killed, folder, reference, replace, starts):
        return wrong
    same = f"{SAME}, leftovers gone" if _leftovers(COMMANDS[name], folder) else SAME
    return _again(name, words, folder, reference.contents[0], same)


def _moment(rng: np.random.Generator) -> float:
    """When to kill, as a share of the time that the work takes."""
    low, high = [(0.0, 1.0), (0.0, 1.0), (0.0, 0.1), (0.85, 1.05)][rng.integers(4)]
    return float(rng.uniform(low, high))


def _start(words: list[str], folder: Path) -> Child:
    return Child(command(words, folder), folder.with_name(f"{folder.name}.log"))


def _kill(words: list[str], folder: Path, delay: float) -> Child:
    """Run a command and kill it some time after it has touched the folder, if it has not ended before."""
    before = set(folder.iterdir())
    child = _start(words, folder)
    child.wait(LIMIT, lambda: set(folder.iterdir()) != before)
    try:
        child.wait(delay)
    except TimeoutError:
        child.kill()
        child.wait(LIMIT)
    return child


def _judge(name: str, killed: Child, folder: Path, reference: Reference, replace: bool, starts: Path | None) -> str:
    """What is wrong after a kill: an output is the older one, or the new one, or is not there; none is lost."""
    if killed.status != -signal.SIGKILL:
        return "wrong: never caught before its end" if killed.status == 0 else f"wrong: failed\n{killed.said}"
    if not killed.alone():
        return "wrong: processes outlive the kill"
    one = COMMANDS[name]
    if starts:
        return _changed(folder / one.output, starts, reference.folders[0] / one.output)
    new, older = (one.made(each) for each in reference.folders)
    made = one.made(folder)
    if made and made not in ([new, older] if replace else [new]):
        return f"wrong: {one.output} is torn\n{killed.said}"
    if replace and not made and not _kept(one, reference.folders[1], folder):
        return f"wrong: the older {one.output} is lost\n{killed.said}"
    return ""


def _changed(index: Path, before: Path, after: Path) -> str:
    """What is wrong with an index that was being changed: it is as before or after, whatever else its folder holds."""
    try:
        check_index(index)
    except ParagramError as error:
        return f"wrong: damaged\n{error}"
    states = [(folder / METADATA_FILE).read_bytes() for folder in (before, after)]
    return "" if (index / METADATA_FILE).read_bytes() in states else "wrong: neither as before nor as after"


def _kept(one: Command, older: Path, folder: Path) -> bool:
    """Whether an output that was a folder is still there under another name."""
    wanted = one.contents(older / one.output)
    return bool(wanted) and any(one.contents(place) == wanted for place in folder.rglob("*") if place.is_dir())


def _leftovers(one: Command, folder: Path) -> bool:
    """Whether a kill left more than the lock and what is there in any case."""
    names = (one.output, f".{one.output}.lock")
    return any(path.name not in names for path in folder.iterdir()) or any(folder.glob(f"{one.output}/.*.part"))


def _again(name: str, words: list[str], folder: Path, expected: dict[str, str], same: str) -> str:
    """Run a command that was killed; returns what came of it, `same` if it made what it should."""
    outcome, child = same, _start(words, folder)
    child.wait(LIMIT)
    while child.status == 1 and (
        asked := [o for o in ("--resume", "--overwrite") if o in child.said and o not in words]
    ):
        words = [*words, asked[0]]
        outcome, child = f"{SAME}, with {asked[0]}", _start(words, folder)
        child.wait(LIMIT)
    if child.status or "Traceback" in child.said:
        return f"wrong: exit {child.status}\n{child.said}"
    if not child.alone():
        return "wrong: processes are left"
    found = COMMANDS[name].contents(folder)
    if different := sorted(path for path in {*found, *expected} if found.get(path) != expected.get(path)):
        return f"wrong: other bytes, missing or left over\n{', '.join(different)}\n{child.said}"
    return outcome


def run_here(names: Sequence[str], kills: int, rows: int = ROWS, only: int | None = None) -> dict[str, Counter[str]]:
    """Make kills, of the commands in turn; count what came of them, by command. What was wrong is printed."""
    outcomes: dict[str, Counter[str]] = defaultdict(Counter)
    tqdm.monitor_interval = 0  # no thread: it would be lost in a fork
    with tempfile.TemporaryDirectory(prefix="kills-") as folder:
        undisturbed = Undisturbed(names, Path(folder), rows)
        for number in tqdm(range(kills) if only is None else [only], unit="kill", disable=None):
            name = names[number % len(names)]
            outcome = attempt(undisturbed, name, number)
            shutil.rmtree(Path(folder) / f"try {number}")
            outcomes[name][outcome.partition("\n")[0]] += 1
            if is_defect(outcome):
                print(f"{name}, try {number}: {outcome}", flush=True)
    return dict(sorted(outcomes.items()))


def table(outcomes: dict[str, Counter[str]], tries: str) -> str:
    """What came of the tries with each command."""
    kinds = sorted({outcome for counts in outcomes.values() for outcome in counts})
    rows = [
        [name, f"{counts.total():,}", *(f"{counts[kind]:,}" for kind in kinds)] for name, counts in outcomes.items()
    ]
    return markdown_table(["command", tries, *kinds], rows)


def main(arguments: list[str] | None = None) -> int:
    """Make kills and print a table; 1 if something was wrong."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("command", nargs="*", choices=[[], *COMMANDS], help="all of them by default")
    parser.add_argument("--kills", type=int, default=200, help="how many (%(default)s)")
    parser.add_argument("--only", type=int, metavar="N", help="make this try alone")
    parser.add_argument("--rows", type=int, default=ROWS, help="of the texts (%(default)s)")
    given = parser.parse_args(arguments)
    outcomes = run_here(given.command or list(COMMANDS), given.kills, given.rows, given.only)
    print(table(outcomes, "kills"))
    return int(any(is_defect(outcome) for counts in outcomes.values() for outcome in counts))


if __name__ == "__main__":
    raise SystemExit(main())
