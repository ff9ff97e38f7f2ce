"""Logistic regression on frozen embeddings, its regularisation chosen on sentences held out (as SentEval's, 2018)."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from st_paragram.core.extras import require

_MOST_STEPS = 1000  # of L-BFGS
_TOLERANCE = 1e-5  # with scikit-learn's 1e-4 a warm start from one strength seems to be the end of the next one

Labels = NDArray[np.str_]


@dataclass(frozen=True)
class Examples:
    """Embeddings, float32 (n, d), and as many labels, str (n,)."""

    embeddings: NDArray[np.float32]
    labels: Labels

    def take(self, rows: NDArray[np.int64]) -> Examples:
        """Some of them, by their numbers."""
        return Examples(self.embeddings[rows], self.labels[rows])


@dataclass(frozen=True)
class LinearClassifier:
    """A classifier that has learned.

    Attributes:
        strength: C, the inverse strength of the L2 regularisation.
        held_out: its accuracy on the examples that chose C, a share.
        scaler: standardizes embeddings by means and deviations of those it learned from.
        regression: scikit-learn's.
    """

    strength: float
    held_out: float
    scaler: Any
    regression: Any

    def right(self, examples: Examples) -> int:
        """How many examples get their label."""
        predicted = self.regression.predict(self.scaler.transform(examples.embeddings))
        return int((predicted == examples.labels).sum())

    def learn_on(self, train: Examples) -> LinearClassifier:
        """The same learned from other examples, e.g. with those held out, from its weights on."""
        scaler, regression = copy.deepcopy((self.scaler, self.regression))
        _fit(regression, scaler.fit_transform(train.embeddings), train.labels)
        return LinearClassifier(self.strength, self.held_out, scaler, regression)


def best_classifier(train: Examples, held_out: Examples, strengths: Sequence[float]) -> LinearClassifier:
    """Learn with every strength, from the weights of the one before, and keep what is best on examples held out.

    Args:
        train: to learn from; embeddings are standardized, so that no component is regularised more than others.
        held_out: to choose by; of equally good strengths the first one is taken.
        strengths: values of C, ascending.

    Raises:
        MissingExtraError: scikit-learn is not installed.
    """
    scaler = _part("preprocessing").StandardScaler().fit(train.embeddings)
    features, other = (scaler.transform(part.embeddings) for part in (train, held_out))
    regression = _part("linear_model").LogisticRegression(tol=_TOLERANCE, max_iter=_MOST_STEPS, warm_start=True)
    best: LinearClassifier | None = None
    for strength in strengths:
        _fit(regression.set_params(C=strength), features, train.labels)
        accuracy = float((regression.predict(other) == held_out.labels).mean())
        if best is None or accuracy > best.held_out:
            best = LinearClassifier(strength, accuracy, scaler, copy.deepcopy(regression))
    assert best is not None
    return best


def folds(labels: Labels, count: int, seed: int) -> list[NDArray[np.int64]]:
    """Divide rows into parts with equal shares of labels, at random by the seed.

    Raises:
        MissingExtraError: scikit-learn is not installed.
    """
    splitter = _part("model_selection").StratifiedKFold(count, shuffle=True, random_state=seed)
    return [part.astype(np.int64) for _, part in splitter.split(np.zeros(len(labels)), labels)]


def _fit(regression: Any, features: NDArray[np.float32], labels: Labels) -> None:  # noqa: ANN401
    with warnings.catch_warnings():
        unfinished = _part("exceptions").ConvergenceWarning
        warnings.simplefilter("ignore", unfinished)  # the last steps change next to nothing
        regression.fit(features, labels)


def _part(name: str) -> Any:  # noqa: ANN401 - a module
    return require(f"sklearn.{name}", extra="probing", purpose="a classifier on embeddings")
