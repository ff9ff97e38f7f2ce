"""Language codes, and the scripts of languages, from `langcodes`."""

from __future__ import annotations

from functools import cache

import langcodes
from langcodes.data_dicts import LIKELY_SUBTAGS

# The scripts, in ISO 15924, of languages that have several or that Unicode's CLDR does not know; other languages have
# their most likely script there.
_SCRIPTS = {
    **dict.fromkeys(("ang", "cbk", "ie", "lfn", "max", "nov", "tzl"), ("Latn",)),
    **dict.fromkeys(("az", "bs", "sh", "sr", "tk", "tt", "uz"), ("Latn", "Cyrl")),
    "ber": ("Latn", "Tfng"),
    "kk": ("Cyrl", "Latn", "Arab"),
    "ku": ("Latn", "Arab"),
    "mn": ("Cyrl", "Mong"),
    **dict.fromkeys(("mhr", "orv"), ("Cyrl",)),
    "pa": ("Guru", "Arab"),
    "sd": ("Arab", "Deva"),
}
_PARTS = {
    "Jpan": ("Hani", "Hira", "Kana"),
    "Kore": ("Hang", "Hani"),
    **dict.fromkeys(("Hans", "Hant", "Hani"), ("Hani",)),
}


@cache
def scripts(code: str) -> tuple[str, ...]:
    """Return the scripts of a language, in ISO 15924: ("Hani", "Hira", "Kana") for ja; empty for an unknown code.

    `code` is from ISO 639-1 or 639-3; a region is ignored (`zh_cn`, `pt-BR`), but a script is used (`sr_Latn`).
    """
    language = _language(code)
    if language is None:
        return ()
    known = language.language or ""
    likely = (language.maximize().script or "",) if known in LIKELY_SUBTAGS else ()  # otherwise English's script
    several = _SCRIPTS.get(code.lower(), ())  # sh, which is sr_Latn for langcodes
    names = several or ((language.script,) if language.script else _SCRIPTS.get(known, likely))
    return tuple(dict.fromkeys(part for name in names for part in _PARTS.get(name, (name,))))


@cache
def short_code(code: str) -> str:
    """Return the two-letter code if there is one, otherwise the first part of the code: `zh_cn` -> zh, `spa` -> es."""
    language = _language(code)
    return (language and language.language) or code.lower().replace("-", "_").split("_")[0]


def long_code(code: str) -> str:
    """Return the ISO 639-3 code: zh_cn -> zho; the code itself if it is unknown."""
    language = _language(code)
    return language.to_alpha3() if language and language.language else code


def _language(code: str) -> langcodes.Language | None:
    try:
        found = langcodes.Language.get(code)
        if found.language not in LIKELY_SUBTAGS:  # cmn, a kind of zh
            found = langcodes.Language.get(langcodes.standardize_tag(code, macro=True))
    except ValueError:  # not a language tag
        return None
    return found if found.is_valid() else None
