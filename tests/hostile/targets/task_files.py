"""Files of questions, responses and inference, and public files in their forms: refused, or rows that can be read."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import numpy as np

from hostile.damage import damaged, edited_json, json_bytes
from st_paragram.families.muse.public_files.convert import KINDS, convert
from st_paragram.families.muse.tasks.task_files import TaskFileCounts, read_task_file

TRIES, QUICK = 5_000, 60

_ROWS = {
    "qa": "where is it?\tIt is there.\tMuch is said. It is there.\nwho?\tShe.\t\n",
    "response": "hello\thow are you?\nfine\tgood\n",
    "nli": "entailment\ta man sleeps\ta man rests\nneutral\ta dog\ta cat\ncontradiction\tyes\tno\n",
}
_SQUAD = {
    "data": [
        {
            "paragraphs": [
                {
                    "context": "The tower is old. It was built in 1173 by many.",
                    "qas": [{"question": "when?", "answers": [{"text": "1173", "answer_start": 34}], "id": "a"}],
                }
            ]
        }
    ]
}
_LINES = {
    "faq": [{"question": "How?", "answer": "Like this. And so on."}, {"question": "Why?", "answer": "Because of it."}],
    "dialogue": [{"turns": ["good morning", "how are you today?", "very well"]}],
    "nli": [{"gold_label": "neutral", "sentence1": "a man sleeps", "sentence2": "a man dreams"}],
}
_TEXTS = {
    "faq": "question\tanswer\nHow?\tLike this.\nWhy?\tBecause of it.\n",
    "dialogue": "good morning\nhow are you today?\n\nwhat time is it?\nit is late\n",
    "nli": "gold_label\tsentence1\tsentence2\nneutral\ta man sleeps\ta man dreams\n",
}
_LONG = (".", "?!", ".”", "a？", ". ", "\u3002", "i.e. ", " ", "9")  # of which a text may have many


def prepare(folder: Path) -> None:
    """Nothing is shared."""


def attempt(shared: Any, rng: np.random.Generator, folder: Path) -> str:
    """Read a damaged file of a task, or make one of a damaged public file and read that."""
    if rng.random() < 0.4:
        task = str(rng.choice(sorted(_ROWS)))
        path = folder / "en.tsv"
        data = damaged((_ROWS[task] * int(rng.integers(1, 40))).encode(), rng)
        path.write_bytes(gzip.compress(data) if rng.random() < 0.2 else data)
        return _read(path, task)
    kind = str(rng.choice(sorted(KINDS)))
    path = folder / f"public{rng.choice(['.json', '.jsonl', '.tsv', '.csv', '.txt', ''])}"
    path.write_bytes(_public(kind, rng))
    made, report = convert(kind, "en", [path], folder / "made")
    content = made.read_bytes()
    if report.written != content.count(b"\n") or report.read != report.written + report.left_out.total():
        return f"wrong: {report} of {content!r}"
    if b"{'" in content or b"['" in content:
        return f"wrong: a value of Python in {content!r}"
    return f"made, {_read(made, KINDS[kind][0])}"


def _read(path: Path, task: str) -> str:
    """Read all rows, none of which may be empty or of several lines."""
    counts, rows = TaskFileCounts(), 0
    for row in read_task_file(path, task, counts, most_bad=1.0):
        rows += 1
        if not (row.first.strip() and row.second.strip()) or any("\n" in text or "\t" in text for text in row[:2]):
            return f"wrong: row {row!r}"
    return "read" if rows else "wrong: no row, and no error"


def _public(kind: str, rng: np.random.Generator) -> bytes:
    if kind == "squad":
        data = json_bytes(edited_json(_SQUAD, rng))
    elif rng.random() < 0.6:
        data = b"\n".join(json_bytes(edited_json(value, rng)) for value in _LINES[kind] * int(rng.integers(1, 20)))
    else:
        data = (_TEXTS[kind] * int(rng.integers(1, 20))).encode()
    if rng.random() < 0.1:
        data = data.replace(b"is", _LONG[rng.integers(len(_LONG))].encode() * 20_000)
    return damaged(data, rng) if rng.random() < 0.5 else data
