r"""Make rows for `st-paragram train muse` from data sets of the Hugging Face Hub.

Files of JSON lines with the same columns work, too.

    python data_prep/muse_data.py qa en rajpurkar/squad --output qa
    python data_prep/muse_data.py qa ar google-research-datasets/tydiqa --name secondary_task \
        --id-prefix arabic
    python data_prep/muse_data.py nli de facebook/xnli --name de --output nli
    python data_prep/muse_data.py response en dialogues.jsonl --output responses

Columns are those of SQuAD (`question`, `context`, `answers`) or SNLI (`premise`, `hypothesis`,
`label`), or a column of lists of turns (`dialog`). An answer is the sentence with the first span;
its context is the paragraph. Training leaves out rows with sentences of test sets. docs/muse.md
lists sources with their licenses.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

from st_paragram.cli.main import run_reporting_errors
from st_paragram.core.files import write_text
from st_paragram.core.outputs import check_new
from st_paragram.errors import TextError, one_line, short

if TYPE_CHECKING:
    from datasets import Dataset

LABELS = ("entailment", "neutral", "contradiction")
#: Task -> columns that its data sets must have.
COLUMNS = {
    "qa": ("question", "context", "answers"),
    "response": ("dialog",),
    "nli": ("premise", "hypothesis", "label"),
}
#: Task -> maximum rows with the same second text: "OK." answers everything.
MOST = {"qa": 3, "response": 5, "nli": 1 << 30}
END = re.compile(r"[.!?؟]+[\"')\]]*\s+|[。！？]+|\n+")


def rows_of(task: str, example: dict[str, Any], id_prefix: str) -> Iterator[Sequence[str]]:
    """Yield the rows of an example in a data set."""
    if task == "response":
        yield from pairwise(example["dialog"])
    elif task == "nli":
        if example["label"] in range(3):  # -1: the annotators did not agree
            yield LABELS[example["label"]], example["premise"], example["hypothesis"]
    elif str(example.get("id", "")).startswith(id_prefix):
        yield from _answers(example)


def _answers(example: dict[str, Any]) -> Iterator[Sequence[str]]:
    """Yield the question, the sentence with the first span of an answer, and the paragraph."""
    spans = example["answers"]["answer_start"]
    if not spans:
        return
    context = example["context"]
    ends = [0, *(match.end() for match in END.finditer(context)), len(context)]
    for begin, end in pairwise(ends):
        if begin <= spans[0] < end:
            yield example["question"], context[begin:end], context


def read_examples(options: argparse.Namespace) -> Dataset:
    """Load the data set, and check its columns."""
    from datasets import load_dataset
    from datasets.exceptions import DatasetsError

    data = {"path": options.data, "name": options.name, "split": options.split}
    if Path(options.data).is_file():
        data = {"path": "json", "data_files": options.data, "split": "train"}
    try:
        examples = load_dataset(**data)
    except (DatasetsError, ValueError, OSError) as error:
        reason = one_line(error.__cause__ or error)
        raise TextError(
            f"{options.data}: cannot be loaded ({reason}); give a data set of the Hub, or a file of"
            " JSON lines"
        ) from error
    needed = COLUMNS[options.task]
    missing = [column for column in needed if column not in examples.column_names]
    if missing:
        raise TextError(
            f"{options.data}: no column {', '.join(missing)}, only"
            f" {', '.join(examples.column_names)}; {options.task} needs {', '.join(needed)}"
        )
    return examples


def main() -> int:
    """Write the file of a language, `LANG.tsv`."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("task", choices=MOST, help="task of the rows")
    parser.add_argument("language", help="language of the rows, e.g. es")
    parser.add_argument("data", help="data set on the hub, or a file of JSON lines")
    parser.add_argument("--name", help="configuration of the data set")
    parser.add_argument(
        "--split", default="train", help="split of the data set (default: %(default)s)"
    )
    parser.add_argument(
        "--id-prefix", default="", help="use only questions whose id begins with this text"
    )
    parser.add_argument("--output", type=Path, help="output folder (default: name of the task)")
    options = parser.parse_args()
    output = (options.output or Path(options.task)) / f"{options.language}.tsv"
    check_new(output)
    examples = read_examples(options)
    copies = Counter[str]()  # second text -> rows
    lines: dict[str, None] = {}
    for number, example in enumerate(examples, 1):
        try:
            rows = list(rows_of(options.task, example, options.id_prefix))
            cells_of_rows = [[" ".join(cell.split()) for cell in row] for row in rows]
        except (AttributeError, KeyError, TypeError, IndexError) as error:
            raise TextError(
                f"{options.data}: example {number} does not have the form of {options.task} data:"
                f" {short(example)}; see --help for the columns"
            ) from error
        for cells in cells_of_rows:
            line = "\t".join(cells) + "\n"
            second = cells[2] if options.task == "nli" else cells[1]
            if all(cells) and line not in lines and copies[second] < MOST[options.task]:
                copies[second] += 1
                lines[line] = None
    if not lines:
        raise TextError(
            f"{options.data}: no rows of {options.task} in {len(examples):,} examples; check"
            " --id-prefix and --split"
        )
    write_text(output, "".join(lines))
    print(f"{output}: {len(lines):,} rows of {len(examples):,} examples")
    return 0


if __name__ == "__main__":
    sys.exit(run_reporting_errors("muse_data", main))
