"""How many texts a model encodes at a time."""

from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import BoW

import st_paragram
from st_paragram.core.encoding.embed import BATCH_SIZE
from st_paragram.learning.models.sentence_transformers_encoder import NETWORK_BATCH_SIZE, batch_size


def test_means_take_many_texts_in_either_reader(tmp_path):
    model = st_paragram.load("p-sp-mini")
    model.save(str(tmp_path / "model"))
    assert batch_size(model) == batch_size(SentenceTransformer(str(tmp_path / "model"))) == BATCH_SIZE


def test_other_models_take_fewer():
    assert batch_size(SentenceTransformer(modules=[BoW(["a"], {})])) == NETWORK_BATCH_SIZE
