"""Changes of a large index: time and memory of adding, deleting and compacting, and what kills leave.

    python benchmarks/index_changes.py --text lines.txt --sentences 1000000 --folder /tmp

The text has a sentence on each line; those behind the first N are added, lines from 1 on are deleted. Each command is a
process, whose memory is watched (Linux only). Afterwards changes are killed at random moments: the index has to open
as it was before or after the change, and all files have to be what was written.
"""

from __future__ import annotations

import argparse
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from itertools import islice
from pathlib import Path

from harness.output import print_growing, say, write_result
from harness.processes import Run, child_environment, watch

from st_paragram.cli.main import run_reporting_errors
from st_paragram.core.files import size
from st_paragram.core.text.streams import read_lines
from st_paragram.tools.search.index_metadata import check_index, read_metadata
from st_paragram.tools.search.search_index import SearchIndex

_COMMAND = [sys.executable, "-m", "st_paragram.cli.main"]


class Texts:
    """The first N lines of a text, and parts of what follows."""

    def __init__(self, text: Path, folder: Path, count: int, more: int) -> None:
        """Write them.

        Args:
            text: A sentence a line.
            folder: Of the files.
            count: N.
            more: Sentences that are added, and as many that are deleted.
        """
        lines = read_lines(str(text))
        self.first = self._write(folder / "first.txt", islice(lines, count))
        self.more = self._write(folder / "more.txt", islice(lines, more))
        self.gone = self._write(folder / "gone.txt", islice(read_lines(str(text)), more))
        self.kept = next(iter(islice(read_lines(str(text)), more + 10, None)))

    @staticmethod
    def _write(path: Path, lines: islice[str]) -> Path:
        path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
        return path

    def head(self, path: Path) -> str:
        """The first line of a file."""
        return next(read_lines(str(path)))


def command(*words: object) -> Run:
    """Run a command of st-paragram."""
    return watch([*_COMMAND, *map(str, words)])


def measured(texts: Texts, index: Path, model: str) -> dict[str, Run]:
    """Build, search, add, delete and compact."""
    added, gone = texts.head(texts.more), texts.head(texts.gone)
    runs = {
        "build": command("index", texts.first, "--model", model, "--output", index),
        "search": command("search", index, texts.kept),
        "add": command("index", texts.more, "--add-to", index, "--tag", "round=1"),
        "delete": command("index", texts.gone, "--delete-from", index),
        "search again": command("search", index, texts.kept),
        "search an added one": command("search", index, added, "-k", 1),
        "search a deleted one": command("search", index, gone, "-k", 1),
        "search with a filter": command("search", index, added, "--where", "round=1"),
        "compact": command("index", "--compact", index),
        "search a compact one": command("search", index, added, "-k", 1),
    }
    for name in ("search an added one", "search a compact one"):
        assert added in runs[name].output, f"{name}: {runs[name].output}"
    assert gone not in runs["search a deleted one"].output, runs["search a deleted one"].output
    return runs


def kill(texts: Texts, index: Path, rng: random.Random, seconds: dict[str, float]) -> str:
    """Kill a change at a random moment; returns what came of it."""
    name = rng.choice(sorted(seconds))
    words = {
        "add": ["index", texts.more, "--add-to", index, "--tag", f"round={rng.randrange(10**9)}"],
        "delete": ["index", texts.more, "--delete-from", index],
        "compact": ["index", "--compact", index],
    }[name]
    if name == "compact":  # so that there is something to do
        SearchIndex(index).delete(lines=rng.sample(range(2000, 20_000), 100))
    before = read_metadata(index)
    child = subprocess.Popen(
        [*_COMMAND, *map(str, words)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=child_environment()
    )
    time.sleep(rng.uniform(0.2, 1.05) * seconds[name])
    child.send_signal(signal.SIGKILL)
    status = child.wait()
    after = read_metadata(index)
    check_index(index)
    opened = SearchIndex(index)
    (hits,) = opened.search([texts.kept], 1)
    assert hits[0].sentence == " ".join(texts.kept.split()) and hits[0].score > 0.999, hits
    assert after.generation - before.generation in (0, 1)
    assert len(opened) == after.rows - after.deleted
    state = "after" if after.generation > before.generation else "before"
    return f"{name}: {'ended' if status == 0 else 'killed'}, the index is as {state}"


def main() -> int:
    """Measure, kill, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("--text", type=Path, required=True, help="a sentence on each line, plain or compressed")
    add("--model", default="p-sp-mini", help="directory or name of a model (%(default)s)")
    add("--sentences", type=int, default=1_000_000, help="that are indexed at first (%(default)s)")
    add("--more", type=int, default=1000, help="that are added, and as many deleted (%(default)s)")
    add("--kills", type=int, default=30, help="how many (%(default)s)")
    add("--folder", type=Path, default=Path(), help="for temporary files: some 2 KB a sentence")
    add("--json", type=Path, metavar="FILE", help="write the figures there")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=given.folder) as folder:
        texts, index = Texts(given.text, Path(folder), given.sentences, given.more), Path(folder) / "lines.index"
        runs = measured(texts, index, given.model)
        rows = ([name, f"{run.seconds:.1f}", f"{run.peak_anonymous_mb:.0f}"] for name, run in runs.items())
        print_growing(("command", "seconds", "peak, MB"), rows)
        say(f"\n{size(index) / 2**20:,.0f} MB on disk\n")
        rng, seconds = random.Random(0), {name: runs[name].seconds for name in ("add", "delete", "compact")}
        outcomes = Counter(kill(texts, index, rng, seconds) for _ in range(given.kills))
        print_growing(("kill", "times"), ([name, str(count)] for name, count in sorted(outcomes.items())))
    if given.json:
        figures = {name: {"seconds": run.seconds, "mb": run.peak_anonymous_mb} for name, run in runs.items()}
        write_result(given.json, runs=figures, kills=dict(outcomes))
    return 0


if __name__ == "__main__":
    sys.exit(run_reporting_errors("index_changes", main))
