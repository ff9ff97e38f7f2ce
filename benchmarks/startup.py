"""Time of a new process until its first vector, and of whole commands: `python
benchmarks/startup.py`.

Compares `Encoder`, `st_paragram.load`, plain sentence-transformers and model2vec with the same
model in float32, and times `st-paragram score` of one pair and `st-paragram search`. One thread;
peak memory is resident (VmHWM). Linux only.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from harness.processes import Program, command, in_turn, spread
from harness.texts import sentences

from st_paragram.cli.main import run_reporting_errors
from st_paragram.core.formatting import markdown_table

SENTENCE = "Where is the station?"
_PEAK = r"""
import re
print(re.search(r"VmHWM:\s+(\d+)", open("/proc/self/status").read())[1])
"""
_COMMAND = "from st_paragram.cli.main import main; main(sys.argv[1:]) and sys.exit('it failed')"
_FIRST = {
    "Encoder": "from st_paragram import Encoder; Encoder(sys.argv[1])",
    "st_paragram.load": "import st_paragram; st_paragram.load(sys.argv[1])",
    "sentence-transformers": (
        "from sentence_transformers import SentenceTransformer; SentenceTransformer(sys.argv[1])"
    ),
    "model2vec": "from model2vec import StaticModel; StaticModel.from_pretrained(sys.argv[1])",
}


def programs(model: str, folder: Path, lines: int) -> dict[str, Program]:
    """Return the programs, after making a copy of the model, a pair, and an index of `lines` lines
    in the folder.
    """
    copy, pair, text, index, scored = (
        str(folder / name) for name in ("copy", "pair.tsv", "text", "index", "scored")
    )
    Path(pair).write_text(f"{SENTENCE}\t¿Dónde está la estación?\n", encoding="utf-8")
    Path(text).write_text("".join(f"{each}\n" for each in sentences(None, lines)), encoding="utf-8")
    command("export", model, copy, "--dtype", "float32").run()
    command("index", text, "--output", index, "--model", model).run()
    codes = {name: (f"{code}.encode([{SENTENCE!r}])", [copy]) for name, code in _FIRST.items()}
    codes["NumPy alone"] = "import numpy", []
    codes["st-paragram score"] = (
        _COMMAND,
        [
            "score",
            pair,
            "--output",
            scored,
            "--overwrite",
            "--model",
            model,
        ],
    )
    codes["st-paragram search"] = _COMMAND, ["search", index, SENTENCE]
    return {
        name: Program(["-c", f"import sys\n{code}{_PEAK}", *words], 1)
        for name, (code, words) in codes.items()
    }


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "model", metavar="MODEL", nargs="?", default="p-sp-mini", help="(%(default)s)"
    )
    parser.add_argument(
        "--lines", type=int, default=1000, metavar="N", help="lines of the index (%(default)s)"
    )
    parser.add_argument("--rounds", type=int, default=7, metavar="N", help="(%(default)s)")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        found = in_turn(programs(arguments.model, Path(folder), arguments.lines), arguments.rounds)
    rows = [
        [
            name,
            spread([run.seconds for run in runs]),
            f"{max(run.figures for run in runs) / 2**10:,.0f}",
        ]
        for name, runs in found.items()
    ]
    print(markdown_table(["new process", "seconds: median (range)", "peak memory, MiB"], rows))
    return 0


if __name__ == "__main__":
    sys.exit(run_reporting_errors("startup", main))
