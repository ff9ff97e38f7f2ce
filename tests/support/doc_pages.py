"""Pages of the documentation as what can be run in them: blocks of Python, and lines for a shell."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", ROOT / "recipes/README.md", *sorted((ROOT / "docs").glob("**/*.md"))]

_FENCE = re.compile(r"^(?P<indent> *)```(?P<language>\w*)")
_NOT_RUN = re.compile(r"^ *<!-- not run: (?P<reason>.+) -->")
_NESTED = re.compile(r"^(?:[-*] |\d+\. |!!! |\?\?\?|=== |::: )")  # what stands indented below it is text
_COMMAND = re.compile(r"^(?:\$ )?(?:st-paragram|python|pip|make) ")
_LANGUAGES = {"py": "python", "python": "python", "bash": "shell", "console": "shell", "sh": "shell", "shell": "shell"}
_BREAKS = {";", "&&", "||", "|", "&"}


@dataclass
class Block:
    """A block of a page: its language (`shell` for indented lines), text, first line, and why it is not run."""

    page: Path
    line: int
    language: str
    text: str
    not_run: str = ""

    @property
    def where(self) -> str:
        """Where it stands, for messages."""
        return f"{self.page.relative_to(ROOT).as_posix()}:{self.line}"

    @property
    def end(self) -> int:
        """The line below its text."""
        return self.line + self.text.count("\n") + 1

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
    return list(_Reader(page).blocks())


def assert_alike(printed: str, block: Block) -> None:
    """What was printed is what the page shows, but for rounding, which differs from processor to processor."""
    numbers = re.compile(r"-?\d+\.\d+")
    shown = block.text
    assert " ".join(numbers.sub("N", printed).split()) == " ".join(numbers.sub("N", shown).split()), block.where
    ours, theirs = (list(map(float, numbers.findall(text))) for text in (printed, shown))
    assert ours == pytest.approx(theirs, abs=0.011), block.where


class _Reader:
    """Reads a page from its top."""

    def __init__(self, page: Path) -> None:
        self.page = page
        self.lines = page.read_text(encoding="utf-8").split("\n")
        self.at = 0

    def blocks(self) -> Iterator[Block]:
        above, reason = "", ""
        while self.at < len(self.lines):
            line = self.lines[self.at]
            fence, excuse = _FENCE.match(line), _NOT_RUN.match(line)
            if excuse:
                reason, self.at = excuse["reason"], self.at + 1
            elif fence or (line.startswith("    ") and not _NESTED.match(above)):
                yield self._fenced(fence, reason) if fence else self._indented(reason)
                reason = ""
            else:
                above = line if line.strip() and not line.startswith(" ") else above
                self.at += 1

    def _fenced(self, fence: re.Match[str], reason: str) -> Block:
        begin = self.at + 1
        indent = len(fence["indent"])
        self.at = begin + next(i for i, line in enumerate(self.lines[begin:]) if line[indent:].startswith("```"))
        text = "\n".join(line[indent:] for line in self.lines[begin : self.at])
        self.at += 1
        language = _LANGUAGES.get(fence["language"], fence["language"])
        if not language:
            language = "shell" if _COMMAND.match(text) else "text"
        return Block(self.page, begin + 1, language, text, reason)

    def _indented(self, reason: str) -> Block:
        begin = self.at
        while self.at < len(self.lines) and self.lines[self.at].startswith("    "):
            self.at += 1
        text = "\n".join(line[4:] for line in self.lines[begin : self.at])
        return Block(self.page, begin + 1, "shell", text, reason)
