"""Retrieval sets, inference and transfer tasks with a damaged file: refused, or sets whose parts fit each other."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np

from hostile.damage import damaged
from st_paragram.families.muse.nli import read_nli_sets
from st_paragram.families.muse.tasks.task_files import LABELS
from st_paragram.tools.evaluation.retrieval_files import read_retrieval_set
from st_paragram.tools.evaluation.transfer import read_transfer

TRIES, QUICK = 5_000, 60


def prepare(folder: Path) -> Path:
    """A folder of small sets of each kind."""
    data = folder / "data"
    files = {
        "quora_sr/queries.tsv": "".join(f"q{i}\tquestion {i}\n" for i in range(30)),
        "quora_sr/corpus.tsv": "".join(f"c{i}\tanswer {i}\taround answer {i}\n" for i in range(40)),
        "quora_sr/qrels.tsv": "".join(f"q{i}\tc{i}\n" for i in range(30)),
        "nli/snli_test.en.tsv": "entailment\ta\tb\nneutral\tc\td\ncontradiction\te\tf\n" * 9,
        "transfer/MR.tsv": "".join(f"{i % 2}\ta text {i}\n" for i in range(40)),
        "transfer/TREC.train.tsv": "".join(f"{i % 3}\ta question {i}\n" for i in range(40)),
        "transfer/TREC.test.tsv": "".join(f"{i % 3}\ta question {i}\n" for i in range(12)),
    }
    for name, text in files.items():
        (data / name).parent.mkdir(parents=True, exist_ok=True)
        (data / name).write_text(text)
    read_transfer(data)
    return data


def attempt(shared: Path, rng: np.random.Generator, folder: Path) -> str:
    """Damage a file, and read the sets of its kind."""
    data = Path(shutil.copytree(shared, folder / "data"))
    paths = sorted(path for path in data.rglob("*") if path.is_file())
    path = paths[rng.integers(len(paths))]
    path.write_bytes(damaged(path.read_bytes(), rng))
    wrong = _READERS[path.parent.name](data)
    return f"wrong: {wrong}" if wrong else "read"


def _retrieval(data: Path) -> str:
    found = read_retrieval_set(data / "quora_sr")
    if not len(found.queries) == len(found.relevant) > 0 or len(found.corpus) != len(found.contexts):
        return f"{len(found.queries)} queries, {len(found.relevant)} judged"
    bad = [rows for rows in found.relevant if not (len(rows) and 0 <= rows.min() <= rows.max() < len(found.corpus))]
    return f"judgements of {bad}" if bad else ""


def _inference(data: Path) -> str:
    for found in read_nli_sets(data):
        if not len(found.premises) == len(found.hypotheses) == len(found.labels) > 0:
            return f"{len(found.premises)} premises, {len(found.labels)} labels"
        if not set(found.labels) <= set(LABELS):
            return f"labels {set(found.labels)}"
    return ""


def _transfer(data: Path) -> str:
    for task in read_transfer(data):
        for split, part in task.splits.items():
            if not len(part.texts) == len(part.labels) > 0:
                return f"{task.name} {split}: {len(part.texts)} texts, {len(part.labels)} labels"
    return ""


_READERS = {"quora_sr": _retrieval, "nli": _inference, "transfer": _transfer}
