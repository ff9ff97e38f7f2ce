"""Towers and inference over a finished encoder: rows, vectors, training, files, command line."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from sentence_transformers import SentenceTransformer
from support.published_use import make_weights

import st_paragram
from st_paragram.cli.main import main
from st_paragram.errors import ModelDirectoryError, SettingsError
from st_paragram.families.muse import task_vectors
from st_paragram.families.muse.sentence_transformers_encoder import EncoderWithTowers
from st_paragram.families.muse.settings import TowersSettings
from st_paragram.families.muse.task_vectors import PairRows, read_rows, vectors_of
from st_paragram.families.muse.towers_training import Curve, _fit, make_towers

QUICK = TowersSettings(epochs=8, batch_size=64, learning_rate=0.02, nli_epochs=6, nli_learning_rate=0.01, held_out=0.2)


@pytest.fixture
def folders(tmp_path, vocabulary, pairs, monkeypatch):
    """An encoder `p-sp`, questions whose answers are their translations, and inference that the first word decides."""
    monkeypatch.chdir(tmp_path)
    torch.manual_seed(0)
    st_paragram.save(st_paragram.pipeline(st_paragram.SentencePieceEmbedding(vocabulary, 16), device="cpu"), "p-sp")
    for folder in ("qa", "nli"):
        (tmp_path / folder).mkdir()
    texts = [text for pair in pairs[:150] for text in pair]
    (tmp_path / "qa" / "en.tsv").write_text("".join(f"{a}\t{b}\n" for a, b in pairs[:300]))
    rows = [("entailment", text, text) for text in texts] + [("contradiction", text, texts[0]) for text in texts[1:]]
    (tmp_path / "nli" / "en.tsv").write_text("".join("\t".join(row) + "\n" for row in rows))
    return {"qa": tmp_path / "qa", "nli": tmp_path / "nli"}


def test_towers_and_classifier_learn_and_sentences_stay(folders, tmp_path, pairs):
    curves = make_towers("p-sp", folders, "out", QUICK)
    for curve in curves:
        assert len(curve.values) == (9 if "answers" in curve.measure else 7)
        assert curve.rows > 10 and curve.values[curve.best] > curve.values[0] + 0.1
    model, encoder = st_paragram.load("out", device="cpu"), st_paragram.load("p-sp", device="cpu")
    texts = [text for pair in pairs[:20] for text in pair]
    wanted = encoder.encode(texts, normalize_embeddings=True)
    np.testing.assert_allclose(model.encode(texts), wanted, atol=1e-6)
    questions, answers = model.encode_query(texts), model.encode_document(texts)
    assert np.abs(questions - wanted).max() > 0.01 and np.abs(answers - questions).max() > 0.01
    np.testing.assert_allclose(model.encode_answers(texts, ["a context"] * len(texts)), answers, atol=1e-6)
    assert model.has_classifier
    assert model.classify(texts[:5], texts[:5]).argmax(1).tolist() == [0] * 5
    plain = SentenceTransformer("out", device="cpu", trust_remote_code=True)
    np.testing.assert_allclose(plain.encode_query(texts), questions, atol=1e-6)
    card = (tmp_path / "out" / "README.md").read_text()
    assert "`p-sp`" in card and "questions and answers and inference" in card and "answers found" in card
    assert not (tmp_path / ".out.work").exists()


def test_the_same_seed_gives_the_same_bytes(folders, tmp_path):
    for name in ("one", "two"):
        make_towers("p-sp", folders, name, QUICK)
    files = sorted(path.relative_to(tmp_path / "one") for path in (tmp_path / "one").rglob("*.safetensors"))
    assert len(files) >= 3
    for file in files:
        assert (tmp_path / "one" / file).read_bytes() == (tmp_path / "two" / file).read_bytes(), file


def test_towers_that_only_get_worse_are_not_kept(folders, tmp_path, pairs):
    (tmp_path / "qa" / "en.tsv").write_text("".join(f"{text}\t{text} ba\n" for text, _ in pairs[:300]))
    settings = TowersSettings(epochs=2, learning_rate=30.0, batch_size=64, held_out=0.2)
    (curve,) = make_towers("p-sp", {"qa": folders["qa"]}, "out", settings)
    assert curve.best == 0 and curve.values[0] > 0.9 > max(curve.values[1:])
    model, texts = st_paragram.load("out", device="cpu"), [text for text, _ in pairs[:5]]
    np.testing.assert_allclose(model.encode_query(texts), model.encode(texts), atol=1e-6)
    assert not model.has_classifier
    with pytest.raises(SettingsError, match="not trained on inference"):
        model.classify(texts, texts)


def test_the_published_network_gets_towers(folders, vocabulary, capsys):
    np.savez_compressed("weights.npz", **make_weights(len(vocabulary)))
    Path("sp.model").write_bytes(vocabulary.content)
    files = ["--weights", "weights.npz", "--sentencepiece", "sp.model"]
    assert main(["import", "use-psp", *files, "--psp", "p-sp", "--output", "both"]) == 0
    options = ["--epochs", "1", "--nli-epochs", "1", "--held-out", "0.2"]
    assert main(["towers", "both", "--qa", "qa", "--nli", "nli", *options, "--output", "out"]) == 0
    said = capsys.readouterr().out
    assert "answers found among those held out (" in said and said.endswith("\nout\n")
    model = st_paragram.load("out", device="cpu")
    assert model.encode_query(["ba ce"]).shape == (1, model.values.dim) and model.has_classifier


def test_texts_are_numbered_once(folders, tmp_path):
    (tmp_path / "qa" / "en.tsv").write_text("who\tshe did\nwhen\tshe did\nwho\tin May\n")
    (rows,) = read_rows({"qa": folders["qa"]}, tmp_path / "texts.txt")
    assert (tmp_path / "texts.txt").read_text() == "who\nshe did\nwhen\nin May\n"
    assert rows.first.tolist() == [0, 2, 0] and rows.second.tolist() == [1, 1, 3] and rows.labels.tolist() == [-1] * 3


@pytest.mark.parametrize(("task", "decides"), [("qa", "second"), ("nli", "first")])
def test_held_out_rows_share_no_deciding_text_with_the_others(task, decides):
    rng = np.random.default_rng(0)
    rows = PairRows(task, "en", *rng.integers(0, 300, (2, 2000)), np.arange(2000))
    train, held = rows.held_out(0.1)
    assert sorted([*train.labels, *held.labels]) == list(range(2000))
    assert 100 < len(held) < 300
    assert not set(getattr(train, decides)) & set(getattr(held, decides))


def test_vectors_are_made_once(folders, tmp_path, monkeypatch):
    texts = tmp_path / "texts.txt"
    texts.write_text("ba ce\nce\n")
    first = vectors_of(texts, tmp_path / "p-sp", tmp_path)
    np.testing.assert_allclose(np.linalg.norm(first.take([0, 1]), axis=1), 1, atol=1e-3)
    monkeypatch.setattr(task_vectors, "embed_files", lambda *_, **__: pytest.fail("embedded again"))
    np.testing.assert_array_equal(vectors_of(texts, tmp_path / "p-sp", tmp_path).take([0, 1]), first.take([0, 1]))


def test_damaged_directories_are_refused(folders, tmp_path):
    make_towers("p-sp", folders, "out", TowersSettings(epochs=1, nli_epochs=1, held_out=0.2))
    configuration = tmp_path / "out" / "st_paragram.json"
    whole = json.loads(configuration.read_text())
    assert whole["encoder"] == "finished" and whole["tasks"] == ["nli", "qa"]
    for change, message in (
        ({"dim": 17}, "not the towers of 17 components"),
        ({"dim": 0}, "a size below 1"),
        ({"tasks": 3}, "tasks"),
    ):
        configuration.write_text(json.dumps(whole | change))
        with pytest.raises(ModelDirectoryError, match=message):
            st_paragram.load("out", device="cpu")
    configuration.write_text(json.dumps(whole))
    (tmp_path / "out" / "heads.safetensors").unlink()
    with pytest.raises(ModelDirectoryError, match=r"heads\.safetensors"):
        st_paragram.load("out", device="cpu")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["p-sp"], "nothing to train on; give --qa, --responses or --nli"),
        (["nowhere", "--qa", "qa"], "no model 'nowhere'"),
        (["p-sp", "--qa", "none"], "none: no such folder with files LANG.tsv"),
        (["p-sp", "--qa", "qa", "--epochs", "0"], "epochs is 0; it must be greater than or equal to 1"),
        (["p-sp", "--qa", "qa", "--output", "p-sp"], "p-sp exists"),
    ],
)
def test_what_cannot_be_done_is_refused_in_one_line(folders, capsys, arguments, message):
    words = ["towers", *arguments] if "--output" in arguments else ["towers", *arguments, "--output", "out"]
    assert main(words) == 1
    assert message in capsys.readouterr().err


def test_towers_are_not_put_on_towers(folders):
    model = EncoderWithTowers.over(st_paragram.load("p-sp", device="cpu"))
    with pytest.raises(SettingsError, match="has towers already"):
        EncoderWithTowers.over(model)


def test_too_few_rows_to_hold_out_are_refused(folders, tmp_path, pairs, capsys):
    (tmp_path / "qa" / "en.tsv").write_text("".join(f"{a}\t{b}\n" for a, b in pairs[:5]))
    assert main(["towers", "p-sp", "--qa", "qa", "--output", "out"]) == 1
    assert "qa: too few rows to hold out 5% of them; give more" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_of_equal_epochs_the_first_is_kept():
    module, scores = torch.nn.Linear(2, 1), iter([0.1, 0.5, 0.5])
    seen = []

    def score():
        seen.append(module.weight.detach().clone())
        return next(scores)

    rows = [PairRows("qa", "en", *np.zeros((3, 32), np.int64))]
    values = _fit(module, rows, 2, 0.1, TowersSettings(), lambda _: module.weight.sum(), score)
    assert Curve("", 1, values).best == 1
    torch.testing.assert_close(module.weight.detach(), seen[1])
    assert not torch.equal(seen[1], seen[2])


def test_a_plain_sentence_transformer_gets_towers(folders):
    st_paragram.save(SentenceTransformer("p-sp", device="cpu"), "plain")  # a StaticEmbedding
    make_towers("plain", {"qa": folders["qa"]}, "out", QUICK)
    assert st_paragram.load("out", device="cpu").encode_query(["ba ce"]).shape == (1, 16)


def test_towers_over_an_averaging_model_of_an_earlier_version_open(folders):
    """Its first module had the tokenizer's options among its own."""
    make_towers("p-sp", {"qa": folders["qa"]}, "out", QUICK)
    expected = st_paragram.load("out", device="cpu").encode_query(["ba ce"])
    path = Path("out/token_embedding_config.json")
    config = json.loads(path.read_text())
    options = config.pop("tokenizer_options")
    assert config.pop("tokenizer_kind") == "sentencepiece"
    Path("out/sentencepiece_embedding_config.json").write_text(json.dumps(config | options))
    path.unlink()
    np.testing.assert_array_equal(st_paragram.load("out", device="cpu").encode_query(["ba ce"]), expected)
