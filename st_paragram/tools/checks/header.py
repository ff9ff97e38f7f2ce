"""A first row with names of columns in place of a pair."""

from __future__ import annotations

import re

from st_paragram.tools.checks.frequent_words import language_of
from st_paragram.tools.cleaning.languages import long_codes, short_code

_COLUMN = (
    "source|src|target|tgt|sentence|sent|text|column|col|side|lang|language|original|translation|translated|reference|"
    "paraphrase|query|positive|anchor|segment|string|input|output"
)
_NAMES = re.compile(rf"(?:{_COLUMN})(?:[ _-]?(?:\d|[a-z]|one|two|text|sentence|lang|language|segment))?")


def is_header(row: tuple[str, str], languages: tuple[str, str]) -> bool:
    """Whether both cells of a row are names of columns: "en" and "es", "English" and "Español", "sentence1", "src".

    Args:
        row: The first one of a text.
        languages: Codes of its sides. A cell that names a language counts only on that language's side.
    """
    one, other = (cell.strip().lower() for cell in row)
    return (one != other or languages[0] == languages[1]) and all(
        _is_name(cell, code) for cell, code in zip((one, other), languages, strict=True)
    )


def _is_name(cell: str, code: str) -> bool:
    short = short_code(code)
    names = {code.lower(), short, *long_codes(code), *long_codes(short)}
    if language := language_of(code):
        names |= {language.name.lower(), language.own_name.lower()}
    bare = re.sub(r"[ _-]?\b(?:text|sentence|lang|language)\b[ _-]?", "", cell.replace("_", " "))
    tagged = re.fullmatch(rf"(?:{_COLUMN})[ _-]?(.+)", cell)
    return cell in names or bare in names or bool(_NAMES.fullmatch(cell)) or (tagged is not None and tagged[1] in names)
