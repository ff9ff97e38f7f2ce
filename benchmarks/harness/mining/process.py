"""Mining in a separate process, so that its time and memory can be watched; its report comes back as JSON.

Run as a program it does what `st-paragram mine` does, with settings from a JSON file, and writes the report to another.
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from harness.processes import Run, watch

from st_paragram.tools.bitext_mining.settings import MiningSettings


@dataclass(frozen=True)
class WatchedMining:
    """A mining run that has ended.

    Attributes:
        run: Its wall time, from the start of Python to its end, and its memory.
        report: `MiningReport` as a mapping.
    """

    run: Run
    report: dict[str, Any]


def watch_mining(
    texts: Sequence[Path],
    output: Path,
    model: str,
    settings: MiningSettings | None = None,
) -> WatchedMining:
    """Mine texts, source and target, or one for paraphrases; an output that is there is replaced.

    Args:
        texts: A sentence a line each.
        output: Of the pairs.
        model: To embed with.
        settings: Of the mining.

    Raises:
        SystemExit: The mining failed; the message has what it said.
    """
    wanted = {
        "texts": [str(text) for text in texts],
        "output": str(output),
        "model": model,
        "settings": asdict(settings or MiningSettings()),
    }
    with tempfile.TemporaryDirectory() as folder:
        question, answer = Path(folder) / "wanted.json", Path(folder) / "report.json"
        question.write_text(json.dumps(wanted), encoding="utf-8")
        run = watch([sys.executable, "-m", __name__, str(question), str(answer)])
        return WatchedMining(run, json.loads(answer.read_text(encoding="utf-8")))


def main(question: Path, answer: Path) -> int:
    """Mine as the question says; errors as the command reports them."""
    from st_paragram.tools.bitext_mining.miner import mine

    wanted = json.loads(question.read_text(encoding="utf-8"))
    settings = MiningSettings(**wanted["settings"])
    report = mine(wanted["texts"], wanted["output"], wanted["model"], settings, True)
    answer.write_text(json.dumps(asdict(report), default=str), encoding="utf-8")
    return 0


if __name__ == "__main__":
    from st_paragram.cli.main import run_reporting_errors

    sys.exit(run_reporting_errors("mine", lambda: main(Path(sys.argv[1]), Path(sys.argv[2]))))
