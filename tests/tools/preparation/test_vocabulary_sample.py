"""The sentences on which a vocabulary of several languages is trained."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from st_paragram.core.pair_store import PairStore
from st_paragram.core.text.parallel import parse_source
from st_paragram.tools.preparation import vocabulary
from st_paragram.tools.preparation.prepare import prepare
from st_paragram.tools.preparation.settings import PrepareSettings

LANGUAGES = ("en", "es-de")
SETTINGS = PrepareSettings(LANGUAGES, vocab_size=150, character_coverage=1.0, sample_pairs=60)


def write(path: Path, language: str, rows: int) -> None:
    path.write_text("".join(f"english row {language} {i}\t{language} satz fila {i}\n" for i in range(rows)))


@pytest.fixture
def trained_on(tmp_path, monkeypatch):
    """Prepare 400 Spanish and 50 German pairs; gives sentences of the sample by language."""
    write(tmp_path / "es.tsv", "es", 400)
    write(tmp_path / "de.tsv", "de", 50)
    seen: list[str] = []
    train = vocabulary.train_vocabulary

    def watching(sentences, **settings):
        seen.extend(sentences)
        return train(iter(seen), **settings)

    monkeypatch.setattr(vocabulary, "train_vocabulary", watching)

    def run(settings: PrepareSettings, name: str = "store") -> Counter[str]:
        seen.clear()
        sources = [parse_source(f"en-{code}:{tmp_path / code}.tsv", settings.languages) for code in ("es", "de")]
        prepare(sources, tmp_path / f"{name}.h5", settings)
        return Counter(text.split()[0] for text in seen)

    return run


def test_each_language_has_as_many_sentences(trained_on, tmp_path):
    assert trained_on(SETTINGS) == {"english": 40, "es": 40, "de": 40}  # a third of the sentences of 60 pairs
    assert PairStore(tmp_path / "store.h5").settings["vocab_sample"] == "even"


def test_a_small_language_gives_all_that_it_has(trained_on):
    assert trained_on(replace(SETTINGS, sample_pairs=300)) == {"english": 200, "es": 200, "de": 50}


def test_the_first_rows_as_they_come(trained_on, tmp_path):
    sample = trained_on(replace(SETTINGS, vocab_sample="rows"))
    assert sample["english"] == 60 == sample["es"] + sample["de"] and sample["es"] > 40
    assert "vocab_sample" not in PairStore(tmp_path / "store.h5").settings


def test_the_sample_does_not_depend_on_the_run(trained_on, tmp_path):
    trained_on(SETTINGS, "first")
    trained_on(SETTINGS, "second")
    assert (tmp_path / "first.h5").read_bytes() == (tmp_path / "second.h5").read_bytes()


def test_one_pair_of_languages_is_sampled_as_before():
    settings = PrepareSettings(("en", "es"))
    assert not settings.even_sample and "vocab_sample" not in settings.as_json()


@pytest.mark.parametrize(
    ("languages", "pairs", "pieces"),
    [
        (("en", "es"), 2_000_000, 50_000),
        (("en", "ar-de-en-es-fr-ru-tr-zh"), 2_000_000, 96_000),
        (("en", "ar-de-en-es-fr-ru-tr-zh"), 1_000_000, 20_000),
        (("en", "de-zh_tw-zh"), 2_000_000, 50_000),
        (("en", "-".join(f"l{number}" for number in range(40))), 2_000_000, 200_000),
    ],
)
def test_many_languages_have_more_pieces(languages, pairs, pieces):
    assert PrepareSettings(languages).pieces(pairs) == pieces
