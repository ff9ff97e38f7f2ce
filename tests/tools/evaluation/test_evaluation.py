import pytest

from st_paragram.learning.training.development import built_in_pairs, development_evaluator, development_pairs
from st_paragram.tools.evaluation.files import GradedPairs
from st_paragram.tools.evaluation.scores import correlate


def test_built_in_pairs_serve_for_development():
    pairs = built_in_pairs("tr")
    assert len(pairs.grades) >= 60 and pairs.first != pairs.second
    assert development_pairs(None, "xx").name == "built-in-en-en"
    assert development_pairs(None, "tr").second == pairs.second


def test_the_evaluator_reports_what_correlate_finds():
    pairs = GradedPairs("x", ["a", "a", "b"], ["b", "c", "b"], [1.0, 2.0, 5.0])
    from st_paragram.core.tokenizers.sentencepiece import SentencePieceTokenizer, train_vocabulary
    from st_paragram.learning.models.sentence_transformers_encoder import pipeline
    from st_paragram.learning.modules.token_embedding import SentencePieceEmbedding

    vocabulary = SentencePieceTokenizer(train_vocabulary(["a b c", "c b a"] * 5, 20))
    model = pipeline(SentencePieceEmbedding(vocabulary, 4), device="cpu")
    scores = development_evaluator(pairs)(model)
    assert scores["x_pearson_cosine"] == pytest.approx(correlate(model, pairs).pearson, abs=1e-6)
