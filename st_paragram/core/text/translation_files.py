"""Translation memories and files of translation tools, streamed unit by unit.

    .tmx                                TMX (LISA OSCAR, version 1.4b and earlier)
    .xlf, .xliff, .sdlxliff, .mqxliff   XLIFF (OASIS, versions 1.2 and 2)

A text is one line, without inline tags and without the codes that they hold. Languages are compared
without regard to case and regions: es is `es-ES`. Needs defusedxml (extra `tmx`), which refuses
entities that a file declares.
"""

from __future__ import annotations

import re
from collections.abc import Generator, Iterator, Mapping
from contextlib import ExitStack
from typing import Any
from xml.etree.ElementTree import Element, ParseError

from st_paragram.core.extras import require
from st_paragram.core.text.streams import TRANSLATION_FILES, open_stream, unpacked_suffix
from st_paragram.errors import TextError, one_line

_LANGUAGE = "{http://www.w3.org/XML/1998/namespace}lang"
_UNITS = ("tu", "trans-unit", "segment")
# Inline elements whose content is text: highlighting and spans. Others hold codes.
_WITH_TEXT = ("hi", "g", "mrk", "pc")
_BREAKS = re.compile(r"\s*[\r\n\t]\s*")
_MOST_LEVELS = 100


def is_translation_file(path: str) -> bool:
    """Whether a file is TMX or XLIFF by its name."""
    return unpacked_suffix(path) in TRANSLATION_FILES


def read_units(path: str, languages: tuple[str, str]) -> Generator[tuple[str, str], None, None]:
    """Yield the texts of units in two languages; a missing text is empty.

    Units without a text in either language are left out, such as those of other languages.
    """
    seen: dict[str, None] = {}
    is_empty = True
    for texts in _units(path):
        seen.update(dict.fromkeys(texts))
        pair = _in_language(texts, languages[0]), _in_language(texts, languages[1])
        if pair != (None, None):
            is_empty = False
            yield pair[0] or "", pair[1] or ""
    if is_empty:
        listed = one_line(", ".join(seen)) if seen else "none"
        raise TextError(
            f"{path}: no unit in {languages[0]} or {languages[1]} (its languages are {listed});"
            " name its languages, as in en-es:FILE"
        )


def _units(path: str) -> Iterator[dict[str, str]]:
    """Yield the texts of each unit by language."""
    xml = require("defusedxml.ElementTree", "tmx", f"{path}: a translation file")
    open_elements: list[Element] = []
    with ExitStack() as stack:
        stream = open_stream(path, stack, is_text=False)
        try:
            for event, element in xml.iterparse(stream, events=("start", "end")):
                if event == "start":
                    open_elements.append(element)
                    if len(open_elements) > _MOST_LEVELS:
                        raise TextError(
                            f"{path}: elements are nested more than {_MOST_LEVELS} levels deep;"
                            " is this a translation file?"
                        )
                    continue
                open_elements.pop()
                if _name(element) in _UNITS:
                    yield _texts(element, open_elements)
                    open_elements[-1].remove(element)
        except ParseError as error:
            raise TextError(
                f"{path}: is not well-formed XML ({one_line(error)}); export it again"
            ) from error
        except ValueError as error:  # of defusedxml
            raise TextError(
                f"{path}: declares entities, which are refused ({one_line(error)});"
                " remove its declarations"
            ) from error


def _texts(unit: Element, parents: list[Element]) -> dict[str, str]:
    """Return the texts of a unit by language; of several texts in a language, the first."""
    texts: dict[str, str] = {}
    if _name(unit) == "tu":
        for variant in unit:
            language = variant.get(_LANGUAGE) or variant.get("lang")
            segment = _child(variant, "seg")
            if language and segment is not None:
                texts.setdefault(language, _text(segment))
        return texts
    for name, attributes in (
        ("source", ("source-language", "srcLang")),
        ("target", ("target-language", "trgLang")),
    ):
        segment = _child(unit, name)
        language = _attribute(parents, attributes)
        if language and segment is not None:
            texts[language] = _text(segment)
    return texts


def _attribute(parents: list[Element], names: tuple[str, ...]) -> str | None:
    """Return the value of an attribute of the nearest parent that has it."""
    for parent in reversed(parents):
        for name in names:
            if name in parent.attrib:
                return parent.attrib[name]
    return None


def _child(parent: Element, name: str) -> Element | None:
    return next((child for child in parent if _name(child) == name), None)


def _text(segment: Element) -> str:
    """Return the text of a segment in one line."""
    return _BREAKS.sub(" ", _inner_text(segment)).strip()


def _inner_text(element: Element) -> str:
    parts = [element.text or ""]
    for child in element:
        if _name(child) in _WITH_TEXT:
            parts.append(_inner_text(child))
        parts.append(child.tail or "")
    return "".join(parts)


def _name(element: Any) -> str:
    """Return the name of an element without its namespace."""
    return str(element.tag).rpartition("}")[2]


def _in_language(texts: Mapping[str, str], language: str) -> str | None:
    """Return the text in a language; a text without region serves all regions, and conversely."""
    wanted = language.lower().replace("_", "-")
    for code, text in texts.items():
        tag = code.lower().replace("_", "-")
        if wanted in (tag, tag.partition("-")[0]) or tag == wanted.partition("-")[0]:
            return text
    return None
