"""What `st-paragram index` does to an index that is there: add sentences, delete some, compact it."""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterable
from pathlib import Path

from st_paragram.core.settings import given
from st_paragram.core.words import counted
from st_paragram.errors import SettingsError
from st_paragram.tools.options.common import check_input, say
from st_paragram.tools.search.index_update import Added
from st_paragram.tools.search.search_index import SearchIndex
from st_paragram.tools.search.settings import FLAT, SearchSettings
from st_paragram.tools.search.tagged_texts import TaggedTexts, constant_tags

_MANY = 0.2  # share of added sentences from which compacting makes searches faster
_MOST_LINES = 10_000_000  # that a range may name


def opened(arguments: argparse.Namespace, settings: SearchSettings) -> SearchIndex:
    """The index that is to be changed."""
    folder: Path = arguments.add_to or arguments.delete_from or arguments.compact
    return SearchIndex(folder, arguments.model, settings.memory)


def check_build(arguments: argparse.Namespace) -> None:
    """Refuse what does not go with a new index.

    Raises:
        ParagramError: No text, or options of changes.
    """
    _check_unused(arguments, ("lines", "where"), "a new index")
    _check_text(arguments, "--output")


def check(arguments: argparse.Namespace) -> None:
    """Refuse what does not go with a change.

    Raises:
        ParagramError: No text, or options of new indexes or of other changes.
    """
    if arguments.add_to:
        _check_settings(arguments, ("most_repeats", "memory"), "--add-to")
        _check_unused(arguments, ("lines", "where"), "--add-to")
        _check_text(arguments, "--add-to")
    elif arguments.delete_from:
        _check_settings(arguments, ("memory",), "--delete-from")
        _check_unused(arguments, ("tag", "metadata"), "--delete-from")
        if sum(bool(each) for each in (arguments.file, arguments.lines, arguments.where)) != 1:
            raise SettingsError("--delete-from needs one of these: a file with sentences, --lines, --where")
        if arguments.file:
            _check_text(arguments, "--delete-from")
    else:
        _check_settings(arguments, ("index", "recall", "memory", "seed"), "--compact")
        _check_unused(arguments, ("file", "columns", "tag", "metadata", "lines", "where"), "--compact")


def _check_settings(arguments: argparse.Namespace, allowed: Iterable[str], what: str) -> None:
    others = sorted(set(given(arguments, SearchSettings)).difference(allowed))
    others += [name for name in ("answers", "overwrite") if getattr(arguments, name)]
    if others:
        name = {"vector_type": "precision"}.get(others[0], others[0])
        raise SettingsError(f"--{name.replace('_', '-')} does not apply to {what}; leave it out")


def _check_unused(arguments: argparse.Namespace, names: Iterable[str], what: str) -> None:
    for name in names:
        if getattr(arguments, name):
            seen = "a file" if name == "file" else f"--{name}"
            raise SettingsError(f"{seen} does not apply to {what}; leave it out")


def _check_text(arguments: argparse.Namespace, what: str) -> None:
    if arguments.file is None:
        raise SettingsError(f"{what} needs a text; give a file with one sentence per line, or -")
    if arguments.metadata and not arguments.columns:
        raise SettingsError("--metadata names columns of a table; also name the text column with --columns")
    check_input(arguments.file)
    constant_tags(arguments.tag or [])


def line_numbers(words: Iterable[str]) -> list[int]:
    """Numbers of lines from words like `3` and `10-20`.

    Raises:
        SettingsError: A word is neither.
    """
    found: list[int] = []
    for word in words:
        match = re.fullmatch(r"(\d{1,15})(?:-(\d{1,15}))?", word)
        begin, end = (int(match[1]), int(match[2] or match[1])) if match else (0, 0)
        if not 1 <= begin <= end or end - begin >= _MOST_LINES:
            raise SettingsError(f"--lines {word}: give numbers from 1, as search shows them, or ranges like 10-20")
        found.extend(range(begin, end + 1))
    return found


def add(index: SearchIndex, texts: str | TaggedTexts, settings: SearchSettings) -> None:
    """Add sentences, and say what became of them."""
    done = index.add(texts, settings=settings)
    sentences = f"{counted(done.added, 'sentence')} added of {counted(done.counts.lines, 'line')}"
    say(f"{index.folder}: {sentences} ({_why(done)})")
    _say_state(index)


def _why(added: Added) -> str:
    counts = added.counts
    there = f"{added.known:,} there already, {added.tagged:,} there with other fields, {counts.repeated:,} repeated"
    return f"{there}, {counts.blank + counts.near_empty:,} blank or nearly so, {counts.boilerplate:,} too frequent"


def delete(index: SearchIndex, arguments: argparse.Namespace, texts: str | TaggedTexts | None) -> None:
    """Delete what was asked for, and say how much that was."""
    if arguments.lines:
        numbers = set(line_numbers(arguments.lines))
        count = index.delete(lines=numbers)
        missing = len(numbers) - count
        rest = f"; {counted(missing, 'line')} asked for {'is' if missing == 1 else 'are'} not in it" if missing else ""
    else:
        count = index.delete(sentences=texts, where=arguments.where)
        rest = ""
    say(f"{index.folder}: {counted(count, 'sentence')} deleted{rest}")
    _say_state(index)


def compact(index: SearchIndex, settings: SearchSettings) -> None:
    """Compact an index, and say what it is now."""
    count = index.compact(settings)
    say(f"{index.folder}: {counted(count, 'sentence')} in one segment, searched by {index.metadata.factory}")


def _say_state(index: SearchIndex) -> None:
    metadata = index.metadata
    added = metadata.rows - metadata.sentences
    say(f"{counted(len(index), 'sentence')} now, in {counted(len(metadata.all_segments), 'segment')}")
    slow = metadata.deleted if metadata.factory == FLAT else metadata.deleted + added
    if slow > _MANY * metadata.rows:
        say(f"st-paragram index --compact {index.folder} makes it smaller and searches faster")
