"""A first row with names of columns in place of a pair."""

from __future__ import annotations

import re

from st_paragram.tools.cleaning.languages import long_code, short_code

# Code, name in English, name in the language itself.
_LANGUAGES = """ar arabic العربية, bg bulgarian български, ca catalan català, cs czech čeština, da danish dansk,
de german deutsch, el greek ελληνικά, en english english, es spanish español, et estonian eesti, fa persian فارسی,
fi finnish suomi, fr french français, he hebrew עברית, hi hindi हिन्दी, hr croatian hrvatski, hu hungarian magyar,
id indonesian indonesia, is icelandic íslenska, it italian italiano, ja japanese 日本語, ko korean 한국어,
lt lithuanian lietuvių, lv latvian latviešu, nl dutch nederlands, no norwegian norsk, pl polish polski,
pt portuguese português, ro romanian română, ru russian русский, sk slovak slovenčina, sl slovenian slovenščina,
sr serbian srpski, sv swedish svenska, th thai ไทย, tr turkish türkçe, uk ukrainian українська, vi vietnamese việt,
zh chinese 中文"""
#: Names of languages by their codes, in lower case.
NAMES = {code: names for code, *names in (entry.split() for entry in _LANGUAGES.split(","))}
_COLUMN = (
    "source|src|target|tgt|sentence|sent|text|column|col|side|lang|language|original|translation|translated|reference|"
    "paraphrase|query|positive|anchor|segment|string|input|output"
)
_COLUMN_NAME = re.compile(rf"(?:{_COLUMN})(?:[ _-]?(?:\d|[a-z]|one|two|text|sentence|lang|language|segment))?")


def is_header(row: tuple[str, str], languages: tuple[str, str]) -> bool:
    """Whether both cells of a row are names of columns: "en" and "es", "English" and "Español", "sentence1", "src".

    Args:
        row: The first row of a text.
        languages: Codes of its sides. A cell that names a language counts only on that language's side.
    """
    first, second = (cell.strip().lower() for cell in row)
    return (first != second or languages[0] == languages[1]) and all(map(_is_name, (first, second), languages))


def _is_name(cell: str, code: str) -> bool:
    short = short_code(code)
    names = {code.lower(), short, long_code(code), *NAMES.get(short, ())}
    bare = re.sub(r"[ _-]?\b(?:text|sentence|lang|language)\b[ _-]?", "", cell.replace("_", " "))
    tagged = re.fullmatch(rf"(?:{_COLUMN})[ _-]?(.+)", cell)
    return bool(names & {cell, bare, tagged and tagged[1]} or _COLUMN_NAME.fullmatch(cell))
