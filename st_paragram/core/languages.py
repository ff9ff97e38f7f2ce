"""The languages that this package treats in a special way, in one table.

Other languages work too: Unicode's CLDR gives their script, and their code is their only label.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


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
        in_models: Whether the published models and the built-in text have the language.
        many_characters: Whether a vocabulary needs nearly all characters of its text.
    """

    code: str
    name: str
    native_name: str = ""
    scripts: tuple[str, ...] = ()
    labels: tuple[str, ...] = ()
    test_codes: tuple[str, ...] = ()
    in_models: bool = False
    many_characters: bool = False


_LATIN_OR_CYRILLIC = ("Latn", "Cyrl")
_DANISH_NORWEGIAN = ("no", "nn", "da")
_SERBO_CROATIAN = ("hr", "sr", "sh", "bs")
_MALAY = ("id", "ms")
_CHINESE = ("zh", "yue", "wuu", "ja")
_HINDI = ("hi", "mr", "ne", "bh", "mai", "sa", "new")
_GALICIAN_PORTUGUESE = ("pt", "gl")

_TABLE = (
    Language("en", "English", "English", test_codes=("eng",), in_models=True),
    Language(
        "ar",
        "Arabic",
        "العربية",
        labels=("ar", "arz"),
        test_codes=("ara", "arb"),
        in_models=True,
    ),
    Language("de", "German", "Deutsch", test_codes=("deu",), in_models=True),
    Language("es", "Spanish", "español", test_codes=("spa",), in_models=True),
    Language("fr", "French", "français", test_codes=("fra",), in_models=True),
    Language("ru", "Russian", "русский", test_codes=("rus",), in_models=True),
    Language("tr", "Turkish", "türkçe", test_codes=("tur",), in_models=True),
    Language(
        "zh",
        "Chinese",
        "中文",
        labels=_CHINESE,
        test_codes=("cmn", "zho"),
        in_models=True,
        many_characters=True,
    ),
    Language("ang", "Old English", scripts=("Latn",)),
    Language("awa", "Awadhi", labels=_HINDI),
    Language("az", "Azerbaijani", scripts=_LATIN_OR_CYRILLIC, labels=("az", "azb")),
    Language("ber", "Berber", scripts=("Latn", "Tfng")),
    Language("bg", "Bulgarian", "български"),
    Language("bs", "Bosnian", scripts=_LATIN_OR_CYRILLIC, labels=_SERBO_CROATIAN),
    Language("ca", "Catalan", "català"),
    Language("cbk", "Chavacano", scripts=("Latn",)),
    Language("cs", "Czech", "čeština"),
    Language("da", "Danish", "dansk", labels=_DANISH_NORWEGIAN),
    Language("el", "Greek", "ελληνικά"),
    Language("et", "Estonian", "eesti"),
    Language("fa", "Persian", "فارسی", labels=("fa", "mzn", "glk")),
    Language("fi", "Finnish", "suomi"),
    Language("fil", "Filipino", labels=("tl",)),
    Language("gl", "Galician", labels=_GALICIAN_PORTUGUESE),
    Language("he", "Hebrew", "עברית"),
    Language("hi", "Hindi", "हिन्दी", labels=_HINDI),
    Language("hr", "Croatian", "hrvatski", labels=_SERBO_CROATIAN),
    Language("hu", "Hungarian", "magyar"),
    Language("id", "Indonesian", "indonesia", labels=_MALAY),
    Language("ie", "Interlingue", scripts=("Latn",)),
    Language("is", "Icelandic", "íslenska"),
    Language("it", "Italian", "italiano"),
    Language("ja", "Japanese", "日本語", many_characters=True),
    Language("kk", "Kazakh", scripts=("Cyrl", "Latn", "Arab")),
    Language("ko", "Korean", "한국어"),
    Language("ku", "Kurdish", scripts=("Latn", "Arab"), labels=("ku", "ckb")),
    Language("lfn", "Lingua Franca Nova", scripts=("Latn",)),
    Language("lt", "Lithuanian", "lietuvių"),
    Language("lv", "Latvian", "latviešu"),
    Language("max", "North Moluccan Malay", scripts=("Latn",)),
    Language("mhr", "Meadow Mari", scripts=("Cyrl",)),
    Language("mn", "Mongolian", scripts=("Cyrl", "Mong")),
    Language("mr", "Marathi", labels=_HINDI),
    Language("ms", "Malay", labels=_MALAY),
    Language("nb", "Norwegian Bokmål", labels=_DANISH_NORWEGIAN),
    Language("ne", "Nepali", labels=_HINDI),
    Language("nl", "Dutch", "Nederlands"),
    Language("nn", "Norwegian Nynorsk", labels=_DANISH_NORWEGIAN),
    Language("no", "Norwegian", "norsk", labels=_DANISH_NORWEGIAN),
    Language("nov", "Novial", scripts=("Latn",)),
    Language("orv", "Old East Slavic", scripts=("Cyrl",)),
    Language("pa", "Punjabi", scripts=("Guru", "Arab"), labels=("pa", "pnb")),
    Language("pl", "Polish", "polski"),
    Language("pt", "Portuguese", "português", labels=_GALICIAN_PORTUGUESE),
    Language("ro", "Romanian", "română"),
    Language("sd", "Sindhi", scripts=("Arab", "Deva")),
    Language("sh", "Serbo-Croatian", scripts=_LATIN_OR_CYRILLIC, labels=_SERBO_CROATIAN),
    Language("sk", "Slovak", "slovenčina"),
    Language("sl", "Slovenian", "slovenščina"),
    Language("sr", "Serbian", "srpski", scripts=_LATIN_OR_CYRILLIC, labels=_SERBO_CROATIAN),
    Language("sv", "Swedish", "svenska"),
    Language("th", "Thai", "ไทย"),
    Language("tk", "Turkmen", scripts=_LATIN_OR_CYRILLIC),
    Language("tt", "Tatar", scripts=_LATIN_OR_CYRILLIC),
    Language("tzl", "Talossan", scripts=("Latn",)),
    Language("uk", "Ukrainian", "українська"),
    Language("uz", "Uzbek", scripts=_LATIN_OR_CYRILLIC),
    Language("vi", "Vietnamese", "việt"),
    Language("wuu", "Wu Chinese", labels=_CHINESE),
    Language("yue", "Cantonese", labels=_CHINESE),
)

#: Code -> language.
LANGUAGES = {language.code: language for language in _TABLE}
#: Codes of the languages of the published models and of the built-in text, English first.
MODEL_LANGUAGES = tuple(language.code for language in _TABLE if language.in_models)


def both_sides(language: str | tuple[str, str]) -> tuple[str, str]:
    """Return the languages of both sides of pairs; a single name is paired with English."""
    if isinstance(language, str):
        return ("en", language)
    first, second = language
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
