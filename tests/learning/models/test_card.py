"""The model card: metadata that the hub accepts, how to load the model, what to cite, and what must
not be on it.
"""

from dataclasses import replace

import pytest
from huggingface_hub import ModelCard

from st_paragram.core.model_directory.card import NO_LICENSE, render
from st_paragram.core.model_directory.record import (
    Correlation,
    Score,
    TrainingRecord,
    TranslationScore,
)
from st_paragram.learning.models.card import from_record
from st_paragram.runs.families import facts_of

DROPPED = {"too short": 2, "duplicate": 0}
SOURCES = [
    {
        "name": "/home/me/data/en-es.tsv",
        "languages": "en-es",
        "rows": 12,
        "kept": 10,
        "dropped": DROPPED,
    }
]
RECORD = TrainingRecord(
    "m",
    ("en", "es-zh_cn"),
    "a text",
    3,
    {"vocab_size": 9, "report": {"sources": SOURCES}},
    "none",
    {"dim": 4},
    1.0,
    3.0,
    [
        Score("dev set", 9, "before training", Correlation(0.1, 0.2)),
        Score("dev set", 9, "after training", Correlation(0.81234, float("nan"))),
    ],
    "a machine",
    [TranslationScore("held-out", 5, "after training", 0.5)],
)


def card_of(record=RECORD, **ways):
    return ModelCard(render(from_record(record, facts_of(record), **ways)))


def test_the_metadata_says_what_the_hub_shows():
    data = card_of(license="cc-by-4.0").data
    assert (data.license, data.language) == ("cc-by-4.0", ["en", "es", "zh"])
    assert data.library_name == "sentence-transformers"
    assert data.pipeline_tag == "sentence-similarity" and data.base_model is None
    assert data.tags == [
        "sentence-transformers",
        "sentence-similarity",
        "st_paragram",
        "static-embeddings",
    ]
    found = [
        (one.dataset_name, one.dataset_type, one.metric_type, one.metric_value)
        for one in data.eval_results
    ]
    assert found == [
        # the undefined correlation has no entry
        ("dev set (development)", "dev-set", "pearson_cosine", 81.23),
        ("held-out (development)", "held-out", "mean_accuracy", 50.0),
    ]
    assert data.model_name == "m"


@pytest.mark.parametrize(
    ("settings", "papers", "tag"),
    [
        ({}, ["Paraphrastic Representations at Scale"], "static-embeddings"),
        (
            {"encoder": "blstm"},
            ["Representations at Scale", "Simple and Effective"],
            "static-embeddings",
        ),
        (
            {"family": "bgt", "objective": "bgt"},
            ["A Bilingual Generative Transformer"],
            "transformer",
        ),
        (
            {"family": "muse", "architecture": "cnn"},
            ["Multilingual Universal Sentence Encoder"],
            "cnn",
        ),
    ],
)
def test_each_system_names_its_papers(settings, papers, tag):
    card = card_of(replace(RECORD, settings={"dim": 4} | settings))
    entries = card.text.partition("```bibtex\n")[2].partition("```")[0]
    assert entries.count("@inproceedings") == len(papers)
    assert all(paper in entries for paper in papers) and entries.count("{") == entries.count("}")
    assert tag in card.data.tags


def test_what_no_license_is_stated_for_says_so():
    assert NO_LICENSE in card_of().text and card_of().data.license is None
    assert NO_LICENSE not in card_of(license="mit").text
    assert "the licenses of its training text apply" in card_of(license="other").text


@pytest.mark.parametrize(
    ("init", "base", "shown"),
    [
        ("owner/name@v1", "owner/name", "weights of `owner/name@v1`"),
        ("/home/me/p-sp-es", None, "weights of `p-sp-es`"),
        ("p-sp-es", None, "weights of `p-sp-es`"),
    ],
)
def test_the_model_to_begin_with(init, base, shown):
    card = card_of(replace(RECORD, settings={"dim": 4, "init": init}))
    assert card.data.base_model == base and shown in card.text


def test_the_texts_are_listed_without_folders_of_the_machine():
    text = card_of().text
    assert (
        "| en-es.tsv | en-es | too short 2 | 12 | 10 |" in text
        and "\n\n\n" not in text
        and "/home/me" not in text
    )
    assert "en-es.tsv" not in card_of(sources=False).text
    assert "left out" not in card_of(replace(RECORD, preparation={})).text


def test_built_in_pairs_are_no_score_for_the_hub():
    scores = [Score("built-in-en-es", 140, "after training", Correlation(0.4, 0.4)), *RECORD.scores]
    card = card_of(replace(RECORD, scores=scores))
    assert {one.dataset_type for one in card.data.eval_results} == {"dev-set", "held-out"}
    assert "| built-in-en-es (140) | after training | 40.0 | 40.0 |" in card.text
