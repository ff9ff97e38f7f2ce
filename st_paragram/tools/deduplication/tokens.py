"""What duplicates must have in common: words, numbers and symbols in order, without case, spaces and punctuation.

Marks of punctuation count if they change a number or a name: between two digits ("1.5", "10:30"), before a number
("-5", ".5"), and as symbols ("C++", "C#", "5 %", "AT&T").
"""

from __future__ import annotations

import re

import regex

from st_paragram.core.text.words import LETTERS, SPACED, UNIT, UNSEGMENTED
from st_paragram.tools.cleaning.text import POINTS, folded

_SYMBOLS = r"\p{S}#%&*@/‰٪§′--`"
_OTHER = rf"[^{LETTERS}]"
# Negations of several characters in scripts without spaces; those of other languages follow below.
_NEGATED = "ไม่|มิได้|ない|なかっ|ません|មិន|ບໍ່"
_TOKEN = regex.compile(
    rf"{_NEGATED}|{UNIT}"
    rf"|{SPACED}+(?:(?<=\p{{N}}){_OTHER}+(?=\p{{N}}){SPACED}+)*"  # a number has what is between its digits
    rf"|(?<![{LETTERS}]{{2}})-(?=\s?[\p{{S}}.,]{{0,2}}\p{{N}})|(?<=[=+<>^*/]\s?)-|(?<![{LETTERS}])[.,](?=\p{{N}})|!(?==)"
    rf"|[{_SYMBOLS}]",
    regex.VERSION1,
)
# A text without these characters has only words and punctuation.
_NOT_PLAIN = regex.compile(rf"[\p{{M}}\p{{N}}\p{{Cf}}{UNSEGMENTED}[{_SYMBOLS}]]", regex.VERSION1)
_NOT_PLAIN_ASCII = re.compile(r"[0-9$+<=>^|~#%&*@/]")
_PLAIN_WORD = re.compile(r"[^\W_]+")
_GAP = regex.compile(rf"{_OTHER}+")
_NOT_OF_GAP = regex.compile(rf"[^\-[{_SYMBOLS}]]+", regex.VERSION1)
_WORD = regex.compile(r"[\p{L}\p{M}]+")
_UNIT = regex.compile(UNIT, regex.VERSION1)
_DASH = regex.compile(r"[\u2010-\u2013\u2212]")
_POWER = regex.compile(r"(?<=\p{N})(?=\p{No})")  # 10² is not 102, and 1½ is not 11/2
_INVISIBLE = regex.compile(r"\p{Default_Ignorable_Code_Point}+")
_POINTS = regex.compile(f"[{POINTS}]+")

#: Words that negate a sentence, in the form of `tokens`. A text and the same text with such a word are different.
NEGATIONS = frozenset(
    folded("""
    not no never none nobody nothing neither nor without cannot t hardly nicht kein keine keinen keinem keiner
    keines nie niemals niemand nichts ohne weder ne n pas jamais rien aucun aucune sans ni non nunca jamás nada
    nadie ningún ninguno ninguna sin tampoco não jamais ninguém nenhum nenhuma sem nem mai nessun nessuno
    nessuna niente senza né niet geen nooit niets zonder inte ikke ikkje aldrig aldri ingen intet inget utan
    uden uten ekki ei emme ette eivät ilman nem sem nincs soha не нет ни никогда никто ничего без нельзя немає
    ніколи ніхто нічого няма nie nigdy nikt nic bez není nikdy nije nisu ni ne nu niciodată fără nimeni nimic
    nuk değil yok hiç asla deyil emas жок жоқ емес түгел δεν μη μην όχι χωρίς ποτέ չէ ոչ არ არა ვერ لا لم لن ليس
    ليست غير ما دون بدون نه نیست نہیں نہ بغیر هیچ לא אין בלי אל אף नहीं न मत ना नाही नको बिना छैन না নেই নয় নি
    ਨਹੀਂ ਨਾ નથી નહીં ન ഇല്ല അല്ല இல்லை அல்ல లేదు కాదు ಇಲ್ಲ ಅಲ್ಲ නැත නෑ tidak bukan tak jangan tanpa belum hindi
    wala huwag không chẳng chưa đừng 안 못 없이 不 没 沒 無 无 未 别 別 非 勿 莫 မ hapana nid níl mitte ära polnud nav
    nebija
    """).split()
) | frozenset(_NEGATED.split("|"))
_HAN_NUMBERS = frozenset("零一二三四五六七八九十百千万萬亿億两兩半")


def tokens(text: str, points: bool = False) -> list[str]:
    """Return the words, numbers and symbols of a text; `points` keeps the points of Hebrew and Arabic.

    A character of a script without spaces is a word. A number is one token with all between its digits. Joined without
    spaces, the tokens are the same however the text was tokenized.
    """
    form = folded(text)
    if not (_NOT_PLAIN_ASCII if text.isascii() else _NOT_PLAIN).search(form):
        return _PLAIN_WORD.findall(form)
    if not text.isascii():
        form = _INVISIBLE.sub("", _DASH.sub("-", folded(_POWER.sub("^", text))))
        form = form if points else _POINTS.sub("", form)
    parts: list[str] = _TOKEN.findall(" ".join(form.split()))
    if " " in "".join(parts):
        return [_GAP.sub(_narrow, part) for part in parts]
    return parts


def has_points(text: str) -> bool:
    """Whether a text has points of Hebrew or Arabic."""
    return not text.isascii() and _POINTS.search(text) is not None


def is_unspaced(part: str) -> bool:
    """Whether a token is a character of a script without spaces."""
    return _UNIT.fullmatch(part) is not None


def essential(parts: list[str]) -> list[str]:
    """Return the tokens that no near-duplicate may add or lack: numbers, symbols and negations."""
    return [
        part
        for part in parts
        if part in NEGATIONS or part in _HAN_NUMBERS or not (part.isalpha() or _WORD.fullmatch(part))
    ]


def _narrow(gap: regex.Match[str]) -> str:
    """Return the symbols of a gap between two digits and one space if the gap has a space."""
    return _NOT_OF_GAP.sub("", gap[0]) + " " if " " in gap[0] else gap[0]
