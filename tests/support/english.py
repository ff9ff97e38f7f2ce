"""Phrases of docs/contributing.md, "English", that a pattern finds without false alarms: `make lint` refuses them.

Run as `PYTHONPATH=tests python -m support.english`; `--counts` shows how often each pattern occurs.
"""

from __future__ import annotations

import argparse
import ast
import io
import re
import sys
import tokenize
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]

# What is checked.
CHECKED = ("st_paragram", "docs", "recipes", "data_prep", "README.md", "CHANGELOG.md", "SECURITY.md", "PACKAGE.md")

_TABLE = "| avoid | write |"  # of what to avoid, in docs/contributing.md
_UNITS = "line|row|side|byte|second|minute|pair|text|file"
_BRITISH = (
    "neighbour|favour|behaviour|colour|honour|labelled|cancelled|modelling|learnt|spoilt|"
    "(?:optim|normal|token|organ|recogn|maxim|minim|standard|serial|initial|general|summar|author)is(?:e[drs]?|ing|ation)\\b"
)
PATTERNS = {
    "is not a ...": re.compile(r"(?<!here )\b(?:is|are|was|were) no (?!longer\b|more\b|less\b|other\b|better\b)[a-z]"),
    "separate, or your": re.compile(r"\bof (?:its|their|your|our|one's|his) own\b"),
    "if you": re.compile(r"\bwhoever\b", re.IGNORECASE),
    "says, shows, distinguishes": re.compile(r"\b(?:tells?|told)\b"),
    "one ... per line": re.compile(
        rf"\b(?:an?|one|two|\d+) (?!(?:of|for|to|in|with|and|has|file|lot|bit)\b)\w+ an? (?:{_UNITS})\b(?! of\b)"
    ),
    "its effect": re.compile(r"\b(?:is|are) worth\b"),
    "next to, besides, other than": re.compile(r"\bbeside\b"),
    "again, rebuild": re.compile(r"\banew\b"),
    "is in, comes first": re.compile(
        r"\b(?:stands?|stood) (?:in(?! for)|beside|behind|before|after|first|there|where|on)\b"
    ),
    "only, except": re.compile(r"\b(?:nothing|none|all agree|agree) but\b"),
    "is available, is enough": re.compile(r"\bcan be had\b|\bat hand\b|\bany \w+ will do\b|\ball the same\b"),
    "fix": re.compile(r"\bmend(?:s|ed|ing)?\b"),
    "must, or the present": re.compile(r"\bshall\b"),
    "built from": re.compile(r"\b(?:is|are|was|were|been) made (?:out )?of\b"),
    "US spelling": re.compile(rf"(?<!aria-)\b\w*(?:{_BRITISH})\w*(?![\w:])", re.IGNORECASE),
    "maximum, minimum": re.compile(r"^(?:most|fewest|least|lowest|largest|highest) [a-z]+ (?:of|that|in|which)\b"),
}

# Passages in which a pattern is right: quotations, and words in another sense. Compared as parts of the text.
ALLOWED = (
    "with one scale a row.",  # on cards of released models, which keep their bytes
    "whoever publishes it chooses",  # on cards that exist, which are searched for this sentence
    "query out of its own",
    "left out of its own",
    "the best of its own",
    "the context of its own",
    "those of our own",
)


class Finding(NamedTuple):
    """A phrase to rewrite: where it is, what to write instead, and the words around it."""

    path: Path
    line: int
    instead: str
    context: str

    def __str__(self) -> str:
        """As linters write it."""
        return f"{self.path.relative_to(ROOT)}:{self.line}: write {self.instead!r}: ...{self.context}..."


def findings(checked: tuple[str, ...] = CHECKED) -> list[Finding]:
    """Look through the files of folders, or single files, named from the root of the repository."""
    found = []
    for name in checked:
        place = ROOT / name
        files = sorted([*place.rglob("*.py"), *place.rglob("*.md")]) if place.is_dir() else [place]
        files = [path for path in files if "shipped" not in path.parts]  # cards of released models keep their bytes
        for path in files:
            source = path.read_text(encoding="utf-8")
            texts = python_texts(source) if path.suffix == ".py" else markdown_texts(source)
            found += [Finding(path, *each) for line, text in texts for each in phrases(line, text)]
    return found


def phrases(line: int, text: str) -> Iterator[tuple[int, str, str]]:
    """The line, the replacement and the context of each phrase; identifiers and quotations in backticks are skipped."""
    prose = re.sub(r"`[^`]*`|\b\w+\.\w[\w.]*", "``", text)
    flat = " ".join(prose.split())
    for instead, pattern in PATTERNS.items():
        for match in pattern.finditer(flat):
            context = flat[max(0, match.start() - 40) : match.end() + 30]
            if not any(each in context.lower() for each in ALLOWED):
                yield line, instead, context


def python_texts(source: str) -> Iterator[tuple[int, str]]:
    """Comments, docstrings, and string literals of at least three words, with their lines."""
    tree = ast.parse(source)
    parts = {id(part) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for part in node.values}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in parts:
            text = node.value
        elif isinstance(node, ast.JoinedStr):
            text = "".join(str(part.value) if isinstance(part, ast.Constant) else "X" for part in node.values)
        else:
            continue
        if len(text.split()) >= 3:
            yield node.lineno, text
    yield from _comments(source)


def _comments(source: str) -> Iterator[tuple[int, str]]:
    """Comments, those on consecutive lines together."""
    block: list[str] = []
    first = last = 0
    if "#" not in source:
        return
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type != tokenize.COMMENT:
            continue
        line = token.start[0]
        if block and line > last + 1:
            yield first, " ".join(block)
            block = []
        if not block:
            first = line
        block.append(token.string.lstrip("#: "))
        last = line
    if block:
        yield first, " ".join(block)


def markdown_texts(source: str) -> Iterator[tuple[int, str]]:
    """Paragraphs outside code blocks, with their lines."""
    blank = re.sub(r"^( *)(```|~~~).*?^\1\2", lambda match: re.sub(r"[^\n]", "", match[0]), source, flags=re.S | re.M)
    line = 1
    for paragraph in re.split(r"(\n\s*\n)", blank):
        if paragraph.strip() and _TABLE not in paragraph and not paragraph.startswith(("    ", "\t")):
            yield line + len(paragraph) - len(paragraph.lstrip("\n")), paragraph
        line += paragraph.count("\n")


def main() -> int:
    """Print what is found, or the counts; returns 1 if anything is."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("places", nargs="*", default=CHECKED, help="folders and files (default: %(default)s)")
    parser.add_argument("--counts", action="store_true", help="show counts per pattern, without the places")
    arguments = parser.parse_args()
    found = findings(tuple(arguments.places))
    if arguments.counts:
        counts = Counter(each.instead for each in found)
        sys.stdout.write("".join(f"{counts[name]:6}  {name}\n" for name in PATTERNS))
        return 0
    sys.stdout.write("".join(f"{each}\n" for each in found))
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
