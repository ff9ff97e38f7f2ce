"""The table of languages fits the built-in text, the published models and the recipe."""

from __future__ import annotations

from pathlib import Path

import pytest

from st_paragram.core.languages import _TABLE, LANGUAGES, LARGE_LANGUAGES, MODEL_LANGUAGES
from st_paragram.core.model_directory.find import LARGE, SHIPPED_MODELS, shipped_folder
from st_paragram.core.model_directory.languages import read_languages
from st_paragram.core.sample import held_out_pairs, sample_pairs
from st_paragram.core.settings import read_yaml

RECIPE = Path(__file__).parents[2] / "recipes" / "release.yaml"


def test_a_language_has_one_row():
    assert len(LANGUAGES) == len(_TABLE)
    for language in _TABLE:
        assert language.name and (not language.labels or language.labels != (language.code,))
        assert bool(language.test_codes) == bool(language.model)


@pytest.mark.parametrize("code", MODEL_LANGUAGES)
def test_the_built_in_text_has_the_languages_of_the_models(code):
    assert next(sample_pairs(code, 1))[0]
    assert held_out_pairs("en", code)


@pytest.mark.parametrize("name", SHIPPED_MODELS)
def test_the_published_models_have_the_languages_of_the_table(name):
    languages = LARGE_LANGUAGES if name == LARGE else MODEL_LANGUAGES
    assert sorted(read_languages(shipped_folder(name))) == sorted(languages)
    models = read_yaml(RECIPE)["models"]
    assert sorted(models[f"{name}-float32"]["languages"]) == sorted(languages)
