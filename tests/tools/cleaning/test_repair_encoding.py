"""Repair of texts that were read in a wrong encoding: by hand, back from many scripts, and correct
text untouched.
"""

from __future__ import annotations

import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from st_paragram.core.pair_store import PairStore
from st_paragram.core.text.parallel import parse_source
from st_paragram.errors import MissingExtraError
from st_paragram.tools.cleaning.config import Cleaning, Step
from st_paragram.tools.cleaning.markup import has_broken_characters
from st_paragram.tools.cleaning.repair_encoding import RepairEncoding
from st_paragram.tools.preparation.prepare import prepare
from st_paragram.tools.preparation.settings import PrepareSettings

pytest.importorskip("ftfy")

ODD = (
    "aZ zé ßΣς \u0301ﬁ…½ 中語かタ안 ไทย мир"
    " سلام\u200b\u200f\u200d\x00\x01\x85\xad\u2028\ufeff\ufffd\ufffc"
)
ODD += "\ud800\udfff\ue000\U0001f600\U000e0041<&;>{}[]%$@/:.Ã©â€™Ð¿"
CORRECT = [
    "It’s “fine” – 5 °C, 3 × 4 ½… naïve café ™ © ®",
    "„Ö“, „Ä“ und „Ü“ in Köln–Düsseldorf",
    "SÉ QUE É AMANHÃ”, VÃ· LIBERTÉ» Â ÎLE À “À”",
    "Łódź, Přístav, İstanbul’a ığdır, Đặng Thị Ở",
    "Это «проверка» — Ёлка… № 5, СССР и РФ",
    "Ελλάδα: «Άνοιξη» – ἀρχή",
    "مرحبا بالعالم، كيف الحال؟",
    "こんにちは、世界。ｱｲｳ Ａ１",
    "Tom &amp; Jerry ﬁsh ‘quoted’ 10³",
]


def repaired(text: str) -> str:
    first, second = RepairEncoding().repair((text, "x"))
    other, same = RepairEncoding().repair(("x", text))
    assert first == same and second == other == "x"
    return first


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("I donâ€™t know", "I don’t know"),
        ("CafÃ© olÃ©, maÃ±ana", "Café olé, mañana"),
        ("â€œYesâ€\x9d â€“ noâ€¦", "“Yes” – no…"),
        ("Ð¿Ñ€Ð¸Ð²ÐµÑ‚", "привет"),
        ("РџСЂРёРІРµС‚ РјРёСЂ", "Привет мир"),
        ("\x84Zitat\x93 und 3\x96 4", "„Zitat“ und 3– 4"),  # bytes of cp1252 read as Latin-1
        ("سنة 212â€“219", "سنة 212–219"),  # misread in part
        ("donÃ¢â‚¬â„¢t", "don’t"),  # misread twice
        # nothing but the encoding
        ("donâ€™t &amp; “curly” ｆｕｌｌ ﬁsh", "don’t &amp; “curly” ｆｕｌｌ ﬁsh"),
        ("caf\ufffd au lait", "caf\ufffd au lait"),  # what is lost stays lost
        ("donâ€™t \ue000", "donâ€™t \ue000"),  # no repair that leaves something broken
    ],
)
def test_repairs_by_hand(text: str, expected: str) -> None:
    assert repaired(text) == expected


def test_correct_text_stays() -> None:
    assert list(map(repaired, CORRECT)) == CORRECT


@given(st.text(max_size=40) | st.text(ODD, max_size=40))
def test_text_without_broken_characters_stays_and_no_repair_is_half_done(text: str) -> None:
    text = " ".join(text.split())
    result = repaired(text)
    assert result == text or (has_broken_characters(text) and not has_broken_characters(result))
    assert result == " ".join(result.split())


def test_ftfy_is_an_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ftfy", None)
    with pytest.raises(
        MissingExtraError, match=r'"repair_encoding" needs ftfy.*"st_paragram\[repair\]"'
    ):
        RepairEncoding().identity()


def test_a_preparation_repairs_in_the_order_of_the_list_and_counts(tmp_path) -> None:
    good = [(f"the cat number {n} sleeps", f"el gato número {n} duerme") for n in range(40)]
    rows = [
        *good,
        ("I donâ€™t know him", "no lo conozco yo"),
        ("what cafÃ© is it", "quÃ© cafÃ© es"),
    ]
    text = tmp_path / "t.tsv"
    text.write_text("".join(f"{a}\t{b}\n" for a, b in rows), encoding="utf-8", newline="\n")
    steps = (Step("repair_encoding"), Step("markup"))
    for name, chosen, kept, repairs in (
        ("r", steps, 42, 2),
        ("m", steps[1:], 40, None),
        ("late", steps[::-1], 40, 0),
    ):
        settings = PrepareSettings(
            ("en", "es"), Cleaning(chosen), vocab_size=80, character_coverage=1.0
        )
        report = prepare([parse_source(str(text), ("en", "es"))], tmp_path / f"{name}.h5", settings)
        assert (report.total.kept, report.total.repairs.get("repair_encoding")) == (kept, repairs)
        stored = PairStore(tmp_path / f"{name}.h5")
        assert stored.settings["report"] == report.as_json()
        assert ("2 rows that had been read in a wrong encoding (repaired)" in report.table()) == (
            repairs == 2
        )
        texts = stored.texts("a", range(len(stored)))
        assert ("i don’t know him" in texts) == (repairs == 2)
