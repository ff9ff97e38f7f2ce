"""Training that continues from a model: its vocabulary, its dimension, and never a worse model."""

from __future__ import annotations

import os
import shutil

import numpy as np
import pytest
from huggingface_hub import ModelCard
from sentence_transformers.sentence_transformer.evaluation import TranslationEvaluator

import st_paragram
from st_paragram import Encoder, TrainingRun, run_training, sample_pairs
from st_paragram.core.files import write_text
from st_paragram.core.model_directory.record import read_training_record
from st_paragram.errors import SettingsError
from st_paragram.learning.training.checkpoints import (
    COMPLETE,
    complete_checkpoints,
    create_folder,
    remove_checkpoints,
    remove_old_checkpoints,
)
from st_paragram.runs.development import TranslationHits, is_worse


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
    asked = TrainingRun(
        "es", tmp_path / "m", [text], overrides={"init": "p-sp-mini"}, vocab_size=500
    )
    assert asked.vocabulary is None


def test_a_harmful_training_is_discarded_and_the_record_has_only_true_scores(
    text, tmp_path, caplog
):
    described = run(text, tmp_path, learning_rate=9.0, epochs=1)
    record = run_training(described)
    assert [score.model for score in (*record.scores, *record.translations)] == [
        "before training"
    ] * 2
    assert record.discarded.startswith("translations found fell from ")
    saved = read_training_record(tmp_path / "m")
    assert list(saved.translations) == record.translations and saved.discarded == record.discarded
    card = (tmp_path / "m" / "README.md").read_text(encoding="utf-8")
    assert (
        f"The training was discarded: {record.discarded}." in card and "after training" not in card
    )
    values = [entry.metric_value for entry in ModelCard(card).data.eval_results]
    assert values == [round(100 * record.translations[0].accuracy, 2)]
    (kept,) = complete_checkpoints(described.checkpoints)
    assert (
        f"the training was discarded, and {tmp_path / 'm'} has the weights before training"
        in caplog.text
    )
    assert f"checkpoints kept: {kept}" in caplog.text
    texts = [a for a, _ in sample_pairs("es", 20)]
    first, second = (
        Encoder(model).encode(texts, normalize_embeddings=True)
        for model in (tmp_path / "m", "p-sp-mini")
    )
    assert abs((first * second).sum(axis=1) - 1).max() < 1e-5


def test_a_fall_within_the_confidence_interval_is_not_harm():
    before = np.ones(1000)
    for lost, share, harmful in (
        (1, 1, False),
        (5, 1, False),
        (6, 1, True),
        (7, 0.5, False),
        (8, 0.5, True),
    ):
        after = before.copy()
        after[:lost] -= share
        assert is_worse(before, after) is harmful, (lost, share)
        assert not is_worse(after, before)
    assert not is_worse(before, before)
    mixed = before.copy()
    mixed[:40] = 0  # 40 pairs lost, 30 others found
    other = before.copy()
    other[40:70] = 0
    assert not is_worse(other, mixed)
    other[40:60] = 1
    assert is_worse(other, mixed)


def test_the_hits_of_pairs_have_the_mean_of_sentence_transformers():
    pairs = list(sample_pairs("es", 200))
    pairs[5] = pairs[3]  # equal texts are each other's translation
    first, second = ([pair[side] for pair in pairs] for side in (0, 1))
    model = st_paragram.load("p-sp-mini", device="cpu", truncate_dim=8)
    ours = TranslationHits(first, second, name="held-out")
    values = ours(model)
    assert values == TranslationEvaluator(first, second, name="held-out")(model)
    assert ours.hits.mean() == pytest.approx(values["held-out_mean_accuracy"]) and set(
        ours.hits
    ) == {0, 0.5, 1}


def test_checkpoints_of_others_survive(text, tmp_path):
    described = run(text, tmp_path, epochs=0.2)
    folder = described.checkpoints
    for name in ("notes.txt", "checkpoint-500/model.safetensors"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("mine")
        with pytest.raises(
            SettingsError,
            match=r"m\.checkpoints exists, but a training run has not created it; rename",
        ):
            run_training(described)
    shutil.move(folder, tmp_path / "mine")
    folder.write_text("a file")
    with pytest.raises(
        SettingsError, match=r"m\.checkpoints is a file, but a folder for checkpoints is expected"
    ):
        run_training(described)
    folder.unlink()
    folder.mkdir()  # an empty folder is used, and stays
    run_training(described)
    assert list(folder.iterdir()) == [] and len(list((tmp_path / "mine").rglob("*"))) == 3


def test_only_our_checkpoints_are_rotated_and_removed(tmp_path):
    folder = tmp_path / "m.checkpoints"
    create_folder(folder)
    for step in (9, 10, 11):
        (folder / f"checkpoint-{step}").mkdir()
        write_text(folder / f"checkpoint-{step}" / COMPLETE, "{}")
        os.utime(folder / f"checkpoint-{step}" / COMPLETE, ns=(step, step))
    unfinished = folder / "checkpoint-12"
    unfinished.mkdir()
    remove_old_checkpoints(folder, 2, str(folder / "checkpoint-9"))
    assert [path.name for path in complete_checkpoints(folder)] == ["checkpoint-9", "checkpoint-11"]
    (folder / "notes.txt").write_text("mine")
    remove_checkpoints(folder)
    assert [path.name for path in folder.iterdir()] == ["notes.txt"]
    write_text(folder / "checkpoint-3" / COMPLETE, "{}")  # a folder that a run has not created
    unfinished.mkdir()
    remove_checkpoints(folder)
    assert sorted(path.name for path in folder.iterdir()) == ["checkpoint-12", "notes.txt"]
