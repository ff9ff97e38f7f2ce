"""The languages that this package treats in a special way, in one table.

Other languages work too: Unicode's CLDR gives their script, and their code is their only label.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from st_paragram.errors import SettingsError, short


@dataclass(frozen=True)
class Language:
    """A language.

    Attributes:
        code: ISO 639-1 code, or the ISO 639-3 code if there is none.
        name: English name.
        native_name: Name in the language, if texts name their columns by it.
        scripts: Scripts in ISO 15924, for a language with several scripts or without one in CLDR.
        labels: Labels that fastText's model lid.176 may give texts in the language, including
            languages that it cannot distinguish in one sentence; empty: only the code.
        test_codes: ISO 639-3 codes in Tatoeba, NTREX-128 and FLORES-200.
        model: Smallest included model that knows the language, or none. The built-in text has the
            languages of p-sp-mini.
        many_characters: Whether a vocabulary needs nearly all characters of its text.
    """

    code: str
    name: str
    native_name: str = ""
    scripts: tuple[str, ...] = ()
    labels: tuple[str, ...] = ()
    test_codes: tuple[str, ...] = ()
    model: str = ""
    many_characters: bool = False


_LATIN_OR_CYRILLIC = ("Latn", "Cyrl")
_DANISH_NORWEGIAN = ("no", "nn", "da")
_SERBO_CROATIAN = ("hr", "sr", "sh", "bs")
_MALAY = ("id", "ms")
_CHINESE = ("zh", "yue", "wuu", "ja")
_HINDI = ("hi", "mr", "ne", "bh", "mai", "sa", "new")
_GALICIAN_PORTUGUESE = ("pt", "gl")

_TABLE = (
    Language("en", "English", "English", test_codes=("eng",), model="p-sp-mini"),
    Language(
        "ar",
        "Arabic",
        "العربية",
        labels=("ar", "arz"),
        test_codes=("ara", "arb"),
        model="p-sp-mini",
    ),
    Language("de", "German", "Deutsch", test_codes=("deu",), model="p-sp-mini"),
    Language("es", "Spanish", "español", test_codes=("spa",), model="p-sp-mini"),
    Language("fr", "French", "français", test_codes=("fra",), model="p-sp-mini"),
    Language("ru", "Russian", "русский", test_codes=("rus",), model="p-sp-mini"),
    Language("tr", "Turkish", "türkçe", test_codes=("tur",), model="p-sp-mini"),
    Language(
        "zh",
        "Chinese",
        "中文",
        labels=_CHINESE,
        test_codes=("cmn", "zho"),
        model="p-sp-mini",
        many_characters=True,
    ),
    Language("ang", "Old English", scripts=("Latn",)),
    Language("awa", "Awadhi", labels=_HINDI),
    Language("az", "Azerbaijani", scripts=_LATIN_OR_CYRILLIC, labels=("az", "azb")),
    Language("ber", "Berber", scripts=("Latn", "Tfng")),
    Language("bg", "Bulgarian", "български", test_codes=("bul",), model="p-sp-large"),
    Language("bn", "Bengali", test_codes=("ben",), model="p-sp-large"),
    Language("bs", "Bosnian", scripts=_LATIN_OR_CYRILLIC, labels=_SERBO_CROATIAN),
    Language("ca", "Catalan", "català", test_codes=("cat",), model="p-sp-large"),
    Language("cbk", "Chavacano", scripts=("Latn",)),
    Language("cs", "Czech", "čeština", test_codes=("ces",), model="p-sp-large"),
    Language(
        "da", "Danish", "dansk", labels=_DANISH_NORWEGIAN, test_codes=("dan",), model="p-sp-large"
    ),
    Language("el", "Greek", "ελληνικά", test_codes=("ell",), model="p-sp-large"),
    Language("et", "Estonian", "eesti", test_codes=("est",), model="p-sp-large"),
    Language(
        "fa",
        "Persian",
        "فارسی",
        labels=("fa", "mzn", "glk"),
        test_codes=("pes", "fas"),
        model="p-sp-large",
    ),
    Language("fi", "Finnish", "suomi", test_codes=("fin",), model="p-sp-large"),
    Language("fil", "Filipino", labels=("tl",)),
    Language("gl", "Galician", labels=_GALICIAN_PORTUGUESE),
    Language("he", "Hebrew", "עברית", test_codes=("heb",), model="p-sp-large"),
    Language("hi", "Hindi", "हिन्दी", labels=_HINDI, test_codes=("hin",), model="p-sp-large"),
    Language(
        "hr",
        "Croatian",
        "hrvatski",
        labels=_SERBO_CROATIAN,
        test_codes=("hrv",),
        model="p-sp-large",
    ),
    Language("hu", "Hungarian", "magyar", test_codes=("hun",), model="p-sp-large"),
    Language(
        "id", "Indonesian", "indonesia", labels=_MALAY, test_codes=("ind",), model="p-sp-large"
    ),
    Language("ie", "Interlingue", scripts=("Latn",)),
    Language("is", "Icelandic", "íslenska"),
    Language("it", "Italian", "italiano", test_codes=("ita",), model="p-sp-large"),
    Language(
        "ja", "Japanese", "日本語", many_characters=True, test_codes=("jpn",), model="p-sp-large"
    ),
    Language("kk", "Kazakh", scripts=("Cyrl", "Latn", "Arab")),
    Language("kn", "Kannada", test_codes=("kan",), model="p-sp-large"),
    Language("ko", "Korean", "한국어", test_codes=("kor",), model="p-sp-large"),
    Language("ku", "Kurdish", scripts=("Latn", "Arab"), labels=("ku", "ckb")),
    Language("lfn", "Lingua Franca Nova", scripts=("Latn",)),
    Language("lt", "Lithuanian", "lietuvių", test_codes=("lit",), model="p-sp-large"),
    Language("lv", "Latvian", "latviešu", test_codes=("lvs", "lav"), model="p-sp-large"),
    Language("max", "North Moluccan Malay", scripts=("Latn",)),
    Language("mhr", "Meadow Mari", scripts=("Cyrl",)),
    Language("ml", "Malayalam", test_codes=("mal",), model="p-sp-large"),
    Language("mn", "Mongolian", scripts=("Cyrl", "Mong")),
    Language("mr", "Marathi", labels=_HINDI, test_codes=("mar",), model="p-sp-large"),
    Language("ms", "Malay", labels=_MALAY, test_codes=("zsm", "msa"), model="p-sp-large"),
    Language(
        "nb", "Norwegian Bokmål", labels=_DANISH_NORWEGIAN, test_codes=("nob",), model="p-sp-large"
    ),
    Language("ne", "Nepali", labels=_HINDI, test_codes=("npi", "nep"), model="p-sp-large"),
    Language("nl", "Dutch", "Nederlands", test_codes=("nld",), model="p-sp-large"),
    Language("nn", "Norwegian Nynorsk", labels=_DANISH_NORWEGIAN),
    Language("no", "Norwegian", "norsk", labels=_DANISH_NORWEGIAN),
    Language("nov", "Novial", scripts=("Latn",)),
    Language("orv", "Old East Slavic", scripts=("Cyrl",)),
    Language("pa", "Punjabi", scripts=("Guru", "Arab"), labels=("pa", "pnb")),
    Language("pl", "Polish", "polski", test_codes=("pol",), model="p-sp-large"),
    Language(
        "pt",
        "Portuguese",
        "português",
        labels=_GALICIAN_PORTUGUESE,
        test_codes=("por",),
        model="p-sp-large",
    ),
    Language("ro", "Romanian", "română", test_codes=("ron",), model="p-sp-large"),
    Language("sd", "Sindhi", scripts=("Arab", "Deva")),
    Language("sh", "Serbo-Croatian", scripts=_LATIN_OR_CYRILLIC, labels=_SERBO_CROATIAN),
    Language("sk", "Slovak", "slovenčina", test_codes=("slk",), model="p-sp-large"),
    Language("sl", "Slovenian", "slovenščina", test_codes=("slv",), model="p-sp-large"),
    Language(
        "sr",
        "Serbian",
        "srpski",
        scripts=_LATIN_OR_CYRILLIC,
        labels=_SERBO_CROATIAN,
        test_codes=("srp",),
        model="p-sp-large",
    ),
    Language("sv", "Swedish", "svenska", test_codes=("swe",), model="p-sp-large"),
    Language("sw", "Swahili", test_codes=("swh", "swa"), model="p-sp-large"),
    Language("ta", "Tamil", test_codes=("tam",), model="p-sp-large"),
    Language("te", "Telugu", test_codes=("tel",), model="p-sp-large"),
    Language("th", "Thai", "ไทย", test_codes=("tha",), model="p-sp-large"),
    Language("tk", "Turkmen", scripts=_LATIN_OR_CYRILLIC),
    Language("tl", "Tagalog", test_codes=("tgl", "fil"), model="p-sp-large"),
    Language("tt", "Tatar", scripts=_LATIN_OR_CYRILLIC),
    Language("tzl", "Talossan", scripts=("Latn",)),
    Language("uk", "Ukrainian", "українська", test_codes=("ukr",), model="p-sp-large"),
    Language("ur", "Urdu", test_codes=("urd",), model="p-sp-large"),
    Language("uz", "Uzbek", scripts=_LATIN_OR_CYRILLIC),
    Language("vi", "Vietnamese", "việt", test_codes=("vie",), model="p-sp-large"),
    Language("wuu", "Wu Chinese", labels=_CHINESE),
    Language("yue", "Cantonese", labels=_CHINESE),
)

#: Code -> language.
LANGUAGES = {language.code: language for language in _TABLE}
#: Codes of the languages of p-sp-mini, p-sp-base and the built-in text, English first.
MODEL_LANGUAGES = tuple(language.code for language in _TABLE if language.model == "p-sp-mini")
#: Codes of the languages of p-sp-large, English first.
LARGE_LANGUAGES = tuple(language.code for language in _TABLE if language.model)


def both_sides(language: str | tuple[str, str]) -> tuple[str, str]:
    """Return the languages of both sides of pairs; a single name is paired with English."""
    if isinstance(language, str):
        return ("en", language)
    try:
        first, second = language
    except (TypeError, ValueError) as error:
        raise SettingsError(
            f"languages are {short(language)}; give the code of one, such as es, or of both sides"
        ) from error
    return (first, second)


def joined_sides(pairs: Sequence[tuple[str, str]]) -> tuple[str, str]:
    """Return the languages of both sides of several language pairs, joined by hyphens."""
    firsts = dict.fromkeys(first for first, _ in pairs)
    seconds = dict.fromkeys(second for _, second in pairs)
    return "-".join(firsts), "-".join(seconds)


def codes_of_sides(languages: tuple[str, str]) -> list[str]:
    """Return the codes of both sides, each once: en, fr and es of ("en", "fr-es")."""
    codes = "-".join(languages).split("-")
    return list(dict.fromkeys(codes))


def check_codes(languages: tuple[str, str]) -> None:
    """Refuse codes of both sides that are not codes of languages, apart from regions."""
    for code in codes_of_sides(languages):
        if _is_language(code):
            continue
        suggestion = _code_meant(code)
        advice = "use an ISO 639 code such as es or zh_cn"
        if suggestion:
            advice = f"did you mean {suggestion}?"
        raise SettingsError(f"unknown language code {short(code)}; {advice}")


def _is_language(code: str) -> bool:
    """Whether a code, apart from its region, is in the table or in the registry of language tags.

    Capital letters are refused: files and models are named by lower-case codes.
    """
    language = code.partition("_")[0]
    if language in LANGUAGES:
        return True
    if not re.fullmatch("[a-z]{2,3}", language):
        return False
    import langcodes  # slow, and most codes are in the table

    return langcodes.Language.get(language).is_valid()


def _code_meant(word: str) -> str:
    """Return the code of the language that a word may mean; empty if there is none.

    The word may be the code in capitals, the name of the language, or the code of a country.
    """
    lower = word.lower()
    if _is_language(lower):
        return lower
    for language in LANGUAGES.values():
        if word and lower in (language.name.lower(), language.native_name.lower()):
            return language.code
    from langcodes.data_dicts import LIKELY_SUBTAGS

    tag: str = LIKELY_SUBTAGS.get(f"und-{word.upper()}", "")
    return tag.partition("-")[0]
