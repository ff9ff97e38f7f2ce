"""Codes of languages that the names of files may begin with."""

from __future__ import annotations

import re

# ISO 639-1, and the codes of three letters of languages that have parallel text and no shorter code.
_TABLE = """\
aa ab ae af ak am an ar as av ay az ba be bg bh bi bm bn bo br bs ca ce ch co cr cs cu cv cy da de dv dz ee el en eo
es et eu fa ff fi fj fo fr fy ga gd gl gn gu gv ha he hi ho hr ht hu hy hz ia id ie ig ii ik io is it iu ja jv ka kg
ki kj kk kl km kn ko kr ks ku kv kw ky la lb lg li ln lo lt lu lv mg mh mi mk ml mn mr ms mt my na nb nd ne ng nl nn
no nr nv ny oc oj om or os pa pi pl ps pt qu rm rn ro ru rw sa sc sd se sg sh si sk sl sm sn so sq sr ss st su sv sw
ta te tg th ti tk tl tn to tr ts tt tw ty ug uk ur uz ve vi vo wa wo xh yi yo za zh zu
ang arg arq ary arz ast awa ber bul cbk ceb ckb cor csb dsb dtp fil gsw hak haw hmn hsb ido ile ina jbo kab kha kmr
kzj lad lfn lld lzh mai max mhr min nan nap nds nov oci orv pam pes pms scn sco sin swg szl tet tlh tpi tuk tzl uig vec
war wuu xal yue zsm zza
"""
_CODES = frozenset(_TABLE.split())
_FORM = re.compile(r"([a-z]{2,3})(?:[_-][A-Za-z]{2,4})?")


def is_language_code(word: str) -> bool:
    """Whether a word is a language code such as `es`, `ceb`, `zh_cn` or `zh-Hant`, in lower case but for the ending."""
    found = _FORM.fullmatch(word)
    return found is not None and found[1] in _CODES
