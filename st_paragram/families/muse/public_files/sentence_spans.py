"""Sentences of a paragraph by a simple rule, and the words around one of them."""

from __future__ import annotations

import re

from st_paragram.tools.cleaning.unsegmented_scripts import is_unsegmented

_CLOSING = "\"'”’»)\\]」』）》"
_MARKS = ".!?…؟۔।"
# Not within a run of marks: where its first one ends nothing, the others do not, and need no look each.
_END = re.compile(rf"(?<![{_MARKS}])[{_MARKS}]+[{_CLOSING}]*(?=\s)|[。！？]+[{_CLOSING}]*|\n")
_NEXT = re.compile(r"\s*(\S?)")
_LAST_WORD = re.compile(r"[^\s(\[\"'“‘«]*$")
_CHARACTERS = 2  # of a script without spaces that count as a word
_TABLE = """\
mr mrs ms dr prof rev hon st sr jr gen col lt sgt capt gov sen rep pres fr mt ft vs etc inc ltd co corp nos vol
pp p fig ed eds dept univ approx ca c e.g i.e cf al viz op a.k.a ph.d b.a m.a u.s u.k u.n d.c a.d b.c jan feb mar
apr jun jul aug sep sept oct nov dec bzw z.b d.h u.a usw evtl ggf nr str ing hr bspw sog vgl jh sra srta dra ud
uds ee.uu núm pág mme mlle mm av env ex г гг в вв т.е т.д т.п др пр им ул св стр рис yy m.ö m.s doç yrd vb vd
"""
_ABBREVIATIONS = frozenset(_TABLE.split())
_INITIALS = re.compile(r"[^\W\d_]|(?:[^\W\d_]\.)+[^\W\d_]|\d{1,2}")


def sentence_spans(text: str) -> list[tuple[int, int]]:
    r"""Where the sentences of a text begin and end, without the white space around them.

    A sentence ends at `.`, `!`, `?`, `…`, `؟`, `۔` or `।`, with quotation marks and brackets that close behind it, if
    white space follows and then no small letter; at `。`, `！` or `？`; and at a line's end. A full stop behind an
    abbreviation, an initial or a number of one or two digits (`Dr.`, `J.`, `U.S.`, `3. Oktober`) ends none.
    """
    spans, begin = [], 0
    for end in [found.end() for found in _END.finditer(text) if _ends(text, found)] + [len(text)]:
        part = text[begin:end]
        if part.strip():
            spans.append((begin + len(part) - len(part.lstrip()), begin + len(part.rstrip())))
        begin = end
    return spans


def _ends(text: str, found: re.Match[str]) -> bool:
    """Whether a mark ends a sentence."""
    if found[0][0] in "。！？\n":
        return True
    following = _NEXT.match(text, found.end())
    if following is not None and following[1].islower():
        return False
    if found[0] != ".":
        return True
    last = _LAST_WORD.search(text, max(0, found.start() - 40), found.start())
    word = last[0] if last else ""
    return word.lower() not in _ABBREVIATIONS and not _INITIALS.fullmatch(word)


def span_around(text: str, begin: int, end: int) -> tuple[int, int]:
    """The span of the sentence, or of the neighboring sentences, that contains text[begin:end]."""
    touched = [span for span in sentence_spans(text) if span[0] < end and begin < span[1]]
    return (touched[0][0], touched[-1][1]) if touched else (begin, end)


def words_around(text: str, begin: int, end: int, most: int) -> str:
    """Part of a text around text[begin:end], of at most so many words; the whole of it, if it has no more.

    Two characters of a script without spaces count as a word. A longer inner part is cut at its end.
    """
    units = [found.span() for found in re.finditer(rf".{{1,{_CHARACTERS}}}" if is_unsegmented(text) else r"\S+", text)]
    inside = [number for number, unit in enumerate(units) if unit[0] < end and begin < unit[1]]
    if len(units) <= most or not inside:
        return text[units[0][0] : units[min(most, len(units)) - 1][1]] if units else ""
    spare = max(0, most - len(inside))
    first = min(max(0, inside[0] - spare // 2), len(units) - most)
    return text[units[first][0] : units[first + most - 1][1]]
