r"""Probing: properties of a sentence that a linear classifier can predict from frozen embeddings
(EMNLP 2020).

    python benchmarks/probing.py p-sp-mini bgt-es --senteval senteval/probing --text sentences.txt

`--senteval FOLDER` has SentEval's files (sentence_length.txt, tree_depth.txt, word_content.txt,
...), rows `tr|va|te TAB label TAB text`. `--text FILE` makes tasks from its lines: sentence length
in words, number of punctuation marks, and first punctuation mark. The classifier is a logistic
regression on standardized features; its regularization is chosen on the validation split.
`majority` is the accuracy of the most frequent label.
"""

from __future__ import annotations

import argparse
import random
import string
import sys
from collections import Counter
from itertools import islice
from pathlib import Path

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, PredefinedSplit
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from st_paragram.cli.main import run_reporting_errors
from st_paragram.core.encoding.models import load_encoder
from st_paragram.core.formatting import hundredths, markdown_table
from st_paragram.core.text.streams import read_lines
from st_paragram.errors import EvaluationError, TextError

Examples = list[tuple[str, str]]  # labels and texts
Task = tuple[Examples, Examples, Examples]  # for training, validation and test
STRENGTHS = (0.25, 1.0, 4.0)  # three of SentEval's 2^-2 ... 2^3
LENGTHS = ((5, 8), (9, 12), (13, 16), (17, 20), (21, 25), (26, 28))  # SentEval's bins, in words
MOST_MARKS, LEAST = 11, 10  # largest label for the number of marks; minimum sentences per label


def senteval_tasks(folder: Path, sizes: list[int], rng: random.Random) -> dict[str, Task]:
    """Read the tasks of SentEval's files, with at most the numbers of rows in `sizes` per split."""
    tasks = {}
    for path in sorted(folder.glob("*.txt")):
        parts: dict[str, Examples] = {"tr": [], "va": [], "te": []}
        for number, line in enumerate(read_lines(str(path)), start=1):
            split, *rest = line.split("\t")
            if split not in parts or len(rest) < 2:
                raise TextError(f"{path}: row {number} is not `tr|va|te TAB label TAB text`")
            parts[split].append((rest[0], rest[-1]))
        tasks[path.stem] = _drawn(list(parts.values()), sizes, rng)
    return tasks


def text_tasks(path: Path, sizes: list[int], rng: random.Random) -> dict[str, Task]:
    """Make tasks from the distinct lines of a text."""
    labeled: dict[str, Examples] = {"sentence length": [], "number of marks": [], "first mark": []}
    for text in dict.fromkeys(read_lines(str(path))):
        marks = [character for character in text if character in string.punctuation]
        words = len(text.split())
        labeled["sentence length"] += [
            (f"{low}-{high}", text) for low, high in LENGTHS if low <= words <= high
        ]
        if marks:
            labeled["number of marks"].append((str(min(len(marks), MOST_MARKS)), text))
            labeled["first mark"].append((marks[0], text))
    tasks = {}
    for name, examples in labeled.items():
        counts = Counter(label for label, _ in examples)
        frequent = [each for each in examples if counts[each[0]] >= LEAST]
        rng.shuffle(frequent)
        shares, rows = [size / sum(sizes) for size in sizes], iter(frequent)
        tasks[name] = _drawn(
            [list(islice(rows, int(share * len(frequent)))) for share in shares], sizes, rng
        )
    return tasks


def _drawn(parts: list[Examples], sizes: list[int], rng: random.Random) -> Task:
    train, valid, test = (
        rng.sample(part, min(size, len(part))) for part, size in zip(parts, sizes, strict=True)
    )
    return train, valid, test


def probe(model: str, tasks: dict[str, Task]) -> dict[str, float]:
    """Return the accuracy on the test split of each task."""
    encoder, found = load_encoder(model), {}
    for name, parts in tasks.items():
        vectors = [
            encoder.encode([text for _, text in part], show_progress_bar=False) for part in parts
        ]
        labels = [[label for label, _ in part] for part in parts]
        # -1: only for training
        fold = PredefinedSplit(np.repeat([-1, 0], [len(parts[0]), len(parts[1])]))
        pipeline = make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000))
        search = GridSearchCV(pipeline, {"logisticregression__C": STRENGTHS}, cv=fold, refit=False)
        search.fit(np.concatenate(vectors[:2]), labels[0] + labels[1])
        best = pipeline.set_params(**search.best_params_).fit(vectors[0], labels[0])
        found[name] = float(best.score(vectors[2], labels[2]))
    return found


def main() -> int:
    """Make tasks, probe every model and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("models", nargs="+", metavar="MODEL")
    parser.add_argument("--senteval", type=Path, metavar="FOLDER", help="SentEval's probing files")
    parser.add_argument("--text", type=Path, metavar="FILE", help="one sentence per line")
    parser.add_argument(
        "--sizes",
        type=int,
        nargs=3,
        default=[10_000, 1_000, 2_000],
        help="split sizes (%(default)s)",
    )
    arguments = parser.parse_args()
    rng = random.Random(0)
    tasks = senteval_tasks(arguments.senteval, arguments.sizes, rng) if arguments.senteval else {}
    tasks |= text_tasks(arguments.text, arguments.sizes, rng) if arguments.text else {}
    if not tasks:
        raise EvaluationError("no tasks; give --senteval FOLDER, --text FILE, or both")
    scores = {model: probe(model, tasks) for model in arguments.models}
    rows = []
    for name, (train, valid, test) in tasks.items():
        frequent = Counter(label for label, _ in train).most_common(1)[0][0]
        majority = sum(label == frequent for label, _ in test) / len(test)
        sizes = f"{len(train)} / {len(valid)} / {len(test)}"
        rows.append(
            [
                name,
                sizes,
                hundredths(majority),
                *(hundredths(each[name]) for each in scores.values()),
            ]
        )
    print(markdown_table(["task: accuracy x 100", "sentences", "majority", *scores], rows))
    return 0


if __name__ == "__main__":
    sys.exit(run_reporting_errors("probing", main))
