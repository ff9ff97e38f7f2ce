"""Embeddings as a step in scikit-learn pipelines, without torch."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from st_paragram.core.encoding.embed import BATCH_SIZE
from st_paragram.core.encoding.encoder import Encoder
from st_paragram.core.encoding.find import SHIPPED
from st_paragram.core.extras import require
from st_paragram.errors import SettingsError

require("sklearn", "sklearn", "ParagramVectorizer")

from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin  # noqa: E402
from sklearn.utils.validation import check_is_fitted  # noqa: E402


class ParagramVectorizer(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """Transform texts to embeddings of an averaging model, as a scikit-learn transformer.

    Nothing is learned: `fit` only opens the model. A fitted vectorizer contains the model, so a pickled pipeline works
    without the model's directory. It supports cloning, parameter search (`truncate_dim`, `model`) and data frames
    (`set_output`).

    Attributes:
        encoder_: The opened `Encoder`, after `fit`.

    Example:
        >>> from sklearn.linear_model import LogisticRegression
        >>> from sklearn.pipeline import make_pipeline
        >>> from st_paragram import ParagramVectorizer
        >>> classifier = make_pipeline(ParagramVectorizer("p-sp-mini"), LogisticRegression())
        >>> texts = ["The soup is hot.", "Bread and cheese.", "A fast train.", "The bus is late."]
        >>> classifier.fit(texts, ["food", "food", "travel", "travel"]).predict(["¿Dónde está el autobús?"]).tolist()
        ['travel']
    """

    def __init__(
        self,
        model: str | Path = SHIPPED,
        *,
        truncate_dim: int | None = None,
        normalize_embeddings: bool = False,
        prompt_name: str | None = None,
        language: str | None = None,
        batch_size: int = BATCH_SIZE,
        num_threads: int | None = None,
    ) -> None:
        """Store the settings, which `fit` uses.

        Args:
            model: Path, name or hub id of the model, as for `Encoder`.
            truncate_dim: Number of first dimensions to keep; None: all.
            normalize_embeddings: Scale embeddings to length 1.
            prompt_name: Name of the prompt to put before each text; None: the model's default prompt.
            language: Language of the texts, for a model with two vocabularies.
            batch_size: Number of texts embedded at a time.
            num_threads: Number of threads; None: as for `Encoder`.
        """
        self.model = model
        self.truncate_dim = truncate_dim
        self.normalize_embeddings = normalize_embeddings
        self.prompt_name = prompt_name
        self.language = language
        self.batch_size = batch_size
        self.num_threads = num_threads

    def fit(self, X: Any = None, y: Any = None) -> ParagramVectorizer:  # noqa: ANN401
        """Open the model; the texts are not used."""
        self.encoder_ = Encoder(self.model, self.truncate_dim, self.num_threads)
        self._n_features_out = self._encode([]).shape[1]
        return self

    def transform(self, X: Any) -> NDArray[Any]:  # noqa: ANN401
        """Embed texts.

        Args:
            X: n texts: a list, an array, a column of a table, or any iterable of strings, as for `Encoder.encode`.

        Returns:
            float32 (n, D), or a data frame if requested by `set_output`.
        """
        check_is_fitted(self, "encoder_")
        if isinstance(X, str):
            raise SettingsError("a single text; give a list of texts")
        return self._encode(X)

    def __sklearn_tags__(self) -> Any:  # noqa: ANN401
        tags = super().__sklearn_tags__()
        tags.input_tags.string, tags.input_tags.two_d_array = True, False
        return tags

    def _encode(self, texts: Any) -> NDArray[Any]:  # noqa: ANN401
        return self.encoder_.encode(
            texts,
            batch_size=self.batch_size,
            prompt_name=self.prompt_name,
            normalize_embeddings=self.normalize_embeddings,
            language=self.language,
        )
