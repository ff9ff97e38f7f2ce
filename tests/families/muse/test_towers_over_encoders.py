"""Towers and inference over a finished encoder: rows, vectors, training, files, command line."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from sentence_transformers import SentenceTransformer
from support.published_use import make_weights

import st_paragram
from st_paragram.cli.main import main
from st_paragram.errors import ModelDirectoryError, ParagramError, SettingsError
from st_paragram.families.muse.pair_rows import PairRows, read_rows
from st_paragram.families.muse.sentence_transformers_encoder import EncoderWithTowers
from st_paragram.families.muse.settings import TowersSettings
from st_paragram.families.muse.towers_training import make_towers

QUICK = TowersSettings(
    epochs=8, batch_size=64, learning_rate=0.02, nli_epochs=6, nli_learning_rate=0.01, held_out=0.2
)


@pytest.fixture
def folders(tmp_path, vocabulary, pairs, monkeypatch):
    """An encoder `p-sp`, questions whose answers are their translations, and inference that the
    first word decides.
    """
    monkeypatch.chdir(tmp_path)
    torch.manual_seed(0)
    st_paragram.save(
        st_paragram.pipeline(st_paragram.SentencePieceEmbedding(vocabulary, 16), device="cpu"),
        "p-sp",
    )
    for folder in ("qa", "nli"):
        (tmp_path / folder).mkdir()
    texts = [text for pair in pairs[:150] for text in pair]
    (tmp_path / "qa" / "en.tsv").write_text("".join(f"{a}\t{b}\n" for a, b in pairs[:300]))
    rows = [("entailment", text, text) for text in texts] + [
        ("contradiction", text, texts[0]) for text in texts[1:]
    ]
    (tmp_path / "nli" / "en.tsv").write_text("".join("\t".join(row) + "\n" for row in rows))
    return {"qa": tmp_path / "qa", "nli": tmp_path / "nli"}


def test_towers_and_classifier_learn_and_sentences_stay(folders, tmp_path, pairs):
    curves = make_towers("p-sp", folders, "out", QUICK)
    for curve in curves:
        assert len(curve.values) == (9 if "answers" in curve.measure else 7)
        assert curve.rows > 10 and curve.values[curve.best] > curve.values[0] + 0.1
    model, encoder = st_paragram.load("out", device="cpu"), st_paragram.load("p-sp", device="cpu")
    assert isinstance(model, EncoderWithTowers) and model.tasks == ("nli", "qa")
    with pytest.raises(SettingsError, match="already has towers"):
        EncoderWithTowers.over(model)
    texts = [text for pair in pairs[:20] for text in pair]
    wanted = encoder.encode(texts, normalize_embeddings=True)
    np.testing.assert_allclose(model.encode(texts), wanted, atol=1e-6)
    questions, answers = model.encode_query(texts), model.encode_document(texts)
    assert np.abs(questions - wanted).max() > 0.01 and np.abs(answers - questions).max() > 0.01
    np.testing.assert_allclose(
        model.encode_answers(texts, ["a context"] * len(texts)), answers, atol=1e-6
    )
    assert model.classify(texts[:5], texts[:5]).argmax(1).tolist() == [0] * 5
    plain = SentenceTransformer("out", device="cpu", trust_remote_code=True)
    np.testing.assert_allclose(plain.encode_query(texts), questions, atol=1e-6)
    card = (tmp_path / "out" / "README.md").read_text()
    assert (
        "`p-sp`" in card
        and "questions and answers and inference" in card
        and "answers found" in card
    )
    assert not (tmp_path / ".out.work").exists()
    make_towers("p-sp", folders, "again", QUICK)  # the same seed, the same bytes
    files = sorted(path.relative_to("out") for path in Path("out").rglob("*.safetensors"))
    assert len(files) >= 3 and all(
        Path("out", file).read_bytes() == Path("again", file).read_bytes() for file in files
    )
    (tmp_path / "out" / "heads.safetensors").unlink()
    with pytest.raises(ModelDirectoryError, match=r"heads\.safetensors"):
        st_paragram.load("out", device="cpu")


def test_a_folder_of_the_user_does_not_serve_as_work_folder(folders, tmp_path):
    (tmp_path / ".out.work").mkdir()
    (tmp_path / ".out.work" / "precious").touch()
    with pytest.raises(
        ParagramError, match=r"\.out\.work exists, and this version of st_paragram did not make it"
    ):
        make_towers("p-sp", folders, "out", QUICK)
    assert [path.name for path in (tmp_path / ".out.work").iterdir()] == ["precious"]


def test_towers_that_only_get_worse_are_not_kept(folders, tmp_path, pairs):
    (tmp_path / "qa" / "en.tsv").write_text(
        "".join(f"{text}\t{text} ba\n" for text, _ in pairs[:300])
    )
    settings = TowersSettings(epochs=2, learning_rate=30.0, batch_size=64, held_out=0.2)
    (curve,) = make_towers("p-sp", {"qa": folders["qa"]}, "out", settings)
    assert curve.best == 0 and curve.values[0] > 0.9 > max(curve.values[1:])
    model, texts = st_paragram.load("out", device="cpu"), [text for text, _ in pairs[:5]]
    np.testing.assert_allclose(model.encode_query(texts), model.encode(texts), atol=1e-6)
    assert not model.has_classifier
    with pytest.raises(SettingsError, match="not trained on inference"):
        model.classify(texts, texts)


def test_other_encoders_get_towers(folders, vocabulary, capsys):
    """The published network, and a plain StaticEmbedding."""
    np.savez_compressed("weights.npz", **make_weights(len(vocabulary)))
    Path("sp.model").write_bytes(vocabulary.content)
    files = ["--weights", "weights.npz", "--sentencepiece", "sp.model"]
    assert main(["import", "use-psp", *files, "--psp", "p-sp", "--output", "both"]) == 0
    st_paragram.save(SentenceTransformer("p-sp", device="cpu"), "plain")
    options = ["--epochs", "1", "--nli-epochs", "1", "--held-out", "0.2"]
    for name in ("both", "plain"):
        assert (
            main(["towers", name, "--qa", "qa", "--nli", "nli", *options, "--output", f"{name}-qa"])
            == 0
        )
        said = capsys.readouterr().out
        assert "answers found in held-out rows (" in said and said.endswith(f"\n{name}-qa\n")
        model, dim = (
            st_paragram.load(f"{name}-qa", device="cpu"),
            st_paragram.load(name).get_embedding_dimension(),
        )
        assert model.encode_query(["ba ce"]).shape == (1, dim) and model.has_classifier


@pytest.mark.parametrize(("task", "decides"), [("qa", "second"), ("nli", "first")])
def test_held_out_rows_share_no_deciding_text_with_the_others(task, decides):
    rng = np.random.default_rng(0)
    rows = PairRows(task, "en", *rng.integers(0, 300, (2, 2000)), np.arange(2000))
    train, held = rows.held_out(0.1)
    assert sorted([*train.labels, *held.labels]) == list(range(2000))
    assert 100 < len(held) < 300
    assert not set(getattr(train, decides)) & set(getattr(held, decides))


def test_too_few_rows_are_refused_in_one_line(folders, capsys):
    Path("qa/en.tsv").write_text("ba\tce\nda\tdi\n")
    assert main(["towers", "p-sp", "--qa", "qa", "--output", "out"]) == 1
    assert "qa: too few rows to hold out 5% of them; give more" in capsys.readouterr().err
    assert not Path("out").exists()


def test_the_texts_of_an_interrupted_run_stay_as_they_are(folders, tmp_path):
    files = [("qa", "en", folders["qa"] / "en.tsv")]
    texts = tmp_path / "texts.txt"
    (first,) = read_rows(files, texts)
    written = texts.stat().st_mtime_ns, texts.read_bytes()
    (again,) = read_rows(files, texts)
    assert (texts.stat().st_mtime_ns, texts.read_bytes()) == written and written[1]
    assert np.array_equal(again.first, first.first) and np.array_equal(again.second, first.second)
