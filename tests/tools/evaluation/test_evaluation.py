import numpy as np
import pytest
from scipy import stats

from st_paragram.errors import TextError
from st_paragram.learning.training.development import built_in_pairs, development_evaluator, development_pairs
from st_paragram.tools.evaluation.correlation import correlate
from st_paragram.tools.evaluation.graded_pairs import GradedPairs, read_graded_pairs


class Fixed:
    """Stands for a model: texts are names of vectors."""

    similarity_fn_name = "cosine"
    truncate_dim = None

    def __init__(self, **vectors):
        self.vectors = vectors

    def encode(self, texts, normalize_embeddings=False, convert_to_tensor=False, **kwargs):
        rows = np.array([self.vectors[text] for text in texts], dtype=np.float32)
        rows = rows / np.linalg.norm(rows, axis=1, keepdims=True)
        if convert_to_tensor:
            import torch

            return torch.from_numpy(rows)
        return rows


def test_correlation_by_hand():
    model = Fixed(a=[1, 0], b=[0, 1], c=[1, 1], d=[-1, 0])
    # cosines 0, sqrt(1/2), -1, 1
    pairs = GradedPairs("x", ["a", "a", "a", "b"], ["b", "c", "d", "b"], [1.0, 2.0, 1.5, 5.0])
    got = correlate(model, pairs)
    cosines = [0, 0.5**0.5, -1, 1]
    assert got.pearson == pytest.approx(np.corrcoef(cosines, pairs.grades)[0, 1], abs=1e-6)
    assert got.spearman == pytest.approx(1 - 6 * (1 + 0 + 1 + 0) / (4 * 15))  # ranks 2 3 1 4 against 1 3 2 4
    assert got.spearman == pytest.approx(stats.spearmanr(cosines, pairs.grades).statistic)


def test_graded_pairs_are_read_and_refused_by_row(tmp_path):
    path = tmp_path / "dev.tsv"
    path.write_text("4.5\tone\u2028line\tother\n0\ta\tb\r\n", encoding="utf-8", newline="\n")
    assert read_graded_pairs(path) == GradedPairs("dev", ["one\u2028line", "a"], ["other", "b"], [4.5, 0.0])
    for bad in ("4.5\tone\n", "high\ta\tb\n", ""):
        path.write_text("1\ta\tb\n" + bad + "\n" if bad else "")
        with pytest.raises(TextError, match=r"dev\.tsv: row"):
            read_graded_pairs(path)
    for same in ("1\ta\tb\n", "2\ta\tb\n2\tc\td\n"):
        path.write_text(same)
        with pytest.raises(TextError, match="pairs of one grade"):
            read_graded_pairs(path)
    path.write_bytes(b"1\ta\tb\nnan\tc\td\n")
    with pytest.raises(TextError, match="row 2"):
        read_graded_pairs(path)
    with pytest.raises(TextError, match="no such file"):
        read_graded_pairs(tmp_path / "none.tsv")


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
