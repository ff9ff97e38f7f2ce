"""Make rows for `st-paragram train muse` from data sets of the Hugging Face hub, or from JSON lines
with their columns.

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

import argparse
import re
from collections import Counter
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

from datasets import load_dataset

LABELS = ("entailment", "neutral", "contradiction")
# maximum rows with the same second text: "OK." answers everything
MOST = {"qa": 3, "response": 5, "nli": 1 << 30}
END = re.compile(r"[.!?؟]+[\"')\]]*\s+|[。！？]+|\n+")


def rows_of(task: str, example: dict[str, Any], id_prefix: str) -> Iterator[tuple[str, ...]]:
    """Yield the rows of an example in a data set."""
    if task == "response":
        yield from pairwise(example["dialog"])
    elif task == "nli" and example["label"] in range(3):  # -1: the annotators did not agree
        yield LABELS[example["label"]], example["premise"], example["hypothesis"]
    elif (
        task == "qa"
        and example["answers"]["text"]
        and str(example.get("id", "")).startswith(id_prefix)
    ):
        context, place = example["context"], example["answers"]["answer_start"][0]
        ends = [0, *(found.end() for found in END.finditer(context)), len(context)]
        yield from (
            (example["question"], context[a:b], context)
            for a, b in pairwise(ends)
            if a <= place < b
        )


def main() -> None:
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
    asked = parser.parse_args()
    output = (asked.output or Path(asked.task)) / f"{asked.language}.tsv"
    if output.exists():
        parser.error(f"{output} exists; move it or choose another folder")
    data = {"path": asked.data, "name": asked.name, "split": asked.split}
    if Path(asked.data).is_file():
        data = {"path": "json", "data_files": asked.data, "split": "train"}
    seen, written = Counter[str](), dict[str, None]()
    for example in (examples := load_dataset(**data)):
        for row in rows_of(asked.task, example, asked.id_prefix):
            cells = [" ".join(cell.split()) for cell in row]
            second, line = cells[2 if asked.task == "nli" else 1], "\t".join(cells) + "\n"
            if all(cells) and line not in written and seen[second] < MOST[asked.task]:
                seen[second] += 1
                written[line] = None
    output.parent.mkdir(parents=True, exist_ok=True)
    output.write_bytes("".join(written).encode())
    print(f"{output}: {len(written):,} rows of {len(examples):,} examples")


if __name__ == "__main__":
    main()
