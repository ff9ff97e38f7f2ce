"""How results and the page look: pieces of HTML, in which all that comes from users or models is escaped; a theme.

Text on colors has a contrast of at least 4.5 (WCAG 2.2, AA). Fonts are those of the system: nothing is fetched.
"""

from __future__ import annotations

import html
import itertools
from collections.abc import Iterable, Sequence
from types import ModuleType
from typing import Any

from st_paragram.tools.demo_page.comparison import Part

#: Of text on a highlight, whether the page is light or dark.
HIGHLIGHT_TEXT = "#111827"
_NONE, _FOR, _AGAINST = (243, 244, 246), (96, 165, 250), (251, 146, 60)
_MINUS = "\u2212"
_numbers = itertools.count(1)
_FONTS = ("system-ui", "-apple-system", "Segoe UI", "Roboto", "Noto Sans", "Arial", "sans-serif")
_MONO = ("ui-monospace", "Consolas", "Liberation Mono", "monospace")
_BLUE, _DARKER_BLUE = "#1d4ed8", "#1e40af"

STYLE = """
.gradio-container { width: 100%; min-width: 0; max-width: min(1100px, 100vw) !important; margin: 0 auto !important; }
.gradio-container > .main { width: 100%; min-width: 0; box-sizing: border-box; }
.gradio-container button[role="tab"].selected { color: #1d4ed8; font-weight: 600; }
.dark .gradio-container button[role="tab"].selected, .gradio-container.dark button[role="tab"].selected,
.gradio-container .dark button[role="tab"].selected { color: #93c5fd; }
#model input { text-overflow: ellipsis; padding-inline-end: 1.75rem; }
.sp-table thead, .sp-table tbody, .sp-table tr { border: 0 !important; }
#model-note .sp-note { margin: 0; }
.sp-result { overflow-wrap: anywhere; }
.sp-summary { font-size: 1.15rem; margin: 0.5rem 0; }
.sp-note { margin: 0.75rem 0; max-width: 75ch; line-height: 1.5; }
.sp-heading { font-size: 1rem; font-weight: 600; margin: 0.9rem 0 0.35rem; }
.sp-chips { display: flex; flex-wrap: wrap; gap: 0.3rem; list-style: none; padding: 0; margin: 0; }
.sp-chip { color: HIGHLIGHT_TEXT; border: 1px solid #6b7280; border-radius: 0.35rem; padding: 0.2rem 0.45rem;
  display: flex; flex-direction: column; align-items: center; margin: 0; max-width: 100%; }
.sp-chip .sp-piece { color: HIGHLIGHT_TEXT; font-weight: 600; }
.sp-chip .sp-value { color: HIGHLIGHT_TEXT; font-size: 0.8rem; font-variant-numeric: tabular-nums; }
.sp-scroll { overflow-x: auto; margin: 0.5rem 0 1rem; }
.sp-table { border-collapse: collapse; width: 100%; border: 0 !important; }
.sp-table caption { text-align: start; font-weight: 600; padding: 0.35rem 0; caption-side: top; }
.sp-table th, .sp-table td { border: 0 !important; border-bottom: 1px solid #9ca3af !important; padding: 0.4rem 0.6rem;
  vertical-align: top; text-align: start; overflow-wrap: break-word; }
.sp-table .sp-number { text-align: end; white-space: nowrap; font-variant-numeric: tabular-nums; }
.sp-details summary { cursor: pointer; padding: 0.35rem 0; font-weight: 600; }
.sp-message { color: HIGHLIGHT_TEXT; background: #fee2e2; border: 1px solid #991b1b; border-radius: 0.35rem;
  padding: 0.6rem 0.8rem; margin: 0.5rem 0; }
.gradio-container :focus-visible { outline: 3px solid #b45309 !important; outline-offset: 2px !important; }
.dark .gradio-container :focus-visible, .gradio-container.dark :focus-visible { outline-color: #fbbf24 !important; }
@media (max-width: 640px) {
  .sp-table th, .sp-table td { padding: 0.35rem 0.3rem; }
  .gradio-container > .main { padding: 0.75rem !important; }
}
""".replace("HIGHLIGHT_TEXT", HIGHLIGHT_TEXT)


def theme(gradio: ModuleType) -> Any:  # noqa: ANN401 - Gradio's
    """A plain theme; the fonts are those that the reader's machine has."""
    themes = gradio.themes
    fonts, mono = ([themes.Font(name) for name in names] for names in (_FONTS, _MONO))
    made = themes.Base(font=fonts, font_mono=mono, primary_hue="blue", neutral_hue="gray")
    return made.set(
        button_primary_background_fill=_BLUE,
        button_primary_background_fill_hover=_DARKER_BLUE,
        button_primary_background_fill_dark=_BLUE,
        button_primary_background_fill_hover_dark=_DARKER_BLUE,
        button_primary_text_color="#ffffff",
        button_primary_text_color_dark="#ffffff",
        block_label_text_color="#1f2937",
        block_title_text_color="#1f2937",
        block_info_text_color="#4b5563",
        block_info_text_color_dark="#d1d5db",
        body_text_color_subdued="#4b5563",
        body_text_color_subdued_dark="#d1d5db",
    )


def background(strength: float) -> str:
    """The highlight of a contribution: blue above 0, orange below, grey at 0.

    Args:
        strength: from -1 to 1; numbers beyond count as these.
    """
    share = min(1.0, abs(strength))
    full = _FOR if strength > 0 else _AGAINST
    mixed = (round(none + share * (most - none)) for none, most in zip(_NONE, full, strict=True))
    return "#" + "".join(f"{one:02x}" for one in mixed)


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
    """Parts of a sentence one after another, colored by their contributions, with the numbers beneath them."""
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
