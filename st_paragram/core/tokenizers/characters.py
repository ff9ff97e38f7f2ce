"""Characters that models read as other characters, or leave out.

Texts that look the same should have the same embedding. Web pages break words with soft hyphens,
editors add marks of direction and variants of emoji, and keyboards differ in letters and digits.
`CHARACTERS` makes such texts equal. The vocabularies trained by `train_vocabulary` have these rules
inside, so every reader of the model applies them.

The zero-width joiners U+200C and U+200D are left out, too. They can change a word in Persian and in
scripts of India, but writers often omit them.
"""

from __future__ import annotations

from pathlib import Path

from st_paragram.errors import TextError

# Characters that are not shown: those that Unicode calls Default_Ignorable_Code_Point, and the
# control characters U+0080 to U+009F except the line break U+0085. The rules of sentencepiece leave
# out those below U+0020.
_INVISIBLE = (
    *range(0x80, 0x85), *range(0x86, 0xA0),
    0xAD,  # soft hyphen
    0x34F,  # combining grapheme joiner
    # width, joining, direction
    0x61C, *range(0x200B, 0x2010), *range(0x202A, 0x202F), *range(0x2060, 0x2070), 0xFEFF,
    0x115F, 0x1160, 0x3164, 0xFFA0,  # fillers of Hangul
    0x17B4, 0x17B5,  # vowels of Khmer
    *range(0x180B, 0x1810), *range(0xFE00, 0xFE10), *range(0xE0100, 0xE01F0),  # variation selectors
    *range(0x1BCA0, 0x1BCA4), *range(0x1D173, 0x1D17B),  # controls of shorthand and of music
    0xE0001, *range(0xE0020, 0xE0080),  # tags
)  # fmt: skip

# Spaces and line breaks that the rules of sentencepiece do not read as a space.
_SPACES = (0xB, 0x1C, 0x1D, 0x1E, 0x1F, 0x85, 0x2800)

# The zeros of the decimal digits of all scripts (Unicode 14), except those that NFKC reads as 0.
_ZEROS = (
    0x660, 0x6F0, 0x7C0, 0x966, 0x9E6, 0xA66, 0xAE6, 0xB66, 0xBE6, 0xC66, 0xCE6, 0xD66, 0xDE6,
    0xE50, 0xED0, 0xF20, 0x1040, 0x1090, 0x17E0, 0x1810, 0x1946, 0x19D0, 0x1A80, 0x1A90, 0x1B50,
    0x1BB0, 0x1C40, 0x1C50, 0xA620, 0xA8D0, 0xA900, 0xA9D0, 0xA9F0, 0xAA50, 0xABF0, 0x104A0,
    0x10D30, 0x11066, 0x110F0, 0x11136, 0x111D0, 0x112F0, 0x11450, 0x114D0, 0x11650, 0x116C0,
    0x11730, 0x118E0, 0x11950, 0x11C50, 0x11D50, 0x11DA0, 0x16A60, 0x16AC0, 0x16B50, 0x1E140,
    0x1E2F0, 0x1E950,
)  # fmt: skip


def _digits() -> dict[str, str]:
    digits = {}
    for zero in _ZEROS:
        for value in range(10):
            digits[chr(zero + value)] = str(value)
    return digits


#: The Arabic character that only widens a word.
TATWEEL = "\u0640"

#: Persian letters that are read as Arabic letters.
LETTERS: dict[str, str] = {"\u06a9": "\u0643", "\u06cc": "\u064a"}

#: Rules of every vocabulary trained by this package, in addition to those of sentencepiece (NFKC):
#:
#: - Invisible characters and the Arabic tatweel, which only widens a word, are left out.
#: - Rare spaces and line breaks are a space.
#: - Decimal digits are 0 to 9, with the Arabic separators of decimals and thousands.
#: - Persian kaf and ya are the Arabic letters, also in Persian and Urdu, whose writers exchange
#:   them, too.
CHARACTERS: dict[str, str] = {
    **dict.fromkeys(map(chr, _INVISIBLE), ""),
    TATWEEL: "",
    **dict.fromkeys(map(chr, _SPACES), " "),
    **_digits(),
    "\u066b": ".",
    "\u066c": ",",
    **LETTERS,
}

#: Rules that unify Arabic spelling: without vowel signs and tatweel, and with one letter for those
#: that writers exchange (alef with hamza or madda, alef maksura and ya, ta marbuta and ha, hamza on
#: waw or ya).
ARABIC: dict[str, str] = {
    **dict.fromkeys(map(chr, (0x640, *range(0x64B, 0x653), 0x670)), ""),
    **dict.fromkeys("أإآٱ", "ا"),
    "ى": "ي",
    "ة": "ه",
    "ؤ": "و",
    "ئ": "ي",
}


def simplified_characters(path: str | Path) -> dict[str, str]:
    """Read rules from traditional to simplified Chinese characters.

    `path` is `Unihan_Variants.txt` of Unicode's Unihan. A character that is also a simplified form
    of itself is not changed.
    """
    rules = {}
    for line in Path(path).read_text(encoding="utf-8").split("\n"):
        if "\tkSimplifiedVariant\t" in line:
            traditional, _, forms = line.split("\t")
            character = _character(traditional)
            simplified = [_character(form) for form in forms.split()]
            if character not in simplified:
                rules[character] = simplified[0]
    if not rules:
        raise TextError(
            f"{path}: no kSimplifiedVariant; give Unihan_Variants.txt of Unihan.zip, from"
            " unicode.org"
        )
    return rules


def _character(form: str) -> str:
    """Read a character in the form "U+4E07<kMatthews"."""
    return chr(int(form[2:].partition("<")[0], 16))
