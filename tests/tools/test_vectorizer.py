"""The step of scikit-learn's pipelines: the Encoder's vectors, and what scikit-learn asks of a transformer."""

from __future__ import annotations

import pickle
import shutil

import numpy as np
import pytest
from sklearn.compose import ColumnTransformer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from support.without import run_without

from st_paragram import Encoder, ParagramVectorizer
from st_paragram.core.encoding.find import shipped_folder
from st_paragram.errors import ModelDirectoryError, SettingsError

TEXTS = ["The soup is hot.", "Bread and cheese.", "Rice with beans.", "A fast train.", "The bus is late.", "My flight."]
LABELS = ["food"] * 3 + ["travel"] * 3


@pytest.fixture(scope="module")
def expected():
    return Encoder("p-sp-mini").encode(TEXTS)


def test_the_vectors_are_the_encoders(expected):
    np.testing.assert_array_equal(ParagramVectorizer().fit(TEXTS).transform(TEXTS), expected)
    np.testing.assert_array_equal(ParagramVectorizer("p-sp-mini").fit_transform(iter(TEXTS)), expected)
    found = ParagramVectorizer(truncate_dim=20, normalize_embeddings=True, batch_size=2).fit_transform(TEXTS)
    np.testing.assert_array_equal(found, Encoder("p-sp-mini", truncate_dim=20).encode(TEXTS, normalize_embeddings=True))


def test_a_pipeline_learns_is_pickled_and_needs_no_folder_then(tmp_path):
    folder = shutil.copytree(shipped_folder(), tmp_path / "model")
    classifier = make_pipeline(ParagramVectorizer(folder), LogisticRegression()).fit(TEXTS, LABELS)
    assert classifier.score(TEXTS, LABELS) == 1
    pickled = pickle.dumps(classifier)
    shutil.rmtree(folder)
    assert pickle.loads(pickled).predict(["Sopa y pan.", "¿Dónde está el autobús?"]).tolist() == ["food", "travel"]


def test_data_frames_and_columns_of_a_table(expected):
    pandas = pytest.importorskip("pandas")
    frame = ParagramVectorizer().set_output(transform="pandas").fit_transform(pandas.Series(TEXTS))
    assert frame.columns[-1] == "paragramvectorizer255"
    np.testing.assert_array_equal(frame.to_numpy(), expected)
    table = pandas.DataFrame({"text": TEXTS, "number": range(6)})
    columns = ColumnTransformer([("text", ParagramVectorizer(), "text"), ("number", "passthrough", ["number"])])
    np.testing.assert_array_equal(columns.fit_transform(table)[:, :-1], expected)
    with pytest.raises(SettingsError, match=r"shape \(6, 2\); give one column"):
        ParagramVectorizer().fit_transform(table)


@pytest.mark.parametrize(
    ("settings", "error", "message"),
    [
        ({"model": "nowhere/at-all-x"}, ModelDirectoryError, "nowhere"),
        ({"prompt_name": "x"}, SettingsError, "no prompt 'x'"),
        ({"batch_size": 0}, SettingsError, "batch_size is 0"),
    ],
)
def test_wrong_settings_are_refused_when_the_model_is_opened(settings, error, message):
    with pytest.raises(error, match=message):
        ParagramVectorizer(**settings).fit(TEXTS)


def test_what_is_not_several_texts_is_refused():
    vectorizer = ParagramVectorizer().fit()
    with pytest.raises(SettingsError, match="give a list of texts"):
        vectorizer.transform("one text")
    with pytest.raises(SettingsError, match=r"text 1 of 2 \(counted from 0\) is None"):
        vectorizer.transform(["a", None])


def test_without_scikit_learn_the_error_says_what_to_install():
    done = run_without("from st_paragram import ParagramVectorizer", packages=("sklearn",))
    assert "MissingExtraError: ParagramVectorizer needs sklearn" in done.stderr
    assert done.stderr.strip().endswith('pip install "st_paragram[sklearn]"')


def test_it_needs_no_torch():
    code = "from st_paragram import ParagramVectorizer as V; print(V().fit_transform(['a', 'b']).shape)"
    done = run_without(code, packages=("torch", "sentence_transformers", "transformers"))
    assert done.stdout.strip() == "(2, 256)", done.stderr
