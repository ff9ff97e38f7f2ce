"""Frequent short words of languages: enough of them in a text show its language, and need no model."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

from st_paragram.tools.cleaning.languages import short_code
from st_paragram.tools.cleaning.unsegmented_scripts import UNSEGMENTED

# Code, name in English, name in the language itself, and frequent words; characters where words are not separated.
_TABLE = """\
en English English the of and to a in is that it for you was with on as i be he this have are not we your can if
de German Deutsch der die und das in den von zu mit sie ist ein nicht ich es eine auf dem für sich im wir er des du
fr French Français de la le et les des en un une du que est pour dans il vous pas qui sur je au plus ce ne avec à
es Spanish Español de la que el en y los no se un por las con una para es su del lo me al más pero si como
pt Portuguese Português de que o e do da em um para não uma os com no na se por mais as dos como ao você é eu
gl Galician Galego de que o e do da en un para non unha os con no na se por máis as dos como ao é á lle
it Italian Italiano di che e il la un a per non è in una sono si del della con i da mi le ho come più al
ca Catalan Català de la i el que a en els per un una les no és amb del al es va ha més dels com si però
ro Romanian Română de și în la a nu să o cu pe un care este că din mai pentru l-a sunt au ce se am fi lui
nl Dutch Nederlands de het een van en ik in is dat je niet op te zijn voor met die er aan maar om als ze was hij
af Afrikaans Afrikaans die het nie en van in is dit wat sy vir ek op met te hy om nie was my ons aan jy 'n sal
sv Swedish Svenska och att det är i jag en som på inte av för du han med den har de till ett om så var vi kan
da Danish Dansk og at det er i jeg en på ikke af for du han med den har de til et om så var vi kan der
no Norwegian Norsk og at det er i jeg en på ikke av for du han med den har de til et om så var vi kan som
is Icelandic Íslenska að og ég er í á ekki það sem til við um en var hann þú hún fyrir með af ert þetta
fi Finnish Suomi ja on ei se että en hän olen mutta ovat oli tai kun niin minä mitä jos ole voi kuin sen tämä joka
et Estonian Eesti ja on ei et see ma ta oli aga kui ka mis seda oma kas või nii siis tema olen sa mitte ning
hu Hungarian Magyar a az és hogy nem is egy ez meg de azt van volt csak el ha mint én ezt már vagy kell te
pl Polish Polski nie w i na się z to do że jest o jak co za po mi ale ja od tak dla czy przez był są
cs Czech Čeština a se v na je že to s z do o ve jsem k i za by si ale pro jsou tak co jako jeho
sk Slovak Slovenčina a sa v na je že to s z do o vo som k aj za by si ale pre sú tak čo ako jeho
sl Slovenian Slovenščina in je v na se da za ne so s z ki bi to pa kot od si sem po ali še tudi kaj ni
hr Croatian Hrvatski i je u se na da za su od a s ne to sam što o kao ili bi ali koji iz ako nije ovo
sr Serbian Srpski i je u se na da za su od a s ne to sam и је у се на да за су од а са не то сам што
sq Albanian Shqip në të e dhe i me për një që nga se është nuk do si ka më u ai kjo por unë
lt Lithuanian Lietuvių ir į yra kad su iš ne tai aš kaip bet buvo apie ar jis už nuo jo mano ką ji tik
lv Latvian Latviešu un ir uz ar no es ka viņš bet kas tas par nav bija to kā vai lai viņa man jau vēl
tr Turkish Türkçe ve bir bu için de da ne ile çok daha gibi olarak var ben o değil mi ama sen olan veya en her
az Azerbaijani Azərbaycan və bir bu üçün də da ilə mən o var deyil nə kimi çox daha onun ki sən olan ən hər
id Indonesian Indonesia yang dan di ini itu untuk tidak dengan dari dalam akan pada saya ada anda ke dia atau kami
ms Malay Melayu yang dan di ini itu untuk tidak dengan dari dalam akan pada saya ada anda ke dia atau kami
tl Tagalog Tagalog ang ng sa na mga ay ako si ko hindi at siya mo ka ito niya para kung may ba
vi Vietnamese Việt của và là có không một tôi được cho các trong với này bạn những đã người để anh khi đó ở
sw Swahili Kiswahili ya na wa kwa ni katika za la hii cha kuwa hiyo yake mimi sana lakini hakuna huyo watu alikuwa
eu Basque Euskara eta da ez bat du zen dut ere dira hau nire zuen bere dago egin baina naiz oso dute izan
eo Esperanto Esperanto la de kaj mi estas en vi ne al tio ke ĝi por li ŝi kun sed pri tre ĉu el oni
ru Russian Русский и в не на я что с он как это а по к но из у за вы для ты мы его от о так все
uk Ukrainian Українська і в не на я що з він як це а до у та за ви для ти ми його від але або є й
be Belarusian Беларуская і у не на я што з ён як гэта а да ў за вы для ты мы яго ад але ці каб
bg Bulgarian Български и на да в не се е за от си с това че по съм как той ми ще са но са аз
mk Macedonian Македонски и на да во не се е за од со тоа дека по сум како тој ми ќе ја но го ги
ar Arabic العربية من في على إلى أن ما هذا لا هو التي عن مع هذه أو كان لم هل إن لقد ذلك كل أنا قد أنت
fa Persian فارسی و در به از که این را با است من یک برای آن تا او می شما ما هم بود کرد آیا
ur Urdu اردو کے میں ہے کی اور سے کا کو یہ اس نہیں ہیں کہ نے ایک وہ پر تھا بھی کیا
hi Hindi हिन्दी के में है की और से का को यह इस नहीं हैं कि ने एक वह पर था भी मैं
mr Marathi मराठी आहे आणि मी या ते हे तो आहेत नाही होते मला ती त्या केले होता काय एक तर
zh Chinese 中文 的 是 不 了 我 在 有 一 这 這 个 個 们 們 你 他 和 为 為 要 会 會 来 來
ja Japanese 日本語 の に は を た が で て と し れ さ い な る す
"""

# Languages that so few words do not distinguish, or whose text is often labeled as that of another.
_CLOSE = ({"da", "no"}, {"hr", "sr"}, {"id", "ms"}, {"pt", "gl"}, {"es", "gl"})
_SAME = {"nb": "no", "nn": "no", "bs": "hr", "sh": "hr", "zsm": "ms", "fil": "tl", "yue": "zh", "wuu": "zh"}
_MARKS = "\u0300-\u036f\u0900-\u0dff"  # of letters before them
_WORD = re.compile(rf"[{UNSEGMENTED}]|[^\W\d_](?:[^\W_{UNSEGMENTED}]|[{_MARKS}]|['’-](?=\w))*")


@dataclass(frozen=True)
class Language:
    """A language of the table.

    Attributes:
        code: As short as there is one.
        name: In English.
        own_name: In the language itself.
        words: Frequent ones, lower-cased.
    """

    code: str
    name: str
    own_name: str
    words: frozenset[str]


class Words:
    """The words of a text, counted.

    Attributes:
        counts: How often each occurs, lower-cased.
        total: All of them.
    """

    def __init__(self, texts: Sequence[str]) -> None:
        self.counts = Counter(_WORD.findall("\n".join(texts).lower()))
        self.total = self.counts.total()

    def share(self, words: frozenset[str]) -> float:
        """The share of the words of the text that are among these."""
        return sum(map(self.counts.__getitem__, words)) / max(self.total, 1)


def language_of(code: str) -> Language | None:
    """The language in the table; None if it is not there."""
    short = short_code(code)
    return _languages().get(_SAME.get(short, short))


def other_language(words: Words, code: str, least: float, ratio: float) -> Language | None:
    """The language whose words are in a text that should be in another one.

    Only words that one of the two languages has and the other lacks count.

    Args:
        words: Of the text.
        code: The language that the text should be in, one of the table.
        least: Share of the words of the text that must be of the other language.
        ratio: How many times larger it must be than the share of the language that the text should be in.

    Returns:
        The most probable one; None if it is the right language or close to it, or if it is not clear.
    """
    right = language_of(code)
    if right is None:
        return None
    others = [other for other in _languages().values() if other is not right]
    best = max(others, key=lambda other: words.share(other.words - right.words))
    share, right_share = words.share(best.words - right.words), words.share(right.words - best.words)
    close = any({best.code, right.code} <= group for group in _CLOSE)
    return None if close or share < max(least, ratio * right_share) else best


@cache
def _languages() -> dict[str, Language]:
    rows = (row.split() for row in _TABLE.splitlines())
    return {code: Language(code, name, own, frozenset(words)) for code, name, own, *words in rows}
