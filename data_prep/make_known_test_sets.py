"""Make the three files that identify test sets; all contain only hashes.

    python data_prep/make_known_test_sets.py DIR --retrieval RETRIEVAL

DIR holds sts2012 .. sts2017/*.tsv and stsb/en-{train,dev,test}.tsv (`grade TAB sentence TAB
sentence`), tatoeba/*.tsv (`foreign TAB english`, the files of version 1) and ntrex/*.txt, see
docs/evaluation.md. RETRIEVAL (default: DIR) holds
{reqa_squad_dev,quora_sr,xquad_r/LANG}/{queries,corpus}.tsv (`id TAB text`) and nli/*.tsv (`label
TAB premise TAB hypothesis`), also as .gz or .xz. Run it when a test set is added. In
st_paragram/tools/cleaning, known_test_sets.json separates test sets from development sets; with
known_test_sentences.bin the sentences of all of them are kept out of training data. In
st_paragram/tools/evaluation, known_sets.yaml identifies the sets with published figures.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path

from st_paragram.cli.main import run_reporting_errors
from st_paragram.core.files import write_text
from st_paragram.core.outputs import check_new
from st_paragram.core.text.parallel import TextSource, read_pairs
from st_paragram.core.text.streams import open_stream, read_blocks
from st_paragram.errors import EvaluationError
from st_paragram.tools.cleaning.known_sentences import (
    KNOWN_TEST_SENTENCES,
    KNOWN_TEST_SETS,
    SetFamily,
    pair_hashes,
    sketch,
    write_known_sentences,
    write_known_test_sets,
)
from st_paragram.tools.evaluation import report, sts_sets, translations
from st_paragram.tools.evaluation.files import read_graded_pairs
from st_paragram.tools.evaluation.known_sets import (
    KNOWN_SETS,
    graded_digest,
    translations_digest,
)
from st_paragram.tools.evaluation.request import Request

# Files of each family in a folder, which may be compressed with gzip or xz. In queries and corpora,
# the second column is the sentence; in all others, the last two columns are sentences.
ID_AND_TEXT = ("queries", "corpus")
PATTERNS = {
    SetFamily.STS: ("sts20[0-9][0-9]/*.tsv", "stsb/*.tsv"),
    SetFamily.TATOEBA: ("tatoeba/*.tsv",),
    SetFamily.RETRIEVAL: (
        "reqa_squad_dev/queries.tsv",
        "reqa_squad_dev/corpus.tsv",
        "quora_sr/queries.tsv",
        "quora_sr/corpus.tsv",
        "xquad_r/*/queries.tsv",
        "xquad_r/*/corpus.tsv",
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
        "--output",
        type=Path,
        default=KNOWN_TEST_SETS,
        metavar="FILE",
        help=f"file of the test sets; {KNOWN_TEST_SENTENCES.name} and {KNOWN_SETS.name} are written"
        " next to it (default: replace the three installed files)",
    )
    arguments = parser.parse_args()
    folders = {
        SetFamily.STS: arguments.data,
        SetFamily.TATOEBA: arguments.data,
        SetFamily.RETRIEVAL: arguments.retrieval or arguments.data,
    }
    sentences = KNOWN_TEST_SENTENCES  # or next to the other file
    digests = KNOWN_SETS
    if arguments.output != KNOWN_TEST_SETS:
        sentences = arguments.output.with_name(KNOWN_TEST_SENTENCES.name)
        digests = arguments.output.with_name(KNOWN_SETS.name)
        for path in (arguments.output, sentences, digests):
            check_new(path)
    else:
        _check_complete(folders)
    _write_sets(arguments.data, arguments.output)
    _write_sentences(folders, sentences)
    _write_digests(arguments.data, digests)
    return 0


def _check_complete(folders: Mapping[SetFamily, Path]) -> None:
    """Refuse to replace the installed files if a test set is missing."""
    for family, folder in folders.items():
        for pattern in PATTERNS[family]:
            if not _paths(folder, pattern):
                raise EvaluationError(
                    f"{folder}: no {pattern}, so the installed files would lose its sentences; add"
                    " the files (--retrieval), or write other files (--output)"
                )


def _write_sets(folder: Path, output: Path) -> None:
    """Write the file of test sets and development sets."""
    developments = {}
    for name, file in DEVELOPMENT.items():
        developments[name] = _graded_hashes(folder / file)
    in_development = set().union(*developments.values())
    tests = [sketch(name, pairs, in_development) for name, pairs in _test_sets(folder)]
    if not tests:
        raise EvaluationError(
            f"{folder}: no sts20XX/*.tsv and no tatoeba/*.tsv; see docs/evaluation.md"
        )
    write_known_test_sets(tests, developments, output)
    sys.stdout.write(f"{len(tests)} test sets, {len(developments)} development sets: {output}\n")


def _test_sets(folder: Path) -> Iterator[tuple[str, set[int]]]:
    """Yield the name and the hashes of the pairs of each test set."""
    for path in sorted(folder.glob("sts20??/*.tsv")):
        if folder / DEVELOPMENT["STS 2017 en-en"] != path:
            yield f"STS {path.parent.name[3:]} {path.stem}", _graded_hashes(path)
    benchmark = folder / "stsb" / "en-test.tsv"
    if benchmark.is_file():
        yield "STS Benchmark test", _graded_hashes(benchmark)
    for path in sorted(folder.glob("tatoeba/*.tsv")):
        rows = list(read_pairs(TextSource((str(path),), ("xx", "en"))))
        hashes = pair_hashes([first for first, _ in rows], [second for _, second in rows])
        yield f"Tatoeba {path.stem}", hashes


def _graded_hashes(path: Path) -> set[int]:
    pairs = read_graded_pairs(path)
    return pair_hashes(pairs.first, pairs.second)


def _write_sentences(folders: Mapping[SetFamily, Path], output: Path) -> None:
    """Write the file of sentences."""
    sentences = {family: _sentences(folder, family) for family, folder in folders.items()}
    count = write_known_sentences(sentences, output)
    sys.stdout.write(f"{count} sentences: {output}\n")


def _write_digests(folder: Path, output: Path) -> None:
    """Write the digests of the sets with published figures."""
    request = Request([], data=folder, sets=(*sts_sets.SETS, sts_sets.NOT_SCORED))
    lines = ["# Digests of published test sets, see known_sets.py", "sts:"]
    for key, pairs in sts_sets.read(request).sets.items():
        lines.append(f"  {key}: {graded_digest(pairs)}")
    for benchmark in ("tatoeba", "ntrex"):
        if not translations.find(folder, benchmark):
            continue
        lines.append(f"{benchmark}:")
        request = Request([], data=folder, benchmark=benchmark)
        for translated in translations.read(request).pairs:
            if translated.name in report.published_columns(benchmark):
                lines.append(f"  {translated.name}: {translations_digest(translated)}")
    write_text(output, "\n".join(lines) + "\n")
    sys.stdout.write(f"{output}\n")


def _sentences(folder: Path, family: SetFamily) -> Iterator[str]:
    """Yield the sentences of all files of a family."""
    paths: list[Path] = []
    for pattern in PATTERNS[family]:
        paths += _paths(folder, pattern)
    for path in sorted(paths):
        has_ids = path.name.partition(".")[0] in ID_AND_TEXT
        for cells in _rows(path):
            if has_ids:
                yield from cells[1:2]
            else:
                yield from cells[-2:]


def _paths(folder: Path, pattern: str) -> list[Path]:
    """Return the files of a pattern, which may be compressed."""
    paths: list[Path] = []
    for ending in ("", ".gz", ".xz"):
        paths += folder.glob(f"{pattern}{ending}")
    return paths


def _rows(path: Path) -> Iterator[list[str]]:
    """Yield the cells of each row that is not blank."""
    with ExitStack() as stack:
        for block in read_blocks(path.name, open_stream(str(path), stack)):
            for row in block.decode("utf-8-sig").split("\n"):
                if row.strip():
                    yield row.rstrip("\r").split("\t")


if __name__ == "__main__":
    sys.exit(run_reporting_errors("make_known_test_sets", main))
