"""Copy texts/LANG/SOURCE.tsv without rows whose English is near a sentence of a test set.

    python data_prep/drop_test_text.py --texts all --output texts --tests eval/ntrex eval/stsb

A row is near if its English has the words of a test sentence, or if half of its sequences of six
words are in test sentences. The tests are files with sentences in lines or columns, in any
language. The numbers of dropped rows are printed.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path

import regex

from st_paragram.cli.main import run_reporting_errors
from st_paragram.core.files import write_text
from st_paragram.core.outputs import check_new
from st_paragram.core.text.streams import read_lines
from st_paragram.errors import SettingsError

#: Words of the sequences that are compared.
SEQUENCE = 6
#: Sentences with fewer words are everyday sentences ("How old is he?") and are kept.
LEAST_WORDS = 4
#: Share of the sequences of a row that are in test sentences.
MOST_SHARED = 0.5
WORD = regex.compile(r"[\p{L}\p{M}\p{N}]+")


def words_of(text: str) -> list[str]:
    """Return the words of a text in lower case, without punctuation."""
    return WORD.findall(text.lower())


def sequences(words: list[str]) -> list[str]:
    """Return all sequences of six words."""
    return [" ".join(words[start : start + SEQUENCE]) for start in range(len(words) - SEQUENCE + 1)]


def test_sentences(folders: list[Path]) -> Iterator[list[str]]:
    """Yield the words of the sentences in files of test sets."""
    for folder in folders:
        paths = [path for path in sorted(folder.rglob("*")) if path.is_file()]
        if not paths:
            raise SettingsError(f"{folder}: no files of test sets")
        for path in paths:
            for line in path.read_text(encoding="utf-8", errors="replace").split("\n"):
                for text in line.split("\t"):
                    yield words_of(text)


class Tests:
    """Sentences of test sets, and their sequences of six words."""

    def __init__(self, folders: list[Path]) -> None:
        """Read the files of test sets."""
        self._sentences = set[str]()
        self._sequences = set[str]()
        for words in test_sentences(folders):
            if len(words) >= LEAST_WORDS:
                self._sentences.add(" ".join(words))
            self._sequences.update(sequences(words))

    def is_near(self, text: str) -> bool:
        """Whether a text is a test sentence, or half of its sequences are in test sentences."""
        words = words_of(text)
        found = sequences(words)
        shared = len(self._sequences.intersection(found))
        return " ".join(words) in self._sentences or shared >= MOST_SHARED * max(1, len(found))


def main() -> int:
    """Copy the texts without such rows, and print how many rows each language lost."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--texts", type=Path, required=True, metavar="DIR", help="folder of LANG/SOURCE.tsv"
    )
    parser.add_argument(
        "--output", type=Path, required=True, metavar="DIR", help="new folder for the copies"
    )
    parser.add_argument(
        "--tests", type=Path, nargs="+", required=True, metavar="DIR", help="folders of test sets"
    )
    arguments = parser.parse_args()
    check_new(arguments.output)
    tests = Tests(arguments.tests)
    for language in sorted(path for path in arguments.texts.iterdir() if path.is_dir()):
        rows = dropped = 0
        for path in sorted(language.glob("*.tsv*")):
            lines = list(read_lines(str(path)))
            kept = [line for line in lines if not tests.is_near(line.partition("\t")[0])]
            rows += len(lines)
            dropped += len(lines) - len(kept)
            name = path.name.partition(".tsv")[0]  # copies are not compressed
            copy = arguments.output / language.name / f"{name}.tsv"
            write_text(copy, "".join(line + "\n" for line in kept))
        print(f"{language.name}: {dropped:,} of {rows:,} rows dropped", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(run_reporting_errors("drop_test_text", main))
