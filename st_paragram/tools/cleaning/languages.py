"""What filters must know about languages: their scripts and their codes elsewhere."""

from __future__ import annotations

from functools import cache

# Code, ISO 639-3 codes (macro-languages have several), scripts. OPUS's commonest languages and a few more.
_TABLE = """\
af afr Latin
am amh Ethiopic
an arg Latin
ang ang Latin
ar ara,arz,arq,arb,apc,ary Arabic
as asm Bengali
ast ast Latin
awa awa Devanagari
az aze,azj Latin,Cyrillic
ba bak Cyrillic
be bel Cyrillic
ber ber Latin,Tifinagh
bg bul Cyrillic
bn ben Bengali
bo bod Tibetan
br bre Latin
bs bos Latin,Cyrillic
ca cat Latin
cbk cbk Latin
ceb ceb Latin
ch cha Latin
ckb ckb Arabic
cor cor Latin
cs ces Latin
csb csb Latin
cv chv Cyrillic
cy cym Latin
da dan Latin
de deu Latin
dsb dsb Latin
dtp dtp Latin
dv div Thaana
dz dzo Tibetan
el ell Greek
en eng Latin
eo epo Latin
es spa Latin
et est,ekk Latin
eu eus Latin
fa fas,pes,prs Arabic
fi fin Latin
fil fil Latin
fo fao Latin
fr fra Latin
fy fry Latin
ga gle Latin
gd gla Latin
gl glg Latin
gsw gsw Latin
gu guj Gujarati
ha hau Latin
haw haw Latin
he heb Hebrew
hi hin Devanagari
hr hrv Latin
hsb hsb Latin
ht hat Latin
hu hun Latin
hy hye Armenian
ia ina Latin
id ind Latin
ie ile Latin
ig ibo Latin
io ido Latin
is isl Latin
it ita Latin
ja jpn Han,Kana
jv jav Latin
ka kat Georgian
kab kab Latin
kk kaz Cyrillic,Latin,Arabic
km khm Khmer
kn kan Kannada
ko kor Hangul,Han
ku kur,kmr Latin,Arabic
kw cor Latin
ky kir Cyrillic
kzj kzj Latin
la lat Latin
lb ltz Latin
lfn lfn Latin
lo lao Lao
lt lit Latin
lv lvs,lav Latin
max max Latin
mg mlg,plt Latin
mhr mhr Cyrillic
mi mri Latin
mk mkd Cyrillic
ml mal Malayalam
mn mon,khk Cyrillic,Mongolian
mr mar Devanagari
ms zsm,msa Latin
mt mlt Latin
my mya Myanmar
nb nob Latin
nds nds Latin
ne nep,npi Devanagari
nl nld Latin
nn nno Latin
no nob,nno,nor Latin
nov nov Latin
ny nya Latin
oc oci Latin
or ori,ory Oriya
orv orv Cyrillic
pa pan Gurmukhi,Arabic
pam pam Latin
pl pol Latin
pms pms Latin
ps pus,pbt Arabic
pt por Latin
rn run Latin
ro ron Latin
ru rus Cyrillic
rw kin Latin
sa san Devanagari
sd snd Arabic,Devanagari
se sme Latin
sh hbs Latin,Cyrillic
si sin Sinhala
sk slk Latin
sl slv Latin
sm smo Latin
sn sna Latin
so som Latin
sq sqi,als Latin
sr srp Cyrillic,Latin
st sot Latin
su sun Latin
sv swe Latin
sw swh,swa Latin
swg swg Latin
ta tam Tamil
te tel Telugu
tg tgk Cyrillic
th tha Thai
ti tir Ethiopic
tk tuk Latin,Cyrillic
tl tgl Latin
tr tur Latin
ts tso Latin
tt tat Cyrillic,Latin
tzl tzl Latin
ug uig Arabic
uk ukr Cyrillic
ur urd Arabic
uz uzb,uzn Latin,Cyrillic
vi vie Latin
war war Latin
wo wol Latin
wuu wuu Han
xh xho Latin
yi yid,ydd Hebrew
yo yor Latin
yue yue Han
zh cmn,zho,yue,wuu Han
zu zul Latin
"""

_SCRIPT_TAGS = {
    "latn": ("Latin",),
    "latin": ("Latin",),
    "cyrl": ("Cyrillic",),
    "arab": ("Arabic",),
    "deva": ("Devanagari",),
    "hans": ("Han",),
    "hant": ("Han",),
}


def scripts(code: str) -> tuple[str, ...]:
    """The scripts a language is written in, e.g. `("Han", "Kana")` for ja; empty for an unknown code.

    Args:
        code: ISO 639-1 or 639-3, whatever region behind it (`zh_cn`, `pt-BR`); a script behind it counts (`sr_Latn`).
    """
    base, *tags = _parts(code)
    for tag in tags:
        if tag in _SCRIPT_TAGS:
            return _SCRIPT_TAGS[tag]
    return _known()[1].get(_short(base), ())


def short_code(code: str) -> str:
    """The two-letter code where there is one, else the first part of the code: `zh_cn` -> zh, `spa` -> es."""
    return _short(_parts(code)[0])


def long_codes(code: str) -> tuple[str, ...]:
    """The ISO 639-3 codes of a language, the macro-language's members included; the code itself if it is unknown."""
    base = _parts(code)[0]
    return _known()[0].get(base, (base,))


def _parts(code: str) -> list[str]:
    return code.lower().replace("-", "_").split("_")


def _short(base: str) -> str:
    return base if base in _known()[1] else _known()[2].get(base, base)


@cache
def _known() -> tuple[dict[str, tuple[str, ...]], dict[str, tuple[str, ...]], dict[str, str]]:
    longs: dict[str, tuple[str, ...]] = {}
    written: dict[str, tuple[str, ...]] = {}
    shorts: dict[str, str] = {}
    for row in _TABLE.split("\n")[:-1]:
        code, iso, names = row.split(" ")
        longs[code], written[code] = tuple(iso.split(",")), tuple(names.split(","))
        for name in longs[code]:
            shorts.setdefault(name, code)
    return longs, written, shorts
