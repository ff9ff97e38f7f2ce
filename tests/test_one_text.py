"""One text where a list is expected: it is taken as a list of one, or refused, and never read as
letters.
"""

import pytest

from st_paragram import Encoder, MiningSettings, align, embed_files, mine
from st_paragram.core.encoding.unit_embeddings import unit_embeddings
from st_paragram.core.files import names_of
from st_paragram.errors import SettingsError
from st_paragram.runs.training_data import choose_data
from st_paragram.tools.score_files import score_pairs

ENCODER = Encoder("p-sp-mini")


def test_names_of_files_and_columns_may_be_one(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "lines.txt").write_text(
        "the train is late\nthe late train\nthe cat sleeps\nthe cat is asleep\n"
    )
    (tmp_path / "lines.csv").write_text("text\nthe train is late\nthe cat sleeps\n")
    settings = MiningSettings(paraphrase=True, neighbors=1)
    assert mine("lines.txt", "mined.tsv", "p-sp-mini", settings).counts[0].lines == 4
    assert embed_files(ENCODER, "lines.csv", "rows.npy", columns="text").lines == 2
    assert choose_data("es", "built-in").built_in
    assert (
        names_of("a b") == ["a b"]
        and names_of(("a", "b")) == ["a", "b"]
        and names_of(tmp_path) == [tmp_path]
    )


@pytest.mark.parametrize(
    "call",
    [
        lambda: align("the cat", ["the cat"], ENCODER),
        lambda: align(["the cat"], "the cat", ENCODER),
        lambda: list(score_pairs(ENCODER, ("ab", "cd"))),
        lambda: unit_embeddings(ENCODER, "the cat"),
        lambda: ENCODER.tokenizer.encode("the cat"),
    ],
)
def test_texts_may_not_be_one(call):
    with pytest.raises(SettingsError, match=r"one text|texts of type str") as caught:
        call()
    assert "\n" not in str(caught.value)
