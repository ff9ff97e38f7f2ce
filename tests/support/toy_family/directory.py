"""The files of a toy: an averaging model's, and its own `st_paragram.json`."""

from sentence_transformers import SentenceTransformer

from st_paragram.core.encoding.directory import Configuration, write_configuration
from st_paragram.learning.models import own_modules, stock
from st_paragram.learning.modules.mean_pool import MeanPool


class ToyEncoder(SentenceTransformer):
    """A pipeline that says of itself that it is a toy."""

    @classmethod
    def of(cls, embedding):
        return cls(modules=[embedding, MeanPool(embedding.embedding_dimension)], device="cpu")


def holds(model):
    return isinstance(model, ToyEncoder)


def check(model):
    pass


def write(model, folder, dtype=None, truncate_dim=None):
    stock.write(model, folder, dtype, truncate_dim, "toy")
    write_configuration(folder, Configuration("toy", {"toys": 1}))


def read(folder, values, device, truncate_dim):
    assert values == {"toys": 1}
    return ToyEncoder.of(own_modules.read(folder, {}, device, truncate_dim)[0])


def read_weights(folder, into):
    stock.fill(into, read(folder, {"toys": 1}, "cpu", None), folder)
