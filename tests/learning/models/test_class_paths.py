"""Where the classes that `load` returns are: other libraries look at the path."""

import pytest

import st_paragram


@pytest.mark.parametrize("name", ["ParagramEncoder", "GenerativeEncoder", "DualEncoder"])
def test_other_libraries_see_a_model_of_sentence_transformers(name):
    """KeyBERT and BERTopic look for this word, after the names of some other libraries."""
    path = str(getattr(st_paragram, name))
    assert "sentence_transformers" in path
    assert not any(other in path for other in ("model2vec", "flair", "spacy", "gensim", "saved_model", "fastembed"))
