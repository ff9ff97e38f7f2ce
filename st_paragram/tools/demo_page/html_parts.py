"""Pieces of HTML that the tabs show their results with; whatever comes from users or models is escaped."""

from __future__ import annotations

import html
import itertools
from collections.abc import Iterable, Sequence

from st_paragram.tools.demo_page.colours import background
from st_paragram.tools.demo_page.comparison import Part

_MINUS = "\u2212"
_numbers = itertools.count(1)


def escaped(text: object) -> str:
    """A text as HTML shows it. Braces and dollars are written as numbers: no template must find anything in a text."""
    shown = html.escape(str(text))
    for char in "{}$`@":
        shown = shown.replace(char, f"&#{ord(char)};")
    return shown


def signed(value: float, digits: int = 3) -> str:
    """A number with its sign, + or \N{MINUS SIGN}; without one if it is rounded to zero."""
    shown = f"{abs(value):.{digits}f}"
    if float(shown) == 0:
        return shown
    return f"+{shown}" if value > 0 else f"{_MINUS}{shown}"


def number(value: float, digits: int = 3) -> str:
    """A number that has a sign only if it is negative."""
    return signed(value, digits).removeprefix("+")


def message(text: object) -> str:
    """What went wrong, as a box that screen readers announce."""
    return f'<div class="sp-message" role="alert">{escaped(text)}</div>'


def summary(text: str) -> str:
    """The result in a line, which screen readers announce.

    Args:
        text: HTML.
    """
    return f'<p class="sp-summary" role="status">{text}</p>'


def chips(heading: str, parts: Sequence[Part]) -> str:
    """Parts of a sentence one after another, coloured by their contributions, with the numbers beneath them."""
    most = max((abs(part.contribution) for part in parts), default=0.0) or 1.0
    shown = "".join(
        f'<li class="sp-chip" style="background:{background(part.contribution / most)}">'
        f'<bdi class="sp-piece">{escaped(part.text)}</bdi>'
        f'<span class="sp-value">{signed(part.contribution)}</span></li>'
        for part in parts
    )
    return f'<h3 class="sp-heading">{escaped(heading)}</h3><ul class="sp-chips">{shown}</ul>'


def table(caption: str, head: Sequence[str], rows: Iterable[Sequence[object]], numeric: Sequence[int] = ()) -> str:
    """A table with its caption, which can be scrolled sideways by keyboard where it is too wide.

    Args:
        caption: what it shows.
        head: names of columns.
        rows: cells.
        numeric: columns of numbers, which are set to the right.
    """
    label = f"sp-table-{next(_numbers)}"
    names = "".join(f'<th scope="col"{_side(column, numeric)}>{escaped(name)}</th>' for column, name in enumerate(head))
    body = "".join(
        "<tr>"
        + "".join(f'<td dir="auto"{_side(column, numeric)}>{escaped(cell)}</td>' for column, cell in enumerate(row))
        + "</tr>"
        for row in rows
    )
    return (
        f'<div class="sp-scroll" role="region" tabindex="0" aria-labelledby="{label}"><table class="sp-table">'
        f'<caption id="{label}">{escaped(caption)}</caption><thead><tr>{names}</tr></thead>'
        f"<tbody>{body}</tbody></table></div>"
    )


def folded(title: str, content: str) -> str:
    """HTML that is shown when its title is chosen, by mouse or keyboard."""
    return f'<details class="sp-details"><summary>{escaped(title)}</summary>{content}</details>'


def paragraph(text: str) -> str:
    """A text as a paragraph."""
    return f'<p class="sp-note">{escaped(text)}</p>'


def _side(column: int, numeric: Sequence[int]) -> str:
    return ' class="sp-number"' if column in numeric else ""
