"""A plain way of cutting a pasted text into sentences: after the marks that end them."""

from __future__ import annotations

import re

# A mark may be followed by quotation marks and brackets. The full-width marks end a sentence by themselves; the others
# are followed by a space, so that 3.14 and example.org stay whole.
_CLOSING = "\"'\u00bb\u201d\u2019\u300d\uff09)\\]"
_END = re.compile(
    rf"(?<=[.!?\u061f\u06d4\u0964\u2026])[{_CLOSING}]*\s+"  # Latin and Cyrillic, Arabic, Urdu, Devanagari, the ellipsis
    rf"|(?<=[\u3002\uff01\uff1f])[{_CLOSING}]*\s*"
)


def split_sentences(text: str) -> list[str]:
    """The sentences of a text, in order, without spaces around them; none of them is blank.

    A line always ends a sentence. Abbreviations that end with a full stop ("Dr. Who") are cut, too: whoever minds
    writes a sentence a line.
    """
    found = []
    for line in text.split("\n"):
        start = 0
        for end in _END.finditer(line):
            found.append(line[start : end.end()])
            start = end.end()
        found.append(line[start:])
    return [sentence for sentence in (" ".join(one.split()) for one in found) if sentence]


def line_sentences(text: str) -> list[str]:
    r"""The lines of a text, split at `\n` alone, without spaces around them; blank ones are left out."""
    return [sentence for sentence in (" ".join(one.split()) for one in text.split("\n")) if sentence]
