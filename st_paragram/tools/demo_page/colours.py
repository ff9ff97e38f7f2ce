"""Colours of the page, chosen so that text on them can be read: contrast of at least 4.5 (WCAG 2.2, AA)."""

from __future__ import annotations

#: Of text on a highlight, whether the page is light or dark.
HIGHLIGHT_TEXT = "#111827"
_NONE, _FOR, _AGAINST = (243, 244, 246), (96, 165, 250), (251, 146, 60)


def background(strength: float) -> str:
    """The highlight of a contribution: blue above 0, orange below, grey at 0.

    Args:
        strength: from -1 to 1; numbers beyond count as these.
    """
    share = min(1.0, abs(strength))
    full = _FOR if strength > 0 else _AGAINST
    mixed = (round(none + share * (most - none)) for none, most in zip(_NONE, full, strict=True))
    return "#" + "".join(f"{one:02x}" for one in mixed)


def contrast(one: str, other: str) -> float:
    """Contrast of two colours, 1 to 21 (WCAG 2.2, "contrast ratio").

    Args:
        one: "#rrggbb".
        other: the same.
    """
    darker, lighter = sorted((_luminance(one), _luminance(other)))
    return (lighter + 0.05) / (darker + 0.05)


def _luminance(colour: str) -> float:
    """Relative luminance of an sRGB colour, 0 to 1."""
    channels = [int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]
    red, green, blue = (one / 12.92 if one <= 0.04045 else ((one + 0.055) / 1.055) ** 2.4 for one in channels)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue
