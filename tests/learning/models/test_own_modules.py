"""Model directories of pipelines with modules of this package that are no averaging model."""

import json

import numpy as np
import pytest
import torch
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import Pooling
from torch import nn

import st_paragram
from st_paragram.errors import ModelDirectoryError, SettingsError
from st_paragram.learning.models import directory as model_directory
from st_paragram.learning.models.architectures import architecture_of
from st_paragram.learning.modules.token_embedding import SentencePieceEmbedding


def max_pipeline(vocabulary, dimension=12):
    modules = [SentencePieceEmbedding(vocabulary, dimension), Pooling(dimension, pooling_mode="max")]
    return SentenceTransformer(modules=modules, device="cpu", similarity_fn_name="dot", prompts={"query": "ba "})


@pytest.fixture
def model(vocabulary):
    return max_pipeline(vocabulary)


@pytest.fixture
def saved(model, tmp_path):
    return model_directory.save(model, tmp_path / "max")


def test_the_pipeline_comes_back_with_its_settings(model, saved, pairs):
    texts = [*(a for a, _ in pairs[:40]), "", "Ω"]
    loaded = st_paragram.load(saved, device="cpu")
    assert [type(module).__name__ for module in loaded] == ["SentencePieceEmbedding", "Pooling"]
    np.testing.assert_array_equal(loaded.encode(texts), model.encode(texts))
    assert (loaded.similarity_fn_name, loaded.prompts["query"]) == ("dot", "ba ")
    assert json.loads((saved / "st_paragram.json").read_text()) == {"format_version": 3, "architecture": "modules"}
    short = st_paragram.load(saved, device="cpu", truncate_dim=3)
    np.testing.assert_array_equal(short.encode(texts), model.encode(texts)[:, :3])


def test_weights_fill_a_pipeline_of_the_same_shape_and_no_other(model, saved, vocabulary):
    torch.manual_seed(1)
    other = max_pipeline(vocabulary)
    assert not np.array_equal(other.encode("ba ce"), model.encode("ba ce"))
    architecture_of(other).read_weights(saved, other)
    np.testing.assert_array_equal(other.encode("ba ce"), model.encode("ba ce"))
    with pytest.raises(ModelDirectoryError, match="the weights of another pipeline"):
        architecture_of(other).read_weights(saved, max_pipeline(vocabulary, 13))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"type": "os.path.join"}, "names os.path.join, not a module of st_paragram or sentence-transformers"),
        ({"type": "st_paragram_evil.Module"}, "names st_paragram_evil.Module, not a module of"),
        ({"type": "st_paragram.core.files.write_text"}, "which is not a module of a pipeline"),
        ({"type": "st_paragram.learning.modules.nothing.Nothing"}, "No module named"),
        ({"path": "../elsewhere"}, "names the folder ../elsewhere, which is outside the model's"),
        ({"path": "/etc"}, "which is outside the model's"),
        ({"path": "nowhere"}, "its modules cannot be read"),
    ],
)
def test_what_a_folder_may_not_name(saved, change, message):
    entries = json.loads((saved / "modules.json").read_text())
    entries[1] |= change
    (saved / "modules.json").write_text(json.dumps(entries))
    with pytest.raises(ModelDirectoryError, match=message):
        st_paragram.load(saved, device="cpu")


@pytest.mark.parametrize("content", ["{", "[3]", "[{}]", "5"])
def test_a_damaged_list_of_modules_is_refused_by_name(saved, content):
    (saved / "modules.json").write_text(content)
    with pytest.raises(ModelDirectoryError, match="its modules cannot be read"):
        st_paragram.load(saved, device="cpu")


def test_modules_of_others_and_smaller_types_are_refused(model, vocabulary, tmp_path):
    class Mine(nn.Identity):
        pass

    foreign = SentenceTransformer(modules=[*max_pipeline(vocabulary), Mine()], device="cpu")
    with pytest.raises(ModelDirectoryError, match="Mine is not a module of st_paragram or sentence-transformers"):
        model_directory.save(foreign, tmp_path / "foreign")
    with pytest.raises(SettingsError, match="only averaging models"):
        model_directory.save(model, tmp_path / "half", dtype="float16")
    assert not list(tmp_path.iterdir())


def test_saved_pipelines_name_public_classes(model, saved, pairs):
    entries = json.loads((saved / "modules.json").read_text())
    assert entries[0]["type"] == "st_paragram.SentencePieceEmbedding"
    texts = [a for a, _ in pairs[:5]]
    for opened in (
        st_paragram.load(saved, device="cpu"),
        SentenceTransformer(str(saved), device="cpu", trust_remote_code=True),
    ):
        np.testing.assert_array_equal(opened.encode(texts), model.encode(texts))
