"""Translation memories and files of translation tools, read and written unit by unit.

    .tmx                                TMX (LISA OSCAR, version 1.4b and earlier)
    .xlf, .xliff, .sdlxliff, .mqxliff   XLIFF (OASIS, versions 1.2 and 2)

A text is one line, without inline tags and without the codes that they hold. Languages are compared
without regard to case and regions: es is `es-ES`. Needs defusedxml (extra `tmx`), which refuses
entities that a file declares.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing
from lzma import LZMAError
from pathlib import Path
from typing import IO, Any
from xml.etree.ElementTree import Element, ParseError, tostring
from xml.sax.saxutils import escape, quoteattr

from st_paragram.core.extras import installed_version, require
from st_paragram.core.files import is_pipe
from st_paragram.core.text.streams import TRANSLATION_FILES, open_stream, unpacked_suffix
from st_paragram.errors import SettingsError, TextError, one_line, refused

_LANGUAGE = "{http://www.w3.org/XML/1998/namespace}lang"
_UNITS = ("tu", "trans-unit", "segment")
# Inline elements whose content is text: highlighting and spans. Others hold codes.
_WITH_TEXT = ("hi", "g", "mrk", "pc")
# Elements of XLIFF, and the attributes with their languages in versions 1.2 and 2
_XLIFF = (("source", "source-language", "srcLang"), ("target", "target-language", "trgLang"))
_BREAKS = re.compile(r"\s*[\r\n\t]\s*")
_MOST_LEVELS = 100
_DECLARATION = '<?xml version="1.0" encoding="UTF-8"?>\n'
_Pair = tuple[Element | None, Element | None]
_FORBIDDEN = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def is_translation_file(path: str) -> bool:
    """Whether a file is TMX or XLIFF by its name."""
    return unpacked_suffix(path) in TRANSLATION_FILES


def tmx_languages(output: str | Path, pair: Sequence[str] | None) -> tuple[str, str] | None:
    """Return the two languages of an output in TMX, or None if the output is not TMX by its name.

    Outputs in other formats of translation tools, or in TMX without two languages, are refused.
    """
    name = str(output)
    if not is_translation_file(name):
        return None
    if not name.lower().endswith(".tmx"):
        raise SettingsError(f"{name}: cannot be written; name a file .tmx or .tsv")
    if not pair:
        raise SettingsError(f"{name}: TMX needs the languages of both sides; give --pair CODE CODE")
    return pair[0], pair[1]


def read_units(path: str, languages: tuple[str, str]) -> Generator[tuple[str, str], None, None]:
    """Yield the texts of units in two languages; a missing text is empty.

    Units without a text in either language are left out, such as those of other languages. Of
    several texts of a unit in a language, the first is taken. A language that no unit has is
    refused at the end.
    """
    seen: dict[str, Element] = {}
    for unit, parents in _units(path):
        segments = _segments(unit, parents)
        seen.update(segments)
        pair = _pair(segments, languages)
        if pair != (None, None):
            yield _text(pair[0]), _text(pair[1])
    missing = [language for language in languages if _in_language(seen, language) is None]
    if missing:
        listed = one_line(", ".join(seen) or "none")
        raise TextError(
            f"{path}: no unit in {' or '.join(missing)} (its languages are {listed});"
            " give its languages by --lang, --pair or a prefix such as en-fr:FILE"
        )


class PairWriter:
    """Writes pairs of texts as tab-separated rows, `score TAB first TAB second` if scored."""

    def __init__(self, file: IO[bytes]) -> None:
        """Write to a binary file."""
        self._file = file

    def write(self, *texts: str, score: float | None = None) -> None:
        """Write a pair; tab-separated rows may have further columns."""
        prefix = "" if score is None else f"{score:.6f}\t"
        row = "\t".join(texts)
        self._add(f"{prefix}{row}\n")

    def skip(self) -> None:
        """Leave a pair out."""

    def close(self) -> None:
        """Write the end of the file."""

    def _add(self, text: str) -> None:
        self._file.write(text.encode("utf-8", "replace"))


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

    def write(self, *texts: str, score: float | None = None) -> None:
        """Write a unit."""
        if not all(texts[:2]):
            return
        prop = "" if score is None else f'<prop type="score">{score:.6f}</prop>'
        variants = ""
        for code, text in zip(self._codes, texts, strict=False):
            content = escape(_FORBIDDEN.sub("\ufffd", text))
            variants += f"<tuv xml:lang={code}><seg>{content}</seg></tuv>"
        self._add(f"<tu>{prop}{variants}</tu>\n")

    def close(self) -> None:
        """Write the end of the file."""
        self._add("</body>\n</tmx>\n")


class TmxEditor(PairWriter):
    """Copies a translation memory, and leaves out or changes some of its units.

    Call `write` or `skip` for each pair that `read_units` yields, in the same order. Units in other
    languages are always copied.
    """

    def __init__(self, file: IO[bytes], languages: tuple[str, str], path: str) -> None:
        """Read the memory again, and write its header to a binary file."""
        super().__init__(file)
        self._pairs = self._copy_others(path, languages)
        self._end = ""
        for _, parents in _units(path):
            body = parents[-1]
            body[:] = []
            body.text = "\n"
            body.tail = None
            beginning, _, self._end = tostring(parents[0], "unicode").rpartition("\n")
            self._add(f"{_DECLARATION}{beginning}\n")
            break

    def write(self, *texts: str, score: float | None = None) -> None:
        """Copy a unit; a segment with other words gets the text."""
        unit, pair = next(self._pairs)
        for segment, text in zip(pair, texts, strict=True):
            if segment is not None and _text(segment).split() != text.split():
                segment[:] = []
                segment.text = _FORBIDDEN.sub("\ufffd", text)
        self._copy(unit)

    def skip(self) -> None:
        """Leave a unit out."""
        next(self._pairs)

    def close(self) -> None:
        """Copy the units at the end in other languages, and write the end of the file."""
        for _ in self._pairs:
            pass
        self._add(f"{self._end}\n")

    def _copy_others(
        self, path: str, languages: tuple[str, str]
    ) -> Iterator[tuple[Element, _Pair]]:
        """Yield the units in the two languages with their segments, and copy others."""
        for unit, parents in _units(path):
            pair = _pair(_segments(unit, parents), languages)
            if pair == (None, None):
                self._copy(unit)
            else:
                yield unit, pair

    def _copy(self, unit: Element) -> None:
        unit.tail = "\n"
        self._add(tostring(unit, "unicode"))


def pair_writer(
    file: IO[bytes], languages: tuple[str, str] | None, memory: str | None = None
) -> closing[PairWriter]:
    """Return a context with a writer of TMX in two languages, or of tab-separated rows.

    Pairs of a `memory` in TMX become TMX with all other contents of their units.
    """
    if languages is None:
        return closing(PairWriter(file))
    if memory is None or unpacked_suffix(memory) != ".tmx":
        return closing(TmxWriter(file, languages))
    if is_pipe(memory):
        raise TextError(f"{memory}: is a pipe, but is read twice; save it as a file")
    return closing(TmxEditor(file, languages, memory))


def _units(path: str) -> Iterator[tuple[Element, list[Element]]]:
    """Yield the units, each with the elements around it."""
    xml = require("defusedxml.ElementTree", "tmx", f"{path}: a translation file")
    parents: list[Element] = []
    advice = "save it again in full, as UTF-8 without declared entities"
    damaged = (ParseError, zlib.error, LZMAError)
    with ExitStack() as stack:
        stream = open_stream(path, stack, is_text=False)
        stack.enter_context(refused(TextError, path, "cannot be read as XML", advice, *damaged))
        for event, element in xml.iterparse(stream, events=("start", "end")):
            if event == "start":
                parents.append(element)
                if len(parents) > _MOST_LEVELS:
                    raise TextError(
                        f"{path}: elements are nested more than {_MOST_LEVELS} levels deep;"
                        " is this a translation file?"
                    )
                continue
            parents.pop()
            if parents and _name(element) in _UNITS:
                yield element, parents
                parents[-1].remove(element)


def _segments(unit: Element, parents: list[Element]) -> dict[str, Element]:
    """Return the segments of a unit by language; of several in a language, the first."""
    segments: dict[str, Element] = {}
    for variant in unit.findall("{*}tuv"):
        language = variant.get(_LANGUAGE) or variant.get("lang")
        segment = variant.find("{*}seg")
        if language and segment is not None:
            segments.setdefault(language, segment)
    for name, attribute_of_1, attribute_of_2 in _XLIFF:
        segment = unit.find(f"{{*}}{name}")
        if segment is None:
            continue
        language = None
        for parent in parents:
            language = parent.get(attribute_of_1) or parent.get(attribute_of_2) or language
        language = segment.get(_LANGUAGE) or language
        if language:
            segments[language] = segment
    return segments


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


def _pair(segments: Mapping[str, Element], languages: tuple[str, str]) -> _Pair:
    """Return the segments in two languages."""
    first, second = languages
    return _in_language(segments, first), _in_language(segments, second)


def _in_language(segments: Mapping[str, Element], language: str) -> Element | None:
    """Return the segment in a language; one without region serves all regions, and conversely."""
    wanted = language.lower().replace("_", "-")
    for code, segment in segments.items():
        tag = code.lower().replace("_", "-")
        short, long = sorted((wanted, tag), key=len)
        if f"{long}-".startswith(f"{short}-"):
            return segment
    return None


def _tag(language: str) -> str:
    """Return the code of a language in XML: es-ES for es_es, sr-Latn for sr_latn."""
    code, _, subtag = language.partition("_")
    if not subtag:
        return code
    return f"{code}-{subtag.title() if len(subtag) == 4 else subtag.upper()}"
