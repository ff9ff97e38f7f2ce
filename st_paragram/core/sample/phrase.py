"""One row of a language file: the slots of a phrase, for each agreement class of the language."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from st_paragram.errors import TextError

Slots = dict[str, str]  # slot name -> text, for one agreement class
_COLUMN = re.compile(r"([a-z_]+)(?:\[([a-z ]+)\])?")
_SLOT = re.compile(r"\{([a-z_]+)(?::([a-z]+))?\}")


@dataclass(frozen=True)
class Phrase:
    """One variant of a phrase: its own agreement class (subjects and things) and its slots for each class."""

    agreement: str | None
    slots: Mapping[str, Slots]


def parse_row(
    row: str, columns: Sequence[str], derived: Mapping[str, str], classes: Mapping[str, frozenset[str]], where: str
) -> Phrase:
    """Read one variant of a phrase.

    Args:
        row: cells divided by "|"; missing ones at the end are empty, "-" is a form never used.
        columns: what the cells are, as declared: `class`, `name` or `name[tag tag]`.
        derived: further columns, built from the others: `name[tags]` -> forms over {name} and {name:class}.
        classes: agreement class -> its tags.
        where: file and phrase, for the message.

    Raises:
        TextError: too many cells, an unknown class, or a cell with the wrong number of forms.
    """
    cells = [cell.strip() for cell in row.split("|")]
    if len(cells) > len(columns):
        raise TextError(f"{where}: {len(cells)} columns in {row!r}, at most {len(columns)} are declared")
    cells += [""] * (len(columns) - len(cells))
    agreement = cells[0] if columns[0].strip() == "class" else None
    if agreement is not None and agreement not in classes:
        raise TextError(f"{where}: unknown class {agreement!r}, the file declares {', '.join(classes)}")
    written = {
        name: dict(
            form
            for spec, cell in zip(columns, cells, strict=True)
            if cell != "-"
            for form in parse_cell(spec, cell, tags, where)
        )
        for name, tags in classes.items()
    }
    slots: dict[str, Slots] = {}
    for name, tags in classes.items():
        slots[name] = dict(written[name])
        for spec, cell in derived.items():
            for slot, form in parse_cell(spec, cell, tags, where):
                pieces = _SLOT.split(form)  # text, slot, class, text, slot, class, ..., text
                used = [written[other or name].get(key) for key, other in zip(pieces[1::3], pieces[2::3], strict=True)]
                filled = [piece for piece in used if piece is not None]
                if len(filled) == len(used):  # an unused column ("-") makes no derived form
                    slots[name][slot] = "".join(map("".join, zip(pieces[::3], [*filled, ""], strict=True)))
    return Phrase(agreement, slots)


def parse_cell(spec: str, cell: str, tags: frozenset[str], where: str) -> Iterator[tuple[str, str]]:
    """The slot and its text for a class with `tags`, e.g. spec `now[sg pl]`, cell `reads/read`; or nothing.

    Raises:
        TextError: the column is not declared as name or name[tag tag], or the cell has too few or many forms.
    """
    match = _COLUMN.fullmatch(spec.strip())
    if match is None:
        raise TextError(f"{where}: column {spec!r} is not of the form name or name[tag tag]")
    slot, groups = match[1], (match[2] or "").split()
    forms = [form.strip() for form in cell.split("/")]
    if len(forms) == 1:
        yield slot, forms[0]
    elif len(forms) != len(groups):
        raise TextError(f"{where}: {cell!r} has {len(forms)} forms, {spec.strip()} takes 1 or {len(groups)}")
    else:
        yield from ((slot, form) for tag, form in zip(groups, forms, strict=True) if tag in tags)
