"""Make the two files that identify test sets; both contain only hashes.

    python data_prep/make_known_test_sets.py DIR --retrieval RETRIEVAL

DIR holds sts2012 .. sts2017/*.tsv and stsb/en-{train,dev,test}.tsv (`grade TAB sentence TAB
sentence`, see docs/evaluation.md) and tatoeba/*.tsv (`foreign TAB english`, the files of version
1). RETRIEVAL (default: DIR) holds {reqa_squad_dev,quora_sr,xquad_r/LANG}/{queries,corpus}.tsv (`id
TAB text`) and nli/*.tsv (`label TAB premise TAB hypothesis`), also as .gz or .xz. Run it when a
test set is added. st_paragram/tools/evaluation/known_test_sets.json separates test sets from
development sets; with st_paragram/tools/cleaning/known_test_sentences.bin the sentences of all of
them are kept out of training data.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

from st_paragram.cli.main import run_reporting_errors
from st_paragram.core.outputs import check_new
from st_paragram.core.text.parallel import TextSource, read_pairs
from st_paragram.core.text.streams import open_stream, read_blocks
from st_paragram.errors import EvaluationError
from st_paragram.tools.cleaning.known_sentences import (
    KNOWN_TEST_SENTENCES,
    SetFamily,
    write_known_sentences,
)
from st_paragram.tools.evaluation.files import read_graded_pairs
from st_paragram.tools.evaluation.known_test_sets import (
    KNOWN_TEST_SETS,
    pair_hashes,
    sketch,
    write_known_test_sets,
)

# Files of each family in a folder, which may be compressed with gzip or xz. In queries and corpora,
# the second column is the sentence; in all others, the last two columns are sentences.
ID_AND_TEXT = ("queries", "corpus")
PATTERNS = {
    SetFamily.STS: ("sts20[0-9][0-9]/*.tsv", "stsb/*.tsv"),
    SetFamily.TATOEBA: ("tatoeba/*.tsv",),
    SetFamily.RETRIEVAL: (
        *(
            f"{name}/{part}.tsv"
            for name in ("reqa_squad_dev", "quora_sr", "xquad_r/*")
            for part in ID_AND_TEXT
        ),
        "nli/*.tsv",
    ),
}
DEVELOPMENT = {"STS 2017 en-en": "sts2017/track5.en-en.tsv", "STS Benchmark dev": "stsb/en-dev.tsv"}


def main() -> int:
    """Read the sets and write the files."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("data", type=Path, metavar="DIR")
    parser.add_argument(
        "--retrieval", type=Path, metavar="DIR", help="retrieval and inference sets (default: DIR)"
    )
    parser.add_argument(
        "--output", type=Path, default=KNOWN_TEST_SETS, help="output file (default: installed file)"
    )
    arguments = parser.parse_args()
    sentences = KNOWN_TEST_SENTENCES  # or next to the other file
    if arguments.output != KNOWN_TEST_SETS:
        sentences = arguments.output.with_name(KNOWN_TEST_SENTENCES.name)
        check_new(arguments.output)
        check_new(sentences)
    developments = {name: _graded(arguments.data / path) for name, path in DEVELOPMENT.items()}
    union = set().union(*developments.values())
    tests = [sketch(name, pairs, union) for name, pairs in _test_sets(arguments.data)]
    if not tests:
        raise EvaluationError(
            f"{arguments.data}: no sts20XX/*.tsv and no tatoeba/*.tsv; see docs/evaluation.md"
        )
    write_known_test_sets(tests, developments, arguments.output)
    sys.stdout.write(
        f"{len(tests)} test sets, {len(developments)} development sets: {arguments.output}\n"
    )
    folders = {SetFamily.RETRIEVAL: arguments.retrieval or arguments.data}
    found = {kind: _sentences(folders.get(kind, arguments.data), kind) for kind in SetFamily}
    count = write_known_sentences(found, sentences)
    sys.stdout.write(f"{count} sentences: {sentences}\n")
    return 0


def _sentences(folder: Path, kind: SetFamily) -> Iterator[str]:
    """Yield the sentences of all files of a family."""
    patterns = [f"{each}{end}" for each in PATTERNS[kind] for end in ("", ".gz", ".xz")]
    for path in sorted(path for each in patterns for path in folder.glob(each)):
        columns = slice(1, 2) if path.name.partition(".")[0] in ID_AND_TEXT else slice(-2, None)
        with ExitStack() as stack:
            for block in read_blocks(path.name, open_stream(str(path), stack)):
                for row in filter(str.strip, block.decode("utf-8-sig").split("\n")):
                    yield from row.rstrip("\r").split("\t")[columns]


def _test_sets(folder: Path) -> Iterator[tuple[str, set[int]]]:
    for path in sorted(folder.glob("sts20??/*.tsv")):
        if folder / DEVELOPMENT["STS 2017 en-en"] != path:
            yield f"STS {path.parent.name[3:]} {path.stem}", _graded(path)
    if (folder / "stsb" / "en-test.tsv").is_file():
        yield "STS Benchmark test", _graded(folder / "stsb" / "en-test.tsv")
    for path in sorted(folder.glob("tatoeba/*.tsv")):
        rows = list(read_pairs(TextSource((str(path),), ("xx", "en"))))
        yield f"Tatoeba {path.stem}", pair_hashes(*zip(*rows, strict=True))


def _graded(path: Path) -> set[int]:
    pairs = read_graded_pairs(path)
    return pair_hashes(pairs.first, pairs.second)


if __name__ == "__main__":
    sys.exit(run_reporting_errors("make_known_test_sets", main))
