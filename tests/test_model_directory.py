import json
import subprocess
import sys

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import Normalize

import st_paragram
from st_paragram import model_directory
from st_paragram.data.vocabulary import Vocabulary
from st_paragram.errors import ModelDirectoryError
from st_paragram.modules.sentencepiece_embedding import SentencePieceEmbedding


@pytest.fixture
def model(vocabulary):
    return model_directory.pipeline(SentencePieceEmbedding(vocabulary, 12, dropout=0.1), device="cpu")


@pytest.fixture
def saved(model, tmp_path):
    return model_directory.save(model, tmp_path / "p-sp-xx", card="# p-sp-xx\n")


def cosines(a, b):
    return (a * b).sum(1) / np.linalg.norm(a, axis=1) / np.linalg.norm(b, axis=1)


def test_native_reader_gives_back_the_model(model, saved, pairs):
    loaded = st_paragram.load(saved, device="cpu")
    texts = [*(text for pair in pairs[:40] for text in pair), "", "Ω", "ba Ω ce"]
    np.testing.assert_array_equal(loaded.encode(texts), model.encode(texts))
    assert loaded[0].get_config_dict() == model[0].get_config_dict()
    assert (saved / "README.md").read_text() == "# p-sp-xx\n"


def test_stock_reader_gives_the_same_directions(model, saved, pairs):
    stock = SentenceTransformer(str(saved), device="cpu")
    assert [type(module).__name__ for module in stock] == ["StaticEmbedding"]
    texts = [*(text for pair in pairs[:200] for text in pair), "BA Ce", "ba Ω ce", " ba \t ce  "]
    assert cosines(stock.encode(texts), model.encode(texts)).min() > 0.999999
    assert np.allclose(stock.encode(pairs[0][0]), model.encode(pairs[0][0]), atol=1e-6)


def test_stock_reader_needs_no_plugin(saved, tmp_path):
    """A fresh interpreter that cannot import st_paragram loads the directory by its bare name."""
    script = (
        "import sys; sys.modules['st_paragram'] = None\n"
        "from sentence_transformers import SentenceTransformer as S\n"
        "print(S('p-sp-xx', device='cpu').encode(['ba ce']).shape)"
    )
    run = subprocess.run([sys.executable, "-c", script], cwd=tmp_path, capture_output=True, text=True)
    assert run.stdout.strip() == "(1, 12)", run.stderr


def test_the_unknown_row_is_zero_for_the_stock_reader_and_kept_for_the_plugin(model, saved, vocabulary):
    tensors = load_file(saved / "model.safetensors")
    row = model[0].embedding.weight[vocabulary.unknown_id]
    assert (tensors["embedding.weight"][vocabulary.unknown_id] == 0).all()
    assert torch.equal(tensors["unknown_embedding"], row.detach())
    np.testing.assert_allclose(st_paragram.load(saved).encode(""), row.detach().numpy(), rtol=1e-6)


def test_saving_does_not_change_the_model(model, tmp_path):
    before = model[0].embedding.weight.detach().clone()
    model_directory.save(model, tmp_path / "x")
    assert torch.equal(model[0].embedding.weight, before)


def test_an_existing_directory_is_not_overwritten_unless_asked(model, saved):
    with pytest.raises(ModelDirectoryError, match="exists"):
        model_directory.save(model, saved)
    with torch.no_grad():
        model[0].embedding.weight.mul_(2)
    model_directory.save(model, saved, overwrite=True)
    assert torch.equal(st_paragram.load(saved)[0].embedding.weight, model[0].embedding.weight)
    assert sorted(path.name for path in saved.parent.iterdir()) == ["p-sp-xx"]


def test_a_foreign_directory_is_never_overwritten(model, tmp_path):
    (tmp_path / "thesis").mkdir()
    (tmp_path / "thesis" / "chapter1.txt").write_text("years of work")
    with pytest.raises(ModelDirectoryError, match="no model directory"):
        model_directory.save(model, tmp_path / "thesis", overwrite=True)
    assert (tmp_path / "thesis" / "chapter1.txt").exists()


def test_other_directories_are_left_alone(model, saved, tmp_path):
    for name in ("p-sp-xx.old", "p-sp-xx.part"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "mine.txt").write_text("keep")
    model_directory.save(model, saved, overwrite=True)
    assert all((tmp_path / name / "mine.txt").exists() for name in ("p-sp-xx.old", "p-sp-xx.part"))


@pytest.mark.parametrize("place", ["/", "{}/file/x"])
def test_impossible_places_are_refused(model, tmp_path, place):
    (tmp_path / "file").touch()
    with pytest.raises(ModelDirectoryError, match=r"no directory can be made|exists"):
        model_directory.check_free(place.format(tmp_path))


def test_unconvertible_vocabularies_are_refused_early(pairs, tmp_path):
    import io

    import sentencepiece

    bpe = io.BytesIO()
    texts = iter([text for pair in pairs for text in pair])
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=texts, model_writer=bpe, model_type="bpe", vocab_size=100, minloglevel=2
    )
    model = model_directory.pipeline(SentencePieceEmbedding(Vocabulary(bpe.getvalue()), 4), device="cpu")
    with pytest.raises(ModelDirectoryError, match="BPE"):
        model_directory.check_savable(model)


def test_the_only_model_here_is_the_default(saved, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert model_directory.only_model_here() == "p-sp-xx"
    saved.rename(tmp_path / "other")
    with pytest.raises(ModelDirectoryError, match="--model"):
        model_directory.only_model_here()


def test_a_failing_save_leaves_nothing_behind(model, tmp_path, monkeypatch):
    def fail(*args, **kwargs):
        raise OSError("no space left on device")

    monkeypatch.setattr(model_directory, "save_file", fail)
    with pytest.raises(OSError, match="no space"):
        model_directory.save(model, tmp_path / "x")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["st_paragram.json", "sentencepiece.model", "model.safetensors"])
def test_a_missing_file_is_named(saved, name):
    (saved / name).unlink()
    with pytest.raises(ModelDirectoryError, match=f"{name} is missing") as caught:
        st_paragram.load(saved)
    assert str(saved) in str(caught.value) and "\n" not in str(caught.value)


def _config(saved, **changes):
    path = saved / "st_paragram.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda s: (s / "model.safetensors").write_bytes(b"x" * 100), "not the weights"),
        (
            lambda s: (s / "model.safetensors").write_bytes((s / "model.safetensors").read_bytes()[:-9]),
            "not the weights",
        ),
        (lambda s: (s / "sentencepiece.model").write_bytes(b"x"), "not a sentencepiece model"),
        (lambda s: (s / "st_paragram.json").write_text("{"), "not a configuration"),
        (lambda s: _config(s, surprise=1), "not a configuration"),
        (lambda s: _config(s, format_version=9), "format version 9"),
        (lambda s: _config(s, vocabulary_size=7), "st_paragram.json says 7"),
        (lambda s: _config(s, embedding_dimension=7), "expected"),
        (lambda s: _config(s, segmentation="scissors"), "scissors"),
        (lambda s: _config(s, embedding_dimension="12"), "embedding_dimension is '12'"),
        (lambda s: _config(s, lower_case="no"), "lower_case is 'no'"),
        (lambda s: _config(s, dropout=None), "dropout is None"),
    ],
)
def test_damage_is_named(saved, damage, message):
    damage(saved)
    with pytest.raises(ModelDirectoryError, match=message) as caught:
        st_paragram.load(saved)
    assert "\n" not in str(caught.value)


def test_models_are_found_by_name(saved, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert model_directory.find("p-sp-xx").samefile(saved)
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    monkeypatch.setenv("ST_PARAGRAM_HOME", str(tmp_path))
    assert model_directory.find("p-sp-xx") == saved
    with pytest.raises(ModelDirectoryError) as caught:
        model_directory.find("p-sp-yy")
    assert str(tmp_path / "p-sp-yy") in str(caught.value) and "cache" in str(caught.value)


def test_hub_failure_is_one_line(monkeypatch):
    def offline(*args, **kwargs):
        raise OSError("offline\nwith a long explanation")

    monkeypatch.setattr("huggingface_hub.snapshot_download", offline)
    with pytest.raises(ModelDirectoryError, match=r"on the hub \(offline\)$"):
        model_directory.find("somebody/p-sp-xx")


def test_other_pipelines_are_refused(model, tmp_path):
    model.append(Normalize())
    with pytest.raises(ModelDirectoryError, match="Normalize"):
        model_directory.save(model, tmp_path / "x")


def test_segmentation_travels_with_the_model(vocabulary, tmp_path):
    pytest.importorskip("jieba")
    segmenting = Vocabulary(vocabulary.model_proto, segmentation="jieba")
    model = model_directory.pipeline(SentencePieceEmbedding(segmenting, 4), device="cpu")
    model_directory.save(model, tmp_path / "zh")
    assert st_paragram.load(tmp_path / "zh")[0].segmentation == "jieba"


def test_the_fingerprint_tells_models_apart(model, saved, tmp_path):
    with torch.no_grad():
        model[0].embedding.weight[3, 3] += 1
    other = model_directory.save(model, tmp_path / "other")
    assert model_directory.fingerprint(saved) == model_directory.fingerprint(saved)
    assert model_directory.fingerprint(saved) != model_directory.fingerprint(other)
