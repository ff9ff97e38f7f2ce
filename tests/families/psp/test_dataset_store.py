"""`MegaBatchTrainer` on data sets of two columns of texts."""

import numpy as np
import pytest
import torch
from datasets import Dataset, DatasetDict, Features, Translation
from sentence_transformers import SentenceTransformer
from support.stock import lstm_pipeline

import st_paragram
from st_paragram import (
    MeanPool,
    MegaBatchTrainer,
    MegaBatchTrainingArguments,
    SentencePieceEmbedding,
)
from st_paragram.errors import SettingsError
from st_paragram.families.psp import dataset_store
from st_paragram.families.psp.dataset_store import store_of


@pytest.fixture
def data(pairs):
    return Dataset.from_dict({"english": [a for a, _ in pairs], "other": [b for _, b in pairs]})


def new_model(vocabulary):
    torch.manual_seed(0)
    modules = [SentencePieceEmbedding(vocabulary, 16), MeanPool(16)]
    return SentenceTransformer(modules=modules, device="cpu")


def arguments(folder, **settings):
    most = {
        "max_steps": 30,
        "per_device_train_batch_size": 16,
        "use_cpu": True,
        "save_strategy": "no",
    }
    return MegaBatchTrainingArguments(str(folder), **most | settings)


def test_a_data_set_trains_as_the_store_of_its_rows_does(tmp_path, data, store, vocabulary):
    tables = []
    for given in (
        data,
        DatasetDict(a=data.select(range(300)), b=data.select(range(300, len(data)))),
        store,
    ):
        model = new_model(vocabulary)
        MegaBatchTrainer(model, arguments(tmp_path), train_dataset=given).train()
        tables.append(model[0].embedding.weight.detach())
    assert torch.equal(tables[0], tables[2]) and torch.equal(tables[1], tables[2])


def test_from_modules_to_a_loaded_model(tmp_path, data, vocabulary):
    model = new_model(vocabulary)
    trainer = MegaBatchTrainer(model=model, args=arguments(tmp_path / "run"), train_dataset=data)
    trainer.train()
    trainer.save_model(str(tmp_path / "model"))
    for loaded in (
        SentenceTransformer(str(tmp_path / "model"), device="cpu", trust_remote_code=True),
        st_paragram.load(tmp_path / "model", device="cpu"),
    ):
        np.testing.assert_allclose(
            loaded.encode(data["other"][:9]), model.encode(data["other"][:9]), atol=1e-6
        )


def test_rows_are_tokenized_once(data, vocabulary, monkeypatch):
    first = store_of(data, vocabulary)
    assert list(first.texts("b", np.arange(3))) == data["other"][:3]
    monkeypatch.setattr(dataset_store, "PairStoreWriter", None)
    assert store_of(data, vocabulary).path == first.path
    with pytest.raises(TypeError):  # other rows, which would have to be tokenized
        store_of(data.select(range(9)), vocabulary)


@pytest.mark.parametrize("languages", [("en", "es"), ("es", "en")])
def test_a_column_of_translations_trains_as_two_columns(vocabulary, languages):
    rows = [
        {"translation": dict(zip(languages, pair, strict=True))}
        for pair in (("a b", "c"), ("d", "e f"))
    ]
    features = Features({"translation": Translation(languages)})
    for given in (Dataset.from_list(rows), Dataset.from_list(rows, features=features)):
        store = store_of(given, vocabulary)
        sides = [list(store.texts(side, np.arange(2))) for side in ("a", "b")]
        assert sorted(sides) == [["a b", "d"], ["c", "e f"]]
    with pytest.raises(
        SettingsError, match=r"has columns translation.en \(string\), .*translation.fr \(string\)"
    ):
        store_of(
            Dataset.from_list([{"translation": {"en": "a", "es": "b", "fr": "c"}}]), vocabulary
        )


def test_what_is_not_two_columns_of_texts_is_refused(data, vocabulary):
    labelled = data.add_column("score", [1.0] * len(data))
    with pytest.raises(
        SettingsError,
        match=r"has columns english \(string\), other \(string\), score \(float64\); choose two",
    ):
        store_of(labelled, vocabulary)
    with pytest.raises(
        SettingsError, match="train_dataset is list; give a Dataset, a DatasetDict or a PairStore"
    ):
        store_of([("a", "b")], vocabulary)
    with pytest.raises(SettingsError, match="row 1 has no b; remove such rows"):
        store_of(Dataset.from_dict({"a": ["x", "y"], "b": ["z", None]}), vocabulary)


def test_a_model_that_it_cannot_train_is_refused_in_one_line(tmp_path, data, pairs):
    with pytest.raises(
        SettingsError,
        match=(
            "models that begin with TokenEmbedding, not WordEmbeddings; use MarginHardNegativeLoss"
        ),
    ):
        MegaBatchTrainer(
            lstm_pipeline([text for pair in pairs for text in pair]), arguments(tmp_path), data
        )
