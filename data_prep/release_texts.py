"""Make the parallel texts of the published models from git repositories and packages of software,
documentation and lessons.

    python data_prep/release_texts.py --repositories DIR --texts texts [--only SOURCE ...]

DIR has a clone of each repository, `owner+name`, bare or not, and a folder with the content of each
package. The text of a source is written to texts/LANG/SOURCE.tsv, with rows `english TAB other`.
recipes/release.yaml describes the sources:
- `from` names the repositories and their commits, such as "github.com/owner/name@1a2b3c4", and
  packages, such as "Debian chromium-l10n 150.1-1";
- `files` is a pattern of the translated files, such as "src/lang/{lang}.json", or a list of
  patterns. `*` is any part of a name, `**` any folders, and `#` a part that differs in English;
- `english` is the pattern of the English files, with the same stars, or a list with a pattern for
  each of `files`. By default, it is `files` with the code `en`, or without code in Android's
  "values-{lang}";
- `repositories` is the pattern of names if each language has a repository, such as "docs-{lang}".
  The English files are in the first repository of `from`, or, if that is the repository of a
  language, in each;
- `codes` names the languages in the paths if they are not the usual ones, such as {es: [es-ES,
  es-MX]};
- `languages` limits the languages that are read;
- `tokenized: true` removes the spaces of tokenizers;
- `coverage: 0.9` leaves out documents in which fewer of the lines have a translation, such as old
  versions.
Word lists (`words: true`) are the work of release_words.py, and dialogues and other texts with
formats of their own that of release_dialogues.py.

The formats: catalogs that translate-toolkit reads (PO, MO, XLIFF, TMX, Android, Apple and Fluent),
Java, JSON and YAML, Chromium's packs, Mozilla's .lang, Ren'Py, USFM, USFX and OSIS, CoNLL-U with
English translations, files with a text or a pair per line, and the lines of Markdown, HTML and
Mallard, which are aligned. A pair is kept if it has 3 to 60 English words, a translation in the
right script, no placeholders or addresses, and no sentence of STS or Tatoeba.
"""

from __future__ import annotations

import argparse
import html
import io
import json
import math
import re
import struct
import sys
import tarfile
import zipfile
from collections.abc import Callable, Iterable, Iterator
from functools import cache, lru_cache
from itertools import pairwise, product
from pathlib import Path
from typing import Any

import yaml
from clones import BILINGUAL, LANGUAGES, Origin, open_origins, origins_of, path_pairs

from st_paragram.cli.main import run_reporting_errors
from st_paragram.core.extras import require
from st_paragram.core.files import write_text
from st_paragram.core.outputs import check_new
from st_paragram.core.settings import read_yaml
from st_paragram.errors import MissingExtraError, SettingsError, one_line
from st_paragram.tools.cleaning.known_sentences import DEFAULT_FAMILIES, KnownSentences
from st_paragram.tools.cleaning.shape import Script

#: How many letters a character stands for.
LETTERS = {"ja": 2, "ko": 2, "zh": 3}
#: The class in translate-toolkit of files with a suffix; the bilingual formats have the English
#: text, too.
FORMATS = {
    ".po": "po.pofile", ".xliff": "xliff.xlifffile", ".xml": "aresource.AndroidResourceFile",
    ".strings": "properties.stringsutf8file", ".ftl": "fluent.FluentFile", ".mo": "mo.mofile",
    ".tmx": "tmx.tmxfile",
}  # fmt: skip
#: Suffixes of documents.
DOCUMENTS = (".html", ".md", ".mdx", ".page")
#: Elements of HTML and Mallard with text.
PARAGRAPHS = ("p", "title", "desc", "td", "cmd", "screen", "h1", "h2", "h3", "h4", "div")
#: Alignments of more lines than this (their numbers multiplied) are too slow.
MOST_CELLS = 120_000
Pair = tuple[str, str]


def read_units(path: str, data: bytes, code: str) -> dict[str, Pair]:
    """Return the units of a catalog by their ids, as pairs `source, target`; monolingual ones have
    only a target.
    """
    suffix = Path(path).suffix
    if suffix == ".zip":
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            largest = max(archive.infolist(), key=lambda member: member.file_size)
            return read_units(largest.filename, archive.read(largest), code)
    if suffix == ".gz":
        return post_edited(data, code)
    if suffix == ".pak":
        return {number: ("", text) for number, text in packed_texts(data)}
    if suffix == ".txt":
        columns = [line.split("\t") for line in data.decode().split("\n") if "\t" in line]
        return {str(row): (first, second) for row, (first, second, *_) in enumerate(columns)}
    if suffix == ".lang":
        lines = re.findall(r"^;(.*)\r?\n(.*?)(?: \{ok\})?\r?$", data.decode(), re.M)
        return {str(row): pair for row, pair in enumerate(lines)}
    if suffix == ".conllu":
        blocks = data.decode().split("\n\n")
        sentences = [dict(re.findall("^# (.*?) = (.*)$", block, re.M)) for block in blocks]
        return {
            str(row): (each["text_en"], each["text"])
            for row, each in enumerate(sentences)
            if "text_en" in each
        }
    if suffix == ".usfm":
        return {key: ("", text) for key, text in verses(data.decode("utf-8-sig"))}
    if path.endswith((".usfx.xml", ".osis.xml")):
        return {key: ("", text) for key, text in bible_verses(data.decode())}
    if suffix == ".rpy":
        name = r"(?:\w+ )?"  # of the person who speaks
        said = rf'^ *# {name}"(.*)"\n *{name}"(.*)"$|^ *old "(.*)"\n *new "(.*)"$'
        texts = re.findall(said, data.decode("utf-8-sig").replace("\r\n", "\n"), re.M)
        return {
            str(row): (source or old, target or new)
            for row, (source, target, old, new) in enumerate(texts)
        }
    if suffix == ".properties":
        lines = re.findall(r"^([\w.-]+)\s*=\s*(.*)$", data.decode(), re.M)
        return {key: ("", text) for key, text in lines}
    if suffix not in (".json", ".yml", ".yaml", *FORMATS):
        return {str(row): ("", text) for row, text in enumerate(data.decode().split("\n"))}
    if suffix in (".json", ".yml", ".yaml"):
        values = json.loads(data.decode("utf-8-sig")) if suffix == ".json" else yaml.safe_load(data)
        return {
            key: ("", text)
            for key, text in flattened(values.get(code, values) if isinstance(values, dict) else {})
        }
    module, _, name = FORMATS[suffix].partition(".")
    store = getattr(require(f"translate.storage.{module}", "catalogs", f"reading {path}"), name)()
    store.parse(data)
    units = dict[str, Pair]()
    for place, unit in enumerate(store.units):
        source, target = (_last_plural(text) or "" for text in (unit.source, unit.target))
        if unit.isheader() or not unit.istranslatable() or (suffix == ".po" and unit.isfuzzy()):
            continue
        if suffix in (*BILINGUAL, ".tmx"):
            units[str(place)] = (source, target)
        elif suffix == ".ftl":  # a message has attributes in lines such as ".title = Text"
            value, *attributes = re.split(r"^\.([\w-]+) = ", target, flags=re.M)
            units[unit.getid()] = ("", value)
            for key, text in zip(attributes[::2], attributes[1::2], strict=True):
                units[f"{unit.getid()}.{key}"] = ("", text)
        else:
            units[unit.getid()] = ("", target or source)
    return units


def post_edited(data: bytes, code: str) -> dict[str, Pair]:
    """Return the sources and post-edited translations in an archive of MLQE-PE, English first."""
    with tarfile.open(fileobj=io.BytesIO(data)) as archive:
        sides = {}
        for member in archive:
            if file := archive.extractfile(member):
                sides[Path(member.name).suffix] = file.read().decode().split("\n")
                into_english = f"{code}-en" in member.name
    pairs = zip(sides[".src"], sides[".pe"], strict=True)
    return {
        str(row): (pair[1], pair[0]) if into_english else pair for row, pair in enumerate(pairs)
    }


def packed_texts(data: bytes) -> Iterator[Pair]:
    """Return the numbers and texts of a pack of Chromium: version, encoding, two counts, and then
    the number and start of each text.
    """
    count = struct.unpack("<H", data[8:10])[0]
    entries = list(struct.iter_unpack("<HI", data[12 : 12 + 6 * (count + 1)]))
    for (number, start), (_, end) in pairwise(entries):
        yield str(number), data[start:end].decode("utf-8", "replace")


def verses(text: str) -> Iterator[Pair]:
    """Return the verses of a book in USFM by chapter and number, without notes, headings and marks.

    A verse such as "3-4" is left out, since it is two in other translations.
    """
    notes = r"\\(f|x|fe)\s.*?\\\1\*|^\\(?:s|ms|mr|r|d|sp|rem|qa)\d?[ \t][^\n]*"
    text = re.sub(notes, "", text, flags=re.S | re.M)
    text = re.sub(r"(\\\+?w [^|\\]*)\|[^\\]*", r"\1", text)
    for chapter in re.split(r"^\\c\s+", text, flags=re.M)[1:]:
        number = chapter.split(maxsplit=1)[0]
        for verse in re.split(r"\\v\s+", chapter)[1:]:
            name, _, content = verse.partition(" ")
            if name.isdecimal():
                content = re.sub(r"\\\+?[a-z]+\d?\*?", " ", content)
                yield f"{number}:{name}", " ".join(content.split())


#: Books of the Bible whose names in USFX are not the first letters of those in OSIS.
BOOKS = {
    "judg": "jdg", "ps": "psa", "song": "sng", "ezek": "ezk", "joel": "jol", "nah": "nam",
    "mark": "mrk", "john": "jhn", "1john": "1jn", "2john": "2jn", "3john": "3jn", "phil": "php",
    "phlm": "phm",
}  # fmt: skip


def bible_verses(text: str) -> Iterator[Pair]:
    """Return the verses of a Bible in USFX or OSIS by book, chapter and number, without notes."""
    text = re.sub(r"<(f|x|note|title)\b(?:[^>]*[^/])?>.*?</\1>", "", text, flags=re.S)
    found = re.findall(r'<verse sID="([\w.]+)"[^>]*>(.*?)<verse eID=', text, flags=re.S)
    verses = [(name.lower().split("."), verse) for name, verse in found]
    for book in re.split(r'<book id="', text)[1:]:
        for chapter in re.split(r'<c id="', book)[1:]:
            place = [book.split('"')[0].lower(), chapter.split('"')[0]]
            found = re.findall(r'<v id="(\d+)"[^>]*>(.*?)<ve ?/>', chapter, flags=re.S)
            verses += [([*place, number], verse) for number, verse in found]
    for (book, *numbers), verse in verses:
        name = BOOKS.get(book, book[:3])
        yield ":".join([name, *numbers]), " ".join(re.sub("<[^>]*>", "", verse).split())


def flattened(values: Any, key: str = "") -> Iterator[Pair]:
    """Return the texts in nested values, each with its path."""
    if isinstance(values, str):
        yield key, values
    elif isinstance(values, dict | list):
        for name, value in values.items() if isinstance(values, dict) else enumerate(values):
            yield from flattened(value, f"{key}.{name}")


def _last_plural(text: Any) -> str | None:
    """Return a text, or the last of its plural forms."""
    strings = getattr(text, "strings", None)
    return str(strings[-1]) if strings else text


def catalog_pairs(english: dict[str, Pair], other: dict[str, Pair]) -> Iterator[Pair]:
    """Match the units of two catalogs by their ids; the paragraphs of a unit are matched if there
    are equally many.
    """
    for key, (source, target) in other.items():
        source = source or english.get(key, ("", ""))[1]
        paragraphs = [re.split(r"\n\s*\n", text.strip()) for text in (source, target)]
        yield from (
            zip(*paragraphs, strict=True)
            if len(paragraphs[0]) == len(paragraphs[1])
            else [(source, target)]
        )


@lru_cache(maxsize=2000)
def markdown_lines(text: str) -> list[tuple[str, str]]:
    """Return the lines of Markdown with their kinds, such as "##" or "-"; wrapped lines are joined.

    Code blocks are lines without text. Front matter, comments and the rules of tables are left out.
    """
    text = re.sub(
        r"\A(---|\+\+\+)\n.*?^\1\n|<!--.*?-->", "", text.replace("\r\n", "\n"), flags=re.S | re.M
    )
    text = re.sub(r"^\s*(```|~~~).*?^\s*\1\s*$", "\n```\n", text, flags=re.S | re.M)
    lines, previous, wrapped = list[tuple[str, str]](), "", False
    for line in map(str.strip, text.split("\n")):
        kind, content = re.findall(
            r"^(#+(?=\s)|\d+[.)](?=\s)|[-*+](?=\s)|\||>|!\[|```|<)?\s*(.*)", line
        )[0]
        kind = "1" if kind[:1].isdigit() else "-" if kind in ("*", "+") else kind
        if not re.fullmatch(r"[-=*_\s|:>]*", line):
            if not kind and lines and wrapped and previous in ("", "-", "1", ">"):
                lines[-1] = (lines[-1][0], f"{lines[-1][1]} {content}")
            elif kind == "|":
                lines += [
                    (f"|{column}", cell)
                    for column, cell in enumerate(content.strip("|").split("|"))
                ]
            else:
                lines.append((kind, content if kind != "![" else ""))
        previous, wrapped = kind, bool(line)
    return lines


@lru_cache(maxsize=2000)
def markup_lines(text: str) -> list[tuple[str, str]]:
    """Return the paragraphs, headings and cells of HTML or Mallard with their kinds."""
    root = require("lxml.html", "catalogs", "reading HTML").fromstring(text.encode())
    return [
        (element.tag, re.sub(r"\s+", " ", element.text_content()))
        for element in root.iter(*PARAGRAPHS)
        if element.tag != "div" or element.get("class") == "para"
    ]


def document_pairs(path: str, english: str, other: str, coverage: float = 0) -> list[Pair]:
    """Align the lines of two documents, which may lack lines, by their kinds and lengths; no pairs
    if fewer than a part of the lines are aligned.

    Storybooks have a mark of Markdown between their pages; those with as many pages are aligned by
    page, and others left out. The last page has the license of the story, which must be open.
    """
    pages = [re.split(r"^##[ \t]*$", text, flags=re.M) for text in (english, other)]
    if len(pages[0]) > 3:
        if len(pages[0]) != len(pages[1]) or "BY-NC" in pages[0][-1] + pages[1][-1]:
            return []
        return [pair for page in zip(*pages, strict=True) for pair in sentence_pairs(*page)]
    read = markdown_lines if Path(path).suffix in (".md", ".mdx") else markup_lines
    first, second = read(english), read(other)
    least = coverage * (len(first) + len(second)) / 2
    if min(len(first), len(second)) < least:
        return []
    ratio = (1 + sum(len(text) for _, text in second)) / (1 + sum(len(text) for _, text in first))
    pairs, lines = [], align(first, second, ratio)
    for row, column in lines if len(lines) >= least else []:
        pairs += sentence_pairs(first[row][1], second[column][1])
    return pairs


def align(
    first: list[tuple[str, str]], second: list[tuple[str, str]], ratio: float
) -> list[tuple[int, int]]:
    """Align lines in order by dynamic programming: the same kind, a length in the usual ratio, the
    same numbers. Long texts with different kinds of lines are left out.
    """
    if [kind for kind, _ in first] == [kind for kind, _ in second]:
        return [(row, row) for row in range(len(first))]
    if len(first) * len(second) > MOST_CELLS:
        return []
    marks = list(map(constants, first)), list(map(constants, second))

    def gain(row: int, column: int) -> float:
        (kind, text), (other_kind, other) = first[row], second[column]
        if kind != other_kind:
            return -math.inf
        return length_gain(text, other, ratio) + agreement(marks[0][row], marks[1][column])

    return best_path(len(first), len(second), gain)


def best_path(rows: int, columns: int, gain: Callable[[int, int], float]) -> list[tuple[int, int]]:
    """Return the pairs in order with the highest sum of gains, by dynamic programming."""
    best = [[0.0] * (columns + 1) for _ in range(rows + 1)]
    for row in range(rows - 1, -1, -1):
        for column in range(columns - 1, -1, -1):
            best[row][column] = max(
                best[row + 1][column],
                best[row][column + 1],
                gain(row, column) + best[row + 1][column + 1],
            )
    pairs, row, column = [], 0, 0
    while row < rows and column < columns:
        if best[row][column] == best[row + 1][column]:
            row += 1
        elif best[row][column] == best[row][column + 1]:
            column += 1
        else:
            pairs.append((row, column))
            row, column = row + 1, column + 1
    return pairs


def length_gain(english: str, other: str, ratio: float) -> float:
    """Return 1.5 for a translation of the usual length, less for others, and below 0 beyond half or
    double of it.
    """
    return 1.5 - 2 * abs(math.log((5 + len(other)) / (5 + ratio * len(english))))


def constants(line: tuple[str, str]) -> list[str]:
    """Return what a translation does not change: numbers, code and addresses, but not those of the
    same file.
    """
    return sorted(
        re.findall(r"\d+|`[^`]+`|https?://[^\s)]+", re.sub(r"\]\([^h)][^)]*\)", "]", line[1]))
    )


def agreement(english: list[str], other: list[str]) -> float:
    """Return 1 for equal marks, -0.5 for others, and 0 if there are none."""
    return (1 if english == other else -0.5) if english or other else 0


def sentence_pairs(english: str, other: str) -> list[Pair]:
    """Split two texts into sentences if they have equally many."""
    end = r"(?<=[.!?؟…])\s+(?=[^\s\W\da-zа-яçğıöşü_]|[\"“«¿¡(\[*`_])|(?<=[。！？])(?=.)|(?<=।)\s+"
    sentences = [re.split(end, text) for text in (english, other)]
    return (
        list(zip(*sentences, strict=True))
        if len(sentences[0]) == len(sentences[1])
        else [(english, other)]
    )


#: What is removed from texts, in this order, and what remains of it.
MARKUP = [(re.compile(pattern, re.S), rest) for pattern, rest in (
    # roles and links of reStructuredText
    (r":\w[\w:+-]*:`[~!]*([^`<]*?)(?:\s*<[^`]*>)?`|`([^`<]+?)\s*<[^`]*>`_+", r"\1\2"),
    # links of MDN, {{domxref("Node")}} and {{domxref("Node.nodeName", "the name")}}
    (r"\{\{\s*\w+\([\"'][^\"']*[\"'],\s*[\"']([^\"']+)[\"'][^{}]*\)\s*\}\}", r"\1"),
    (r"\{\{\s*\w+\([\"']([^\"']*)[\"'][^{}]*\)\s*\}\}", r"\1"),
    (r"<br ?/?>|<!--.*?-->", " "),
    (r"</?[a-zA-Z][^<>]*>", ""),
    (r"\[![A-Z]+\s*(?:\[[^\]]*\](?:\([^)]*\))?)?[^\[\]]*\]", ""),  # [!NOTE], [!INCLUDE[a](b)]
    (r"!\[[^\]]*\]\([^)]*\)", ""),  # images
    # BBCode, marked parts
    (r"\[/?(?:b|i|u|code|kbd|url|center|color)(?:=[^\]]*)?\]|\{(?:open|close)\w+\}", ""),
    (r"\[\[(?:[^\[\]|]*\|)?([^\[\]|]*)\]\]", r"\1"),  # links of wikis
    (r"\[([^\[\]]*)\](?:\([^()]*(?:\([^()]*\)[^()]*)*\)|\[[^\]]*\])", r"\1"),  # links of Markdown
    (r"^\s*(?:[-*+•:]|#+|>|\d+[.)]|\[[ xX]\])\s+", ""),  # marks of headings and lists
    (r"\*+|`+|~~|(?<!\w)_+(?=\w)|(?<=\w)_+(?!\w)", ""),  # emphasis
    # shortcuts of menus, invisible characters
    (r"\([&~]\w\)|(?<!\w)&(?=\w)|~(?=[^\W\d])|[\u200b-\u200f\u2028-\u202e\ufeff\u00ad]", ""),
    (r"\s+", " "),
)]  # fmt: skip


@lru_cache(maxsize=200_000)
def clean(text: str) -> str:
    """Remove tags and the marks of Markdown, wikis and BBCode, and collapse white space."""
    text = html.unescape(text).replace("\\n", "\n").replace("\\'", "'")
    for pattern, rest in MARKUP:
        text = pattern.sub(rest, text)
    return text.strip()


#: What programs fill in, addresses, and remains of markup.
PLACEHOLDER = re.compile(
    r"[{}<>\x00-\x1f\\|]|%(?:\d+\$)?[\d.]*(?:l?l?[diux]|[scf@])(?!\w)|%[(%1-9n]|%\w+%|\$[\w(]|\w+://|www\.|@:|\]\("
)


def keep(english: str, other: str, language: str, words: range = range(3, 61)) -> bool:
    """Whether two clean texts are a usable pair: right scripts, likely lengths, and no
    placeholders.
    """
    if (
        len(english.split()) not in words
        or PLACEHOLDER.search(english)
        or PLACEHOLDER.search(other)
    ):
        return False
    letters = [re.sub(r"[\W\d_]", "", text).casefold() for text in (english, other)]
    latin = len(re.findall("[a-z]", letters[0])) > 0.7 * len(letters[0])
    script = script_filter(language).reason((english, other)) is None
    ratio = len(letters[1]) / max(1, len(letters[0])) * LETTERS.get(language, 1)
    likely = 1 / 3 < ratio < 3 or abs(len(letters[1]) - len(letters[0])) < 12
    return letters[0] != letters[1] and latin and script and likely


@cache
def script_filter(language: str) -> Script:
    """Return the filter of texts in the scripts of a language."""
    return Script(languages=("en", language))


def source_pairs(source: dict[str, Any], language: str, origins: list[Origin]) -> Iterator[Pair]:
    """Read the pairs of a source in a language, without repetitions.

    If a text cannot be used, such as one with a placeholder, its sentences without placeholders may
    be.
    """
    seen = set[Pair]()
    for english, other in origins_of(source, language, origins):
        for pair in origin_pairs(source, language, english, other):
            if source.get("tokenized"):
                pair = joined_tokens(pair[0]), joined_tokens(pair[1])
            whole = clean(pair[0]), clean(pair[1])
            for cleaned in [whole] if keep(*whole, language) else sentence_pairs(*whole):
                if cleaned not in seen and keep(*cleaned, language):
                    seen.add(cleaned)
                    yield cleaned


def joined_tokens(text: str) -> str:
    """Remove the spaces that a tokenizer put before punctuation and between characters of Chinese
    and Japanese.
    """
    text = re.sub(r" (?=[.,!?;:')%]|n't)|(?<=\() ", "", text)
    return re.sub(r"(?<=[\u3000-\u9fff\uff00-\uffef]) (?=[\u3000-\u9fff\uff00-\uffef])", "", text)


def origin_pairs(
    source: dict[str, Any], language: str, english: Origin, other: Origin
) -> Iterator[Pair]:
    """Read the pairs of the files of a language, and of English files that may be elsewhere."""
    paths = list(path_pairs(source, language, other.paths(), english.paths()))
    english_files = english.read([path for path, _, _ in paths if path])
    other_files = other.read([path for _, path, _ in paths])
    catalogs = []
    for english_path, path, code in paths:
        if path not in other_files or (english_path and english_path not in english_files):
            continue
        if Path(path).suffix in DOCUMENTS:
            texts = (english_files[english_path], other_files[path])
            first, second = (text.decode("utf-8", "replace") for text in texts)
            yield from document_pairs(path, first, second, coverage=source.get("coverage", 0))
        else:
            units = {}
            if english_path:
                units = try_units(english_path, english_files[english_path], "en", english)
            catalogs.append((units, try_units(path, other_files[path], code, other)))
    names = [
        {
            key: text
            for pair in catalogs
            for key, (_, text) in pair[side].items()
            if key.startswith("-")
        }
        for side in (0, 1)
    ]
    for pair in (pair for units in catalogs for pair in catalog_pairs(*units)):
        yield fill_in(pair[0], names[0]), fill_in(pair[1], names[0] | names[1])


@lru_cache(maxsize=2000)  # the English catalogs are the same for all languages
def try_units(path: str, data: bytes, code: str, origin: Origin) -> dict[str, Pair]:
    """Return the units of a catalog; one that cannot be read is skipped with a warning."""
    try:
        return read_units(path, data, code)
    except MissingExtraError:
        raise
    except Exception as error:  # each format has its own errors
        print(
            f"{origin.folder}: {path} cannot be read and is skipped ({one_line(error)})",
            file=sys.stderr,
        )
        return {}


def fill_in(text: str, names: dict[str, str]) -> str:
    """Replace the names of products in a Fluent text, such as { -brand-name }, which other messages
    define.
    """
    return re.sub(r"\{ *(-[\w-]+)[^{}]*\}", lambda name: names.get(name[1], name[0]), text)


def check_rows(folder: Path, names: Iterable[str]) -> None:
    """Refuse files that `write_rows` would replace."""
    for name, language in product(names, LANGUAGES):
        check_new(folder / language / f"{name}.tsv")


def write_rows(folder: Path, name: str, pairs: dict[str, Iterator[Pair]]) -> None:
    """Write the pairs of a source in each language without test sentences, unless none is left;
    print their numbers.
    """
    counts, known = [], KnownSentences(DEFAULT_FAMILIES)
    for language, found in pairs.items():
        read = list(found)
        tested = known([english for english, _ in read]) | known([other for _, other in read])
        rows = ["\t".join(pair) + "\n" for pair, drop in zip(read, tested, strict=True) if not drop]
        if rows:
            write_text(folder / language / f"{name}.tsv", "".join(rows))
            counts.append(f"{language} {len(rows):,}")
    print(f"{name}: {', '.join(counts) or 'no pairs'}", flush=True)


def options(description: str | None, default: str) -> argparse.ArgumentParser:
    """Return the options of the scripts that make texts; `default` says which sources they read
    without --only.
    """
    parser = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--repositories",
        type=Path,
        required=True,
        metavar="DIR",
        help="clones, owner+name, and packages",
    )
    parser.add_argument(
        "--texts", type=Path, required=True, metavar="DIR", help="output folder, LANG/SOURCE.tsv"
    )
    parser.add_argument(
        "--only",
        nargs="+",
        default=[],
        metavar="SOURCE",
        help=f"sources (default: {default})",
    )
    config = Path(__file__).parents[1] / "recipes" / "release.yaml"
    parser.add_argument(
        "--config", type=Path, default=config, help="description of sources (default: %(default)s)"
    )
    return parser


def main() -> int:
    """Write the texts of the chosen sources, and print how many pairs each has."""
    arguments = options(__doc__, "all with `files`").parse_args()
    sources = {
        name: source
        for name, source in read_yaml(arguments.config)["sources"].items()
        if "files" in source and not source.get("words")
    }
    if unknown := [name for name in arguments.only if name not in sources]:
        raise SettingsError(
            f"no source {unknown[0]!r} with `files` in {arguments.config}; it has"
            f" {', '.join(sources)}"
        )
    chosen = {name: sources[name] for name in arguments.only or sources}
    check_rows(arguments.texts, chosen)
    origins = open_origins(
        arguments.repositories, {name: source["from"] for name, source in chosen.items()}
    )
    for name, source in chosen.items():
        write_rows(
            arguments.texts,
            name,
            {
                language: source_pairs(source, language, origins[name])
                for language in source.get("languages", LANGUAGES)
            },
        )
    return 0


if __name__ == "__main__":
    sys.exit(run_reporting_errors("release_texts", main))
