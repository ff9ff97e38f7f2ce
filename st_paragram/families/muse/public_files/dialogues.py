"""Utterances and responses of dialogues: JSON lines with lists of turns, or text with one turn per line."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

from st_paragram.core.text.streams import read_lines
from st_paragram.families.muse.public_files.named_columns import form_of, json_lines
from st_paragram.families.muse.public_files.rows import UNREADABLE, ConvertReport, ConvertSettings

_LISTS = ("dialogue", "dialog", "turns", "utterances", "conversation", "messages")
_TEXTS = ("utterance", "text", "content")
_SPEAKERS = ("speaker", "role")

#: Who speaks, if known, and what.
Turn = tuple[str | None, str]


def dialogue_rows(
    path: Path, language: str, settings: ConvertSettings, report: ConvertReport
) -> Iterator[tuple[str, str]]:
    """Yield each turn with the next one, if another speaks then.

    A line of `.jsonl` is a list of turns, or has one by a name such as `dialogue` or `turns`; a turn is a text, or has
    one as `utterance` or `text`, maybe with a `speaker`. In any other file dialogues have blank lines between.

    Raises:
        TextError: the file is not readable or not UTF-8.
    """
    for turns in _of_json(path) if form_of(path) == "jsonl" else _of_text(path):
        if turns is None:
            report.read += 1
            report.left_out[UNREADABLE] += 1
            continue
        for (speaker, first), (other, second) in pairwise(turns):
            report.read += 1
            if speaker is not None and speaker == other:
                report.left_out["the same speaker goes on"] += 1
            else:
                yield first, second


def _of_text(path: Path) -> Iterator[list[Turn]]:
    turns: list[Turn] = []
    for line in read_lines(str(path)):
        if line.strip():
            turns.append((None, line))
        else:
            yield turns
            turns = []
    yield turns


def _of_json(path: Path) -> Iterator[list[Turn] | None]:
    for value in json_lines(path):
        if isinstance(value, dict):
            value = next((value[name] for name in _LISTS if isinstance(value.get(name), list)), None)
        turns = [_turn(each) for each in value] if isinstance(value, list) else [None]
        found = [turn for turn in turns if turn is not None]
        yield found if len(found) == len(turns) else None


def _turn(value: object) -> Turn | None:
    if isinstance(value, str):
        return None, value
    if not isinstance(value, dict):
        return None
    text = next((value[name] for name in _TEXTS if isinstance(value.get(name), str)), None)
    speaker = next((str(value[name]) for name in _SPEAKERS if name in value), None)
    return None if text is None else (speaker, text)
