"""What `st-paragram index` does to an index that is there: add sentences, delete some, compact it."""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from st_paragram.core.files import STDIN
from st_paragram.core.plan import Needs, Plan, size
from st_paragram.core.settings import given
from st_paragram.core.value_words import counted
from st_paragram.errors import SettingsError
from st_paragram.tools.options.common import check_input, say
from st_paragram.tools.options.plans import planned_lines, planned_model
from st_paragram.tools.search.filters import check, conditions
from st_paragram.tools.search.index_update import Added
from st_paragram.tools.search.search_index import SearchIndex
from st_paragram.tools.search.settings import FLAT, SearchSettings
from st_paragram.tools.search.tagged_texts import TaggedTexts

_MANY = 0.2  # share of added sentences from which compacting makes searches faster
_BYTES_A_ROW = 100  # of a sentence, its line and its place
_MOST_LINES = 10_000_000  # that a range may name

#: Options of the settings that a change looks at.
_ADD = ("most_repeats", "memory")
_COMPACT = ("index", "recall", "memory", "seed")


def opened(folder: Path, arguments: argparse.Namespace, settings: SearchSettings) -> SearchIndex:
    """The index that is to be changed; its content is compared by the change itself."""
    return SearchIndex(folder, arguments.model, settings.memory, compare=False)


def check_settings(arguments: argparse.Namespace, allowed: Iterable[str], what: str) -> None:
    """Refuse settings that a change does not look at, and those of a new index.

    Raises:
        SettingsError: One was given.
    """
    others = sorted(set(given(arguments, SearchSettings)).difference(allowed))
    flags = [name for name in ("answers", "overwrite") if getattr(arguments, name)]
    if others or flags:
        name = {"vector_type": "precision"}.get((others + flags)[0], (others + flags)[0])
        raise SettingsError(f"--{name.replace('_', '-')} has no meaning for {what}; leave it out")


def check_add(arguments: argparse.Namespace) -> None:
    """Refuse options that do not go with `--add-to`."""
    check_settings(arguments, _ADD, "--add-to")
    _check_unused(arguments, ("lines", "where"), "--add-to")
    if arguments.file is None:
        raise SettingsError("--add-to needs a text; give a file with a sentence a line, or -")
    check_input(arguments.file)


def check_delete(arguments: argparse.Namespace) -> None:
    """Refuse options that do not go with `--delete-from`."""
    check_settings(arguments, ("memory",), "--delete-from")
    _check_unused(arguments, ("tag", "metadata"), "--delete-from")
    if sum(bool(each) for each in (arguments.file, arguments.lines, arguments.where)) != 1:
        raise SettingsError("--delete-from needs one of: a file with sentences, --lines, --where")
    if arguments.file:
        check_input(arguments.file)


def check_compact(arguments: argparse.Namespace) -> None:
    """Refuse options that do not go with `--compact`."""
    check_settings(arguments, _COMPACT, "--compact")
    _check_unused(arguments, ("file", "tag", "metadata", "lines", "where"), "--compact")


def _check_unused(arguments: argparse.Namespace, names: Iterable[str], what: str) -> None:
    for name in names:
        if getattr(arguments, name):
            seen = "a file" if name == "file" else f"--{name}"
            raise SettingsError(f"{seen} has no meaning for {what}; leave it out")


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


def add(index: SearchIndex, texts: TaggedTexts, settings: SearchSettings) -> None:
    """Add sentences, and say what became of them."""
    done = index.add(texts, settings=settings)
    say(
        f"{index.folder}: {counted(done.added, 'sentence')} added of {counted(done.counts.lines, 'line')} ({_why(done)})"
    )
    _say_state(index)


def _why(added: Added) -> str:
    counts = added.counts
    left_out = f"{counts.repeated:,} repeated, {counts.blank + counts.near_empty:,} blank or nearly so"
    return f"{added.known:,} there already, {added.tagged:,} with new fields, {left_out}, {counts.boilerplate:,} too frequent"


def delete(index: SearchIndex, arguments: argparse.Namespace) -> None:
    """Delete what was asked for, and say how much that was."""
    if arguments.lines:
        numbers = set(line_numbers(arguments.lines))
        count = index.delete(lines=numbers)
        missing = len(numbers) - count
        rest = f"; {counted(missing, 'line')} asked for {'is' if missing == 1 else 'are'} not in it" if missing else ""
    else:
        count = index.delete(where=arguments.where) if arguments.where else index.delete(sentences=arguments.file)
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


def plan(arguments: argparse.Namespace, settings: SearchSettings) -> Plan:
    """What a change would do.

    Raises:
        ParagramError: What the change itself refuses before it reads the text.
    """
    folder = arguments.add_to or arguments.delete_from or arguments.compact
    index = opened(folder, arguments, settings)
    metadata, row = (
        index.metadata,
        _BYTES_A_ROW + index.metadata.dimension * (2 - (index.metadata.vector_type == "int8")),
    )
    reads = [f"{folder}: an index of {counted(len(index), 'sentence')}, by {metadata.model}"]
    changes = f"{folder}: the same index, changed all at once at the end"
    if arguments.add_to:
        text = planned_lines(arguments.file)
        model = planned_model(index.model)
        disk = None if text.rows is None else text.rows * row
        needs = Needs(model.seconds(text.rows), model.memory(), disk)
        return Plan("add sentences to an index", [text.line, *reads], [changes], ["lines that are there stay"], needs)
    if arguments.compact:
        needs = Needs(None, None, len(index) * row, "the size of the index")
        what = f"deleted: {metadata.deleted:,}, segments: {len(metadata.all_segments):,}; nothing is embedded"
        return Plan("put an index into one segment", reads, [changes], [what], needs)
    if arguments.file:
        reads = [planned_lines(arguments.file).line, *reads]
    if arguments.where:
        check(conditions(arguments.where), index.fields)
    how = f"sentences of {arguments.file}" if arguments.file else " and ".join(arguments.where or ["lines by number"])
    needs = Needs(None, None, metadata.rows // 8, "the size of the index")
    return Plan("delete sentences from an index", reads, [changes], [how], needs)
