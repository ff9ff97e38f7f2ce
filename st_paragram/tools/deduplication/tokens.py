"""What duplicates have in common: words, numbers and symbols, in order.

Case, spaces and most punctuation are ignored. Marks of punctuation count if they change a number or
a name: between two digits ("1.5", "10:30"), before a number ("-5", ".5"), after one (5', 5"), as
symbols ("C++", "C#", "5 %", "AT&T"), and in "A-", ".NET" and ":)".
"""

from __future__ import annotations

import re

import regex

from st_paragram.core.text.words import LETTERS, UNSEGMENTED, UNSPACED
from st_paragram.core.tokenizers.characters import CHARACTERS
from st_paragram.tools.cleaning.text import POINTS, folded

_SYMBOLS = r"\p{S}#%&*@/‰٪§′″--`"
_TAGS = "\U000e0020-\U000e007f"  # they name the flags of regions, such as Scotland
# Marks of Japanese that Unicode gives to no script: the long vowel, signs of repetition, and the
# sign for "closed".
_KANA_MARKS = "ー〆〱-〵"
_UNIT = rf"{UNSPACED}[\p{{M}}{_KANA_MARKS}]*|[{_KANA_MARKS}]"
_SPACED = rf"[{LETTERS}--[{UNSPACED}{_KANA_MARKS}]]"
# A grade (A-), a blood group or an ion; other words with a hyphen at their end are parts of words.
_MINUS = rf"(?<=(?<![{LETTERS}])(?:ab|rh|cl|[\p{{L}}--{UNSPACED}]))-(?![{LETTERS}\-])"
_EMOTICON = r"(?<![^\s.!?…])[:;=]['’]?-?(?:[()\[\]]+|[dpo3|/\\*])(?![^\s.,!?…])"
_SUFFIX = r"(?<![^\s(\[\"'“‘])\.(?=[a-z])"  # .NET, .com
_OTHER = rf"[^{LETTERS}]"
# Negations of several characters in scripts without spaces; those of other languages follow below.
_NEGATED = "ไม่|มิได้|ない|なかっ|ません|មិន|ບໍ່"
_TOKEN = regex.compile(
    rf"{_NEGATED}|{_UNIT}"
    # a number has what is between its digits
    rf"|{_SPACED}+(?:(?<=\p{{N}}){_OTHER}+(?=\p{{N}}){_SPACED}+)*"
    rf"|{_EMOTICON}|{_SUFFIX}|{_MINUS}|[{_TAGS}]+"
    rf"|(?<![{LETTERS}]{{2}})-(?=\s?[\p{{S}}.,]{{0,2}}\p{{N}})|(?<=[=+<>^*/]\s?)-|(?<![{LETTERS}])[.,](?=\p{{N}})|!(?==)"
    rf"|[{_SYMBOLS}]",
    regex.VERSION1,
)
# A text without these characters has only words and punctuation.
_NOT_PLAIN = regex.compile(
    rf"[\p{{M}}\p{{N}}\p{{Cf}}{UNSEGMENTED}{_KANA_MARKS}[{_SYMBOLS}]]", regex.VERSION1
)
_MAY_BE_MARK = re.compile(
    # emoticon, .NET, A-
    r"[:;](?:[^\w\s]|[dpo]\b)|\.(?=[a-z])|[-\u2010-\u2013\u2212](?<=[^\W\d_].)(?![^\W\d_])"
)
_NOT_PLAIN_ASCII = re.compile(
    r"[0-9$+<=>^|~#%&*@/]|[:;](?:[^\w\s]|[dpo]\b)|\.(?=[a-z])|-(?![a-z])(?<=[a-z]-)"
)
_PLAIN_WORD = re.compile(r"[^\W_]+")
_GAP = regex.compile(rf"{_OTHER}+")
_NOT_OF_GAP = regex.compile(rf"[^\-[{_SYMBOLS}]]+", regex.VERSION1)
_WORD = regex.compile(r"[\p{L}\p{M}]+")
_UNSPACED = regex.compile(_UNIT, regex.VERSION1)
_DASH = regex.compile(r"[\u2010-\u2013\u2212]")
# 10² is not 102, 1½ is not 11/2, and x² is not x2; but CO₂ is CO2.
_POWER = regex.compile(r"(?<=\p{N})(?=\p{No})|(?<=[\p{L}\p{N})\]])(?=[⁺⁻]?[¹²³⁰⁴-⁹])")
_INVISIBLE = regex.compile(rf"[\p{{Default_Ignorable_Code_Point}}--[{_TAGS}]]+", regex.VERSION1)
# Texts that models read as the same are the same, and U+02BC is an apostrophe.
_READ_AS = {
    ord(character): read_as
    for character, read_as in CHARACTERS.items()
    if not 0xE0020 <= ord(character) <= 0xE007F
}
_READ_AS[0x2BC] = "'"
_READ_AS_BASIC = [chr(code) for code in sorted(_READ_AS) if code < 0x10000]
_CHANGED = re.compile(f"[{''.join(_READ_AS_BASIC)}\U00010000-\U0010ffff]")
_APOSTROPHE = regex.compile(r"(?<=\p{L})′(?=\p{L})")
# Feet and inches, minutes and seconds: a mark after a digit that closes no quotation.
_MAY_MEASURE = regex.compile(r"(?<=[0-9])['’′\"”]")
_QUOTE = regex.compile(
    r"(?P<double>′′|''|[\"“”„])|(?P<opening>(?<![\p{L}\p{M}\p{N}])['‘‚’](?=[\p{L}\p{M}\p{N}]))"
    r"|(?P<closing>['’′](?:(?!\p{L})|(?=x[0-9])|(?<=°\s?[0-9]{1,2}.)))"
)
_POINTS = regex.compile(f"[{POINTS}]+")


def _form(text: str) -> str:
    """Return a text, folded, with the characters that models read."""
    form = folded(text)
    return form if form.isascii() or not _CHANGED.search(form) else form.translate(_READ_AS)


#: Words that negate or measure, in the form of `tokens`. A text and the same text with such a word
#: are different.
NEGATIONS = frozenset(
    _form("""
    not no never none nobody nothing neither nor without cannot t hardly nicht
    kein keine keinen keinem keiner keines nie niemals niemand nichts ohne weder
    ne n pas jamais rien aucun aucune sans ni non nunca jamás nada nadie ningún
    ninguno ninguna sin tampoco não jamais ninguém nenhum nenhuma sem nem mai
    nessun nessuno nessuna niente senza né niet geen nooit niets zonder inte ikke
    ikkje aldrig aldri ingen intet inget utan uden uten ekki ei emme ette eivät
    ilman nem sem nincs soha не нет ни никогда никто ничего без нельзя немає
    ніколи ніхто нічого няма nie nigdy nikt nic bez není nikdy nije nisu ni ne nu
    niciodată fără nimeni nimic nuk değil yok hiç asla deyil emas жок жоқ емес
    түгел δεν μη μην όχι χωρίς ποτέ չէ ոչ არ არა ვერ لا لم لن ليس ليست غير ما دون
    بدون نه نیست نہیں نہ بغیر هیچ לא אין בלי אל אף नहीं न मत ना नाही नको बिना छैन
    না নেই নয় নি ਨਹੀਂ ਨਾ નથી નહીં ન ഇല്ല അല്ല இல்லை அல்ல లేదు కాదు ಇಲ್ಲ ಅಲ್ಲ නැත
    නෑ tidak bukan tak jangan tanpa belum hindi wala huwag không chẳng chưa đừng 안
    못 없이 不 没 沒 無 无 未 别 別 非 勿 莫 မ hapana nid níl mitte ära polnud nav nebija አይደለም
    չեմ չես չի չենք չեք չեն ez биш होइन si aint dont doesnt didnt cant wont isnt
    arent wasnt werent couldnt shouldnt wouldnt havent hasnt hadnt few rarely
    unless except half hundred hundreds thousand thousands million millions
    billion billions dozen dozens twenty thirty forty fifty sixty seventy eighty
    ninety wenige wenigen selten außer halb halbe halben halber halbes hundert
    tausend million millionen milliarde milliarden dutzend zwanzig dreißig vierzig
    fünfzig sechzig siebzig achtzig neunzig rarement sauf demi demie moitié cent
    cents mille million millions milliard milliards douzaine vingt trente quarante
    cinquante soixante pocos pocas raramente salvo excepto medio media mitad cien
    ciento cientos mil miles millón millones docena veinte treinta cuarenta
    cincuenta sesenta setenta ochenta noventa редко кроме половина половину пол
    сто тысяча тысячу тысячи тысяч миллион миллиона миллионов миллиард миллиарда
    миллиардов дюжина дюжину двадцать тридцать сорок пятьдесят шестьдесят
    семьдесят восемьдесят девяносто nadiren hariç yarım yüz bin milyon milyar
    düzine yirmi otuz kırk elli altmış yetmiş seksen doksan
    """).split()
) | frozenset(_NEGATED.split("|"))
_HAN_NUMBERS = frozenset("零一二三四五六七八九十百千万萬亿億两兩半")


def tokens(text: str, points: bool = False) -> list[str]:
    """Return the words, numbers and symbols of a text.

    A character of a script without spaces is a word. A number is one token with all between its
    digits. Joined without spaces, the tokens are the same however the text was tokenized.
    """
    form = _form(text)
    if text.isascii():
        is_plain = not _NOT_PLAIN_ASCII.search(form)
    else:
        is_plain = not (_NOT_PLAIN.search(form) or _MAY_BE_MARK.search(form))
    if is_plain:
        return _PLAIN_WORD.findall(form)
    if not text.isascii():
        form = _INVISIBLE.sub("", _DASH.sub("-", _form(_POWER.sub("^", text))))
        form = form if points else _POINTS.sub("", form)
        form = _APOSTROPHE.sub("'", form)
    if _MAY_MEASURE.search(form):
        form = _measured(form)
    parts: list[str] = _TOKEN.findall(" ".join(form.split()))
    if " " in "".join(parts):
        return [_GAP.sub(_narrow, part) for part in parts]
    return parts


def has_points(text: str) -> bool:
    """Whether a text has points of Hebrew or Arabic."""
    return not text.isascii() and _POINTS.search(text) is not None


def is_unspaced(part: str) -> bool:
    """Whether a token is a character of a script without spaces."""
    return _UNSPACED.fullmatch(part) is not None


def essential(parts: list[str]) -> list[str]:
    """Return the tokens that no near-duplicate may add or lack."""
    return [part for part in parts if _is_essential(part)]


def _is_essential(part: str) -> bool:
    if part in NEGATIONS or part in _HAN_NUMBERS:
        return True
    return not part.isalpha() and not _WORD.fullmatch(part)


def _measured(form: str) -> str:
    """Return a text whose marks of feet and inches are ′ and ″, unlike quotation marks."""
    opened = {"single": False, "double": False}

    def mark(quote: regex.Match[str]) -> str:
        kind = "double" if quote["double"] else "single"
        if quote["opening"]:
            opened[kind] = True
            return "'"
        if form[max(quote.start() - 1, 0)] in "0123456789" and not opened[kind]:
            return "″" if kind == "double" else "′"
        opened[kind] = kind == "double" and not opened[kind]
        return quote[0]

    return _QUOTE.sub(mark, form)


def _narrow(gap: regex.Match[str]) -> str:
    """Return the symbols of a gap between two digits and one space if the gap has a space."""
    return _NOT_OF_GAP.sub("", gap[0]) + " " if " " in gap[0] else gap[0]
