"""Translation memories and files of translation tools, read and written unit by unit.

    .tmx                                TMX (LISA OSCAR, version 1.4b and earlier)
    .xlf, .xliff, .sdlxliff, .mqxliff   XLIFF (OASIS, versions 1.2 and 2)

A text is one line, without inline tags and without the codes that they hold. Languages are compared
without regard to case and regions: es is `es-ES`. Needs defusedxml (extra `tmx`), which refuses
entities that a file declares.
"""

from __future__ import annotations

import re
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing
from pathlib import Path
from typing import IO, Any, NamedTuple
from xml.etree.ElementTree import Element, ParseError, tostring
from xml.sax.saxutils import escape, quoteattr

from st_paragram.core.extras import installed_version, require
from st_paragram.core.text.streams import TRANSLATION_FILES, open_stream, unpacked_suffix
from st_paragram.errors import SettingsError, TextError, one_line

_LANGUAGE = "{http://www.w3.org/XML/1998/namespace}lang"
_UNITS = ("tu", "trans-unit", "segment")
# Inline elements whose content is text: highlighting and spans. Others hold codes.
_WITH_TEXT = ("hi", "g", "mrk", "pc")
_BREAKS = re.compile(r"\s*[\r\n\t]\s*")
_MOST_LEVELS = 100
_DECLARATION = '<?xml version="1.0" encoding="UTF-8"?>\n'
_END = "</body>\n</tmx>\n"
_FORBIDDEN = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def is_translation_file(path: str) -> bool:
    """Whether a file is TMX or XLIFF by its name."""
    return unpacked_suffix(path) in TRANSLATION_FILES


def tmx_languages(output: str | Path, pair: Sequence[str] | None) -> tuple[str, str] | None:
    """Return the two languages of an output in TMX, or None if the output is not TMX by its name.

    Outputs in other formats of translation tools, or in TMX without two languages, are refused.
    """
    suffix = unpacked_suffix(str(output))
    if suffix not in TRANSLATION_FILES:
        return None
    if suffix != ".tmx" or not str(output).lower().endswith(suffix):
        raise SettingsError(f"{output}: cannot be written; name a file .tmx or .tsv")
    if not pair:
        raise SettingsError(
            f"{output}: TMX needs the languages of both sides; give --pair CODE CODE"
        )
    return pair[0], pair[1]


def read_units(path: str, languages: tuple[str, str]) -> Generator[tuple[str, str], None, None]:
    """Yield the texts of units in two languages; a missing text is empty.

    Units without a text in either language are left out, such as those of other languages.
    """
    seen: dict[str, None] = {}
    is_empty = True
    for unit in _units(path):
        seen.update(dict.fromkeys(unit.segments))
        first, second = unit.pair(languages)
        if first is not None or second is not None:
            is_empty = False
            yield _text(first), _text(second)
    if is_empty:
        listed = one_line(", ".join(seen)) if seen else "none"
        raise TextError(
            f"{path}: no unit in {languages[0]} or {languages[1]} (its languages are {listed});"
            " name its languages, as in en-es:FILE"
        )


class PairWriter:
    """Writes pairs of texts as tab-separated rows, `score TAB first TAB second` if scored."""

    def __init__(self, file: IO[bytes]) -> None:
        """Write to a binary file."""
        self._file = file

    def write(self, first: str, second: str, score: float | None = None) -> None:
        """Write a pair."""
        prefix = "" if score is None else f"{score:.6f}\t"
        self._file.write(f"{prefix}{first}\t{second}\n".encode())

    def close(self) -> None:
        """Write the end of the file."""


class TmxWriter(PairWriter):
    """Writes pairs of texts as TMX 1.4; pairs with an empty side are left out.

    Characters that XML forbids become U+FFFD. A score becomes the property `score`.
    """

    def __init__(self, file: IO[bytes], languages: tuple[str, str]) -> None:
        """Write the header to a binary file; codes such as es_es become es-ES."""
        super().__init__(file)
        self._codes = [quoteattr(_tag(language)) for language in languages]
        self._add(
            f'{_DECLARATION}<tmx version="1.4">\n<header creationtool="st_paragram"'
            f' creationtoolversion="{installed_version()}" segtype="sentence" o-tmf="st_paragram"'
            f' adminlang="en" srclang={self._codes[0]} datatype="plaintext"/>\n<body>\n'
        )

    def write(self, first: str, second: str, score: float | None = None) -> None:
        """Write a unit."""
        if not first or not second:
            return
        prop = "" if score is None else f'<prop type="score">{score:.6f}</prop>'
        variants = []
        for code, text in zip(self._codes, (first, second), strict=True):
            content = escape(_FORBIDDEN.sub("\ufffd", text))
            variants.append(f"<tuv xml:lang={code}><seg>{content}</seg></tuv>")
        self._add(f"<tu>{prop}{''.join(variants)}</tu>\n")

    def close(self) -> None:
        """Write the end of the file."""
        self._add(_END)

    def _add(self, text: str) -> None:
        self._file.write(text.encode())


def pair_writer(file: IO[bytes], languages: tuple[str, str] | None) -> closing[PairWriter]:
    """Return a context with a writer of TMX in two languages, or of tab-separated rows."""
    return closing(TmxWriter(file, languages) if languages else PairWriter(file))


class TmxEditor:
    """Copies a translation memory with some of its units, whole, in which texts may be replaced.

    Units without a text in either of the two languages are always copied.
    """

    def __init__(self, path: str, languages: tuple[str, str], file: IO[bytes]) -> None:
        """Read the memory again, and write to a binary file."""
        self._units = _units(path)
        self._languages = languages
        self._file = file
        self._has_begun = False

    def next(self, texts: tuple[str | None, str | None] | None) -> None:
        """Copy the next unit of `read_units`, with texts to replace; None: leave it out."""
        for unit in self._units:
            pair = unit.pair(self._languages)
            if pair == (None, None):
                self._copy(unit)
                continue
            if texts is None:
                self._begin(unit)
                return
            for segment, text in zip(pair, texts, strict=True):
                if segment is not None and text is not None:
                    segment[:] = []
                    segment.text = _FORBIDDEN.sub("\ufffd", text)
            self._copy(unit)
            return

    def close(self) -> None:
        """Copy the units at the end in other languages, and write the end of the file."""
        for unit in self._units:
            self._copy(unit)
        self._file.write(_END.encode())

    def _copy(self, unit: _Unit) -> None:
        self._begin(unit)
        unit.element.tail = "\n"
        self._file.write(tostring(unit.element, "unicode").encode())

    def _begin(self, unit: _Unit) -> None:
        """Write the beginning of the file and its header, unless they are written."""
        if self._has_begun:
            return
        root = unit.parents[0]
        start = tostring(Element(root.tag, root.attrib), "unicode").removesuffix(" />")
        header = "".join([tostring(child, "unicode") for child in root if _name(child) != "body"])
        self._file.write(f"{_DECLARATION}{start}>\n{header}<body>\n".encode())
        self._has_begun = True


class _Unit(NamedTuple):
    """A unit, the elements around it, and its segments by language."""

    element: Element
    parents: list[Element]
    segments: dict[str, Element]

    def pair(self, languages: tuple[str, str]) -> tuple[Element | None, Element | None]:
        """Return the segments in two languages."""
        first, second = languages
        return _in_language(self.segments, first), _in_language(self.segments, second)


def _units(path: str) -> Iterator[_Unit]:
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
                    yield _Unit(element, open_elements, _segments(element, open_elements))
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


def _segments(unit: Element, parents: list[Element]) -> dict[str, Element]:
    """Return the segments of a unit by language; of several in a language, the first."""
    segments: dict[str, Element] = {}
    if _name(unit) == "tu":
        for variant in unit:
            language = variant.get(_LANGUAGE) or variant.get("lang")
            segment = _child(variant, "seg")
            if language and segment is not None:
                segments.setdefault(language, segment)
        return segments
    for name, attributes in (
        ("source", ("source-language", "srcLang")),
        ("target", ("target-language", "trgLang")),
    ):
        segment = _child(unit, name)
        language = _attribute(parents, attributes)
        if language and segment is not None:
            segments[language] = segment
    return segments


def _attribute(parents: list[Element], names: tuple[str, ...]) -> str | None:
    """Return the value of an attribute of the nearest parent that has it."""
    for parent in reversed(parents):
        for name in names:
            if name in parent.attrib:
                return parent.attrib[name]
    return None


def _child(parent: Element, name: str) -> Element | None:
    return next((child for child in parent if _name(child) == name), None)


def _text(segment: Element | None) -> str:
    """Return the text of a segment in one line, empty for none."""
    if segment is None:
        return ""
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


def _in_language(segments: Mapping[str, Element], language: str) -> Element | None:
    """Return the segment in a language; one without region serves all regions, and conversely."""
    wanted = language.lower().replace("_", "-")
    for code, segment in segments.items():
        tag = code.lower().replace("_", "-")
        if wanted in (tag, tag.partition("-")[0]) or tag == wanted.partition("-")[0]:
            return segment
    return None


def _tag(language: str) -> str:
    """Return the code of a language in XML: es-ES for es_es, sr-Latn for sr_latn."""
    code, _, subtag = language.partition("_")
    if not subtag:
        return code
    return f"{code}-{subtag.title() if len(subtag) == 4 else subtag.upper()}"
