"""Draw the diagrams of the documentation as SVG: `python docs/hooks/pictures.py` writes them into docs/images.

Diagrams are boxes with text and arrows between them. The house is drawn from the import contracts of pyproject.toml.
"""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Iterable, Sequence
from html import escape
from pathlib import Path

import tomllib

ROOT = Path(__file__).resolve().parents[2]
IMAGES = ROOT / "docs" / "images"

_STYLE = (
    "text{font-family:Roboto,Helvetica,Arial,sans-serif;font-size:15px;fill:#1b2a2f}"
    ".small{font-size:13px;fill:#47585e}.title{font-weight:bold}"
    ".box{stroke:#00796b;stroke-width:1.5;fill:#fff}.tint{fill:#e0f2f1}.warm{fill:#fff3e0;stroke:#e65100}"
    ".arrow{stroke:#47585e;stroke-width:1.5;fill:none;marker-end:url(#head)}"
)
_HEAD = (
    '<marker id="head" viewBox="0 0 10 10" refX="9" refY="5" markerWidth="8" markerHeight="8" orient="auto">'
    '<path d="M0 0L10 5L0 10z" fill="#47585e"/></marker>'
)


def text(x: float, y: float, words: str, kind: str = "", anchor: str = "middle") -> str:
    """A line of text around or from a point."""
    return f'<text x="{x}" y="{y}" class="{kind}" text-anchor="{anchor}">{escape(words)}</text>'


def box(x: float, y: float, width: float, height: float, lines: Sequence[str], kind: str = "") -> str:
    """A rectangle with lines of text in its middle; the first line is the title."""
    top = y + height / 2 - 9 * (len(lines) - 1) + 5
    inside = [text(x + width / 2, top + 18 * row, line, "small" if row else "title") for row, line in enumerate(lines)]
    return f'<rect x="{x}" y="{y}" width="{width}" height="{height}" rx="6" class="box {kind}"/>' + "".join(inside)


def arrow(*points: tuple[float, float]) -> str:
    """A line through points with a head at its end."""
    path = "L".join(f"{x} {y}" for x, y in points)
    return f'<path d="M{path}" class="arrow"/>'


def picture(width: int, height: int, title: str, parts: Iterable[str]) -> str:
    """The SVG of a picture on white, so that it can be read in dark mode, too."""
    sizes = f'viewBox="0 0 {width} {height}"'
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" {sizes} role="img" aria-label="{escape(title)}">'
        f"<title>{escape(title)}</title><style>{_STYLE}</style><defs>{_HEAD}</defs>"
        f'<rect width="{width}" height="{height}" fill="#fff"/>' + "\n".join(parts) + "</svg>\n"
    )


def how_p_sp_works() -> str:
    """From a sentence to its embedding, and what training moves."""
    parts = []
    for row, (sentence, pieces) in enumerate(
        (
            ("The train is late.", ("_The", "_train", "_is", "_late", ".")),
            ("El tren llega tarde.", ("_El", "_tren", "_llega", "_tarde", ".")),
        )
    ):
        y = 20 + 130 * row
        parts.append(box(10, y + 20, 170, 50, [sentence]))
        parts.append(arrow((180, y + 45), (212, y + 45)))
        for place, piece in enumerate(pieces):
            parts.append(box(214, y + 22 * place - 5, 76, 19, [piece], "tint"))
            parts += [_row(310, y + 22 * place - 5, place + 5 * row)]
        parts.append(arrow((436, y + 45), (468, y + 45)))
        parts += [text(452, y + 36, "mean", "small"), _row(474, y + 35, 11 + row)]
    parts += [
        text(95, 290, "a sentence", "small"),
        text(252, 290, "its pieces", "small"),
        text(370, 290, "their rows of the table", "small"),
        text(534, 290, "embedding", "small"),
        arrow((600, 65), (640, 65), (640, 110)),
        arrow((600, 195), (640, 195), (640, 150)),
        box(600, 112, 140, 36, ["cosine"], "tint"),
        box(10, 315, 730, 74, []),
        text(375, 338, "Training", "title"),
        text(375, 358, "A sentence must be nearer to its translation than to the hardest wrong sentence,", "small"),
        text(
            375,
            376,
            "found among all sentences of a mega-batch, by at least the margin. Only the table changes.",
            "small",
        ),
    ]
    return picture(750, 400, "How P-SP works: a sentence embedding is the mean of rows of one table", parts)


def _row(x: float, y: float, number: int) -> str:
    """A vector as six cells; the shades follow from its number."""
    cells = []
    for cell in range(6):
        shade = 255 - 23 * ((number * 7 + cell * 5 + number * cell) % 9)
        cells.append(
            f'<rect x="{x + 20 * cell}" y="{y}" width="20" height="19" fill="rgb({shade},255,{min(255, shade + 40)})" '
            'stroke="#00796b"/>'
        )
    return "".join(cells)


def from_text_to_pairs() -> str:
    """The commands and what each makes."""
    steps = (
        ("prepare", "clean, deduplicate, encode", "pair store"),
        ("train", "P-SP, SP, BGT, mUSE", "model directory"),
    )
    parts = [box(250, 6, 250, 34, ["parallel text"])]
    for row, (command, about, made) in enumerate(steps):
        y = 64 + 120 * row
        parts += [arrow((375, y - 24), (375, y)), box(250, y, 250, 50, [command, about], "tint")]
        parts += [arrow((375, y + 50), (375, y + 74)), box(250, y + 74, 250, 22, [made])]
    parts.append(text(375, 298, "opens with SentenceTransformer, Encoder, or numpy alone", "small"))
    uses = (
        ("evaluate", "your data, published tests"),
        ("embed", "vectors of files of any size"),
        ("mine, align", "translations in two texts"),
        ("index, search", "nearest sentences"),
        ("score, dedupe", "clean bitext"),
        ("serve", "HTTP"),
    )
    for place, (command, made) in enumerate(uses):
        x, y = 20 + 240 * (place % 3), 330 + 66 * (place // 3)
        parts.append(box(x, y, 230, 50, [command, made], "tint"))
    parts.append(arrow((375, 304), (375, 328)))
    return picture(750, 456, "From text to a model to mined pairs: the commands and what they make", parts)


def the_house() -> str:
    """The layers of the package, as the import contracts have them."""
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"][
        "contracts"
    ]
    layers = {each["containers"][0]: each["layers"] for each in contracts if each["type"] == "layers"}
    families = sorted(path.parent.name for path in (ROOT / "st_paragram" / "families").glob("*/__init__.py"))
    about = {
        "cli": ["commands"],
        "families": [" | ".join(families)],
        "learning": [" | ".join(layers["st_paragram.learning"])],
        "tools": _wrapped([name for layer in layers["st_paragram.tools"] for name in layer.split(" | ")]),
        "core": _wrapped([name for layer in layers["st_paragram.core"][:8] for name in layer.split(" | ")]),
        "errors": ["what all layers raise"],
    }
    parts, y = [], 10.0
    for layer in layers["st_paragram"]:
        lines = [layer, *about.get(layer, [])]
        height = 22 + 18 * len(lines)
        parts.append(box(150, y, 590, height, lines, "tint" if layer in ("core", "tools", "errors") else ""))
        y += height + 8
        if layer == "learning":
            parts.append(f'<path d="M10 {y}H740" stroke="#e65100" stroke-width="2" stroke-dasharray="6 4"/>')
            parts.append(text(15, y - 8, "torch above", "small", "start"))
            parts.append(text(15, y + 18, "no torch below", "small", "start"))
            y += 10
    parts.append(arrow((80, 30), (80, 120)))
    parts += [text(80, 140, "imports", "small"), text(80, 156, "point down", "small")]
    return picture(750, int(y + 4), "The layers of the package: imports point down", parts)


def quality_against_speed() -> str:
    """Points of the table of docs/models.md: those measured here filled, published ones open."""
    page = (ROOT / "docs" / "models.md").read_text(encoding="utf-8")
    row = re.compile(r"^\| (\*?)([^|]+?)\*? \| \*?([\d.]+)\*? \| \*?([\d,]+)\*? \| ", re.MULTILINE)
    rows = row.findall(page.partition("## The picture")[2])
    parts = []
    for power in range(7):
        x = _across(10**power)
        parts += [
            f'<path d="M{x} 20V340" stroke="#dde5e7"/>',
            text(x, 360, f"{10**power:,}", "small", "end" if power == 6 else "middle"),
        ]
    for score in range(50, 80, 5):
        y = _up(score)
        parts += [f'<path d="M60 {y}H730" stroke="#dde5e7"/>', text(52, y + 4, str(score), "small", "end")]
    for published, name, score, rate in rows:
        x, y = _across(float(rate.replace(",", ""))), _up(float(score))
        fill = "#fff" if published else "#00796b"
        parts.append(f'<circle cx="{x}" cy="{y}" r="6" fill="{fill}" stroke="#00796b" stroke-width="2"/>')
        label = name.partition(",")[0]
        if label in ("p-sp-base", "InferSent"):  # between other points
            parts.append(text(x - 11, y + 5, label, "small", "end"))
        else:
            parts.append(text(x, y + (22 if label in ("p-sp-mini", "LASER") else -11), label, "small"))
    parts.append(text(395, 386, "sentences/s on one core (logarithmic)", "small"))
    parts.append(text(60, 12, "STS 2012-2016, Pearson x 100", "small", "start"))
    return picture(
        750, 396, "Quality against speed: filled points were measured here, open points are published", parts
    )


def _across(rate: float) -> float:
    return round(60 + 670 * math.log10(rate) / 6, 1)


def _up(score: float) -> float:
    return round(340 - 320 * (score - 50) / 30, 1)


def _wrapped(names: Sequence[str], width: int = 78) -> list[str]:
    lines = [""]
    for name in names:
        if len(lines[-1]) + len(name) > width:
            lines.append("")
        lines[-1] += f"{', ' if lines[-1] else ''}{name}"
    return lines


PICTURES = {
    "p-sp.svg": how_p_sp_works,
    "from-text-to-pairs.svg": from_text_to_pairs,
    "house.svg": the_house,
    "quality-speed.svg": quality_against_speed,
}


def main() -> int:
    """Write all pictures; returns the exit status."""
    for name, draw in PICTURES.items():
        (IMAGES / name).write_text(draw(), encoding="utf-8")
        sys.stdout.write(f"{IMAGES / name}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
