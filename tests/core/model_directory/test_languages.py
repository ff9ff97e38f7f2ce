"""Models cut down to some languages: their texts keep their embeddings, and pieces of others are
gone.
"""

import numpy as np
import pytest

from st_paragram import Encoder, sample_pairs
from st_paragram.cli.main import main
from st_paragram.core.embedding_table import Table
from st_paragram.core.model_directory.find import shipped_folder
from st_paragram.core.model_directory.languages import (
    cut,
    pieces_in,
    read_languages,
    write_languages,
)
from st_paragram.core.model_directory.model_files import AveragingModel
from st_paragram.errors import SettingsError


@pytest.fixture
def model(tmp_path, vocabulary, rng):
    """A folder of a model with random rows, whose languages are the two halves of its text."""
    table = Table(rng.standard_normal((len(vocabulary), 4)).astype(np.float32))
    Encoder(AveragingModel(vocabulary, table)).save(tmp_path / "m")
    return tmp_path / "m"


def test_texts_of_the_language_keep_their_embeddings(model, vocabulary):
    first, second = (list(side) for side in zip(*sample_pairs("es", 50), strict=True))
    write_languages(
        model, {"en": pieces_in(first, vocabulary), "es": pieces_in(second, vocabulary)}
    )
    whole = Encoder(model)
    english = Encoder(cut(whole.model, model, ["en"]))
    assert len(english.tokenizer) < len(vocabulary)
    assert english.tokenize(first) == whole.tokenize(first)
    np.testing.assert_array_equal(english.encode(first), whole.encode(first))
    assert english.tokenize(second) != whole.tokenize(second)
    both = Encoder(cut(whole.model, model, ["es", "en"]))
    np.testing.assert_array_equal(both.encode(second), whole.encode(second))
    kept = np.concatenate(
        [pieces_in(each, both.tokenizer)[:, None] for each in (first, second)], axis=1
    ).any(axis=1)
    names = {both.tokenizer.piece(each) for each in np.flatnonzero(~kept)}
    assert names == {None}  # control symbols and the unknown id alone are in no text


def test_a_language_that_is_not_there_is_refused(model):
    with pytest.raises(SettingsError, match="it knows no language"):
        cut(Encoder(model).model, model, ["en"])
    folder = shipped_folder()
    with pytest.raises(
        SettingsError, match="no tokens of language 'xx'; it knows ar, de, en, es, fr, ru, tr, zh"
    ):
        cut(Encoder(folder).model, folder, ["en", "xx"])
    assert set(read_languages(folder)) == set(read_languages(shipped_folder("p-sp-base")))


@pytest.mark.parametrize(
    ("command", "message"),
    [
        ("p-sp-xx", "p-sp-xx does not come with st_paragram; choose p-sp-mini"),
        ("p-sp-es --languages tr", "--languages"),
    ],
)
def test_get_says_what_there_is(tmp_path, monkeypatch, capsys, command, message):
    monkeypatch.chdir(tmp_path)
    assert main(["get", *command.split()]) == 1
    assert message in capsys.readouterr().err
    assert not list(tmp_path.iterdir())
