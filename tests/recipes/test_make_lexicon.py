"""Word pairs of parallel text by a model's vectors."""

import runpy
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "data_prep" / "make_lexicon.py"
ENGLISH, SPANISH = "the house and the water", "la casa y el agua"


def make_lexicon(*arguments):
    """Run the script; return its exit status."""
    sys.argv = ["make_lexicon", "--texts", "texts", "--model", "p-sp-mini", *arguments]
    with pytest.raises(SystemExit) as ended:
        runpy.run_path(str(SCRIPT), run_name="__main__")
    return ended.value.code


def test_words_get_their_nearest_english_words(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    for language, other in (("es", SPANISH), ("ru", "дом и вода, house")):
        Path("texts", language).mkdir(parents=True)
        Path("texts", language, "ours.tsv").write_text(
            f"{ENGLISH}\t{other}\n" * 3 + "rare\tcasa\n", encoding="utf-8"
        )
    assert make_lexicon("--languages", "es", "ru", "--minimum", "0.6") == 0
    spanish, russian = (
        Path("texts", code, "lexicon.tsv").read_text(encoding="utf-8") for code in ("es", "ru")
    )
    assert {"house\tcasa", "water\tagua"} <= set(spanish.splitlines()) and "rare" not in spanish
    assert russian.splitlines() in (["house\tдом", "water\tвода"], ["water\tвода", "house\tдом"])

    before = spanish
    assert (
        make_lexicon("--languages", "es") == 1
        and "lexicon.tsv exists; move it" in capsys.readouterr().err
    )
    for language in ("es", "ru"):
        Path("texts", language, "lexicon.tsv").unlink()
    assert make_lexicon("--languages", "es", "ru", "--minimum", "0.6", "--most", "1") == 0
    assert (
        Path("texts/es/lexicon.tsv").read_text(encoding="utf-8")
        == before.splitlines(keepends=True)[0]
    )
    capsys.readouterr()
    assert make_lexicon("--languages", "de") == 1
    assert "texts/de: no text; put SOURCE.tsv files there" in capsys.readouterr().err
