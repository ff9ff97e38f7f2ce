"""Training that continues from a model: its vocabulary, its dimension, and never a worse model."""

from __future__ import annotations

import pytest

from st_paragram import Encoder, TrainingRun, run_training, sample_pairs
from st_paragram.core.encoding.record import read_training_record


@pytest.fixture
def text(tmp_path):
    path = tmp_path / "en-es.tsv"
    path.write_text("".join(f"{a}\t{b}\n" for a, b in sample_pairs("es", 1_200)), encoding="utf-8")
    return str(path)


def run(text, tmp_path, language="es", **overrides):
    settings = {"init": "p-sp-mini", "epochs": 0.5, **overrides}
    return TrainingRun(language, tmp_path / "m", [text], config="small", overrides=settings)


def test_a_language_of_the_model_keeps_its_vocabulary(text, tmp_path, caplog):
    asked = run(text, tmp_path, learning_rate=1e-9)
    assert asked.settings.dim == 256 and asked.preparation.lower_case
    before, after = run_training(asked).translations
    assert before.accuracy == after.accuracy > 0.2
    assert Encoder(tmp_path / "m").tokenizer == Encoder("p-sp-mini").tokenizer
    assert read_training_record(tmp_path / "m").settings["dim"] == 256


def test_another_language_gets_a_vocabulary_of_its_own(text, tmp_path):
    assert run(text, tmp_path, "it").vocabulary is None
    assert run(text, tmp_path, "es").vocabulary is not None
    asked = TrainingRun("es", tmp_path / "m", [text], overrides={"init": "p-sp-mini"}, vocab_size=500)
    assert asked.vocabulary is None


def test_a_model_that_training_has_harmed_is_saved_as_it_was(text, tmp_path, caplog):
    before, after = run_training(run(text, tmp_path, learning_rate=9.0, epochs=1)).translations
    assert after.accuracy < before.accuracy and "saved with its weights before training" in caplog.text
    texts = [a for a, _ in sample_pairs("es", 20)]
    first, second = (Encoder(model).encode(texts, normalize_embeddings=True) for model in (tmp_path / "m", "p-sp-mini"))
    assert abs((first * second).sum(axis=1) - 1).max() < 1e-5
