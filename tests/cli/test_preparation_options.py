"""The options of the commands that make pair stores and paraphrases: their names, and what they become."""

from __future__ import annotations

import argparse
import json

import pytest

from st_paragram.cli import bitext, pivot, prepare
from st_paragram.core.settings import given
from st_paragram.errors import SettingsError
from st_paragram.tools.cleaning.config import default_cleaning, named_cleaning, only_length, parse_cleaning
from st_paragram.tools.options.preparation import settings_from
from st_paragram.tools.options.text import cleaning_from
from st_paragram.tools.preparation.pivot_pairs import PivotSettings
from st_paragram.tools.preparation.settings import PrepareSettings

STORE = """--overwrite --seed 1 --temperature 2 --max-pieces 9 --segment jieba --keep-case --drop-invalid
--vocab v.model --vocab-size 80 --character-coverage 0.99 --sample-pairs 10 --max-sentence-bytes 99 --vocab-threads 2
--work w --force read --rejects r --workers 2"""
TEXT = """--text a --moses a b --cap 3 --cleaning paper --min-length 1 --max-length 2 --max-characters 3
--length-on english"""
OPTIONS = {
    prepare: f"--lang es --output o.h5 {TEXT} {STORE}",
    bitext: f"--lang es --output o.h5 --corpus c --mirror m --folder f --parallel 2 --no-download {TEXT} {STORE}",
    pivot: """--text en-de:a --lang en --output o --min-words 1 --min-pivot-letters 2 --most-sentences 3 --most-pairs 4
        --seed 5 --drop-invalid --json j""",
}


def parse(command, words):
    parser = argparse.ArgumentParser(allow_abbrev=False)
    command.add_options(parser)
    return parser.parse_args(words.split())


@pytest.mark.parametrize(
    ("command", "cls"),
    [(prepare, PrepareSettings), (bitext, PrepareSettings), (pivot, PivotSettings)],
)
def test_every_option_is_there(command, cls):
    values = given(parse(command, OPTIONS[command]), cls)
    assert len(values) >= (11 if cls is not PivotSettings else 5)
    assert all(value is not None for value in values.values())


def test_options_become_settings():
    arguments = parse(prepare, OPTIONS[prepare])
    settings = settings_from(arguments, ("en", "es"), only_length())
    assert (settings.lower_case, settings.drop_invalid, settings.segmentation.value) == (False, True, "jieba")
    assert (settings.seed, settings.temperature, settings.max_pieces, settings.vocab_size) == (1, 2, 9, 80)
    assert (settings.character_coverage, settings.sample_pairs) == (0.99, 10)
    assert (settings.max_sentence_bytes, settings.vocab_threads) == (99, 2)
    bare = parse(prepare, "--lang es --output o.h5")
    assert settings_from(bare, ("en", "es"), only_length()) == PrepareSettings(("en", "es"))
    with pytest.raises(SettingsError, match="vocab_size is 7; it must be greater than or equal to 8"):
        settings_from(parse(prepare, "--lang es --output o.h5 --vocab-size 7"), ("en", "es"), only_length())


def test_filters_follow_the_lengths_or_a_list():
    def filters(words, otherwise=None):
        return cleaning_from(parse(bitext, f"--lang es {words}"), otherwise)

    assert filters("") == only_length()
    assert filters("", "default") == filters("--cleaning default") == default_cleaning()
    assert filters("--min-length 5 --length-on english", "default") == only_length(5, length_on="english")
    with pytest.raises(
        SettingsError, match="--max-length cannot be combined with --cleaning paper; set the lengths in the list"
    ):
        filters("--max-length 5 --cleaning paper")


def test_what_a_store_keeps_of_its_settings():
    kept = {
        "languages": ["en", "fr-zh"],
        "cleaning": [
            {"length": {"min_length": 3, "max_length": 100, "max_characters": 200, "length_on": "both"}},
            {"duplicates": {"on": ["pair"], "copies": "one"}},
        ],
        "lower_case": True,
        "segmentation": "none",
        "drop_invalid": False,
        "temperature": 1.0,
        "vocab_size": None,
        "character_coverage": 0.99995,
        "sample_pairs": 300000,
        "vocab_sample": "even",
        "max_sentence_bytes": 4192,
        "vocab_threads": 8,
        "max_pieces": 100,
        "seed": 0,
    }
    assert json.dumps(PrepareSettings(("en", "fr-zh")).as_json()) == json.dumps(kept)


@pytest.mark.parametrize(
    ("pairs", "pieces"), [(2, 8_000), (50_000, 8_000), (50_001, 20_000), (1_000_000, 20_000), (1_000_001, 50_000)]
)
def test_a_vocabulary_is_as_large_as_the_text_can_teach(pairs, pieces):
    assert PrepareSettings(("en", "es")).pieces(pairs) == pieces
    assert PrepareSettings(("en", "es"), vocab_size=123).pieces(pairs) == 123


def test_scored_paraphrases_are_filtered_as_in_the_paper():
    listed = named_cleaning("paranmt")
    length, overlap = {"length": {"min_length": 5, "max_length": 40}}, {"overlap": {"max_overlap": 0.7}}
    score = {"paraphrase_score": {"low": 0.4, "high": 1.0, "column": 0}}
    assert listed.as_json() == [length, score, overlap, {"duplicates": {"on": ["pair"], "copies": "one"}}]
    assert listed.further_columns == 1 and default_cleaning().further_columns == 0
    label = {"label": {"column": 2, "value": "en"}}
    assert parse_cleaning([label, {"paraphrase_score": {"model": "m"}}], "x").further_columns == 3
