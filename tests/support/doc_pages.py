"""What can be run in pages of the documentation: blocks of Python, and lines for a shell."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
_DOCS = [
    path for path in sorted((ROOT / "docs").glob("**/*.md")) if path.parent.name != "reference"
]
PAGES = [ROOT / "README.md", ROOT / "PACKAGE.md", ROOT / "recipes/README.md", *_DOCS]

_NOT_RUN = re.compile(r"<!-- not run: .+ -->")
_BLOCK = re.compile(
    r"^```(?P<language>\w*)\n(?P<fenced>.*?)\n```$|^(?P<indented>(?: {4}[^\n]*\n?)+)", re.M | re.S
)
_SHELL = {"console", "sh", "bash", "shell"}
_BREAKS = {";", "&&", "||", "|", "&"}


@dataclass
class Block:
    """A block of a page: its language (`shell` for indented lines), text, first line, and whether
    it can run here.
    """

    page: Path
    line: int
    language: str
    text: str
    runs: bool

    @property
    def where(self) -> str:
        """The place, for messages."""
        return f"{self.page.relative_to(ROOT).as_posix()}:{self.line}"

    def commands(self) -> list[list[str]]:
        """The words of each command of a block for the shell."""
        lines = self.text.replace("\\\n", " ").split("\n")
        if any(line.startswith("$ ") for line in lines):  # the others are what the commands print
            lines = [line[2:] for line in lines if line.startswith("$ ")]
        return [command for line in lines for command in commands_of(line)]


def commands_of(line: str) -> Iterator[list[str]]:
    """The words of each command of a line, without redirections and settings of variables."""
    reader = shlex.shlex(line, posix=True, punctuation_chars=";&|<>")
    reader.whitespace_split = True
    words: list[str] = []
    skip = False
    for word in reader:
        if word in _BREAKS:
            yield from [words] if words else []
            words = []
        elif skip or (not words and re.match(r"^\w+=", word)):
            skip = False
        elif set(word) <= set("<>&"):
            skip = True
        else:
            words.append(word)
    yield from [words] if words else []


def blocks(page: Path) -> list[Block]:
    """All blocks of a page, in their order."""
    text, found = page.read_text(encoding="utf-8"), []
    for match in _BLOCK.finditer(text):
        language = match["language"] or ("text" if match["indented"] is None else "shell")
        content = (
            match["fenced"]
            if match["indented"] is None
            else re.sub("^    ", "", match["indented"], flags=re.M)
        )
        above = text[: match.start()].rstrip().rpartition("\n")[2]
        line = text.count("\n", 0, match.start()) + 1 + (match["indented"] is None)
        language = "shell" if language in _SHELL else language
        found.append(Block(page, line, language, content, not _NOT_RUN.fullmatch(above.strip())))
    return found


def assert_alike(printed: str, block: Block) -> None:
    """Compare what was printed with what the page shows, up to rounding, which differs from
    processor to processor.
    """
    numbers = re.compile(r"-?\d+\.\d+")
    assert " ".join(numbers.sub("N", printed).split()) == " ".join(
        numbers.sub("N", block.text).split()
    ), block.where
    ours, theirs = (list(map(float, numbers.findall(text))) for text in (printed, block.text))
    assert ours == pytest.approx(theirs, abs=0.011), block.where
