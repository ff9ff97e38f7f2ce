"""Whether texts are sentences of test sets, asked of texts alone: what stores of tasks leave out."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from st_paragram.tools.cleaning.known_test_sentences import SetFamily, among, digest, known_hashes, sentence_hashes


class KnownSentences:
    """Sentences of families of test sets, known by the hashes that come with the package.

    Attributes:
        name: what they are, for messages.
        identity: a digest of the hashes.
    """

    def __init__(self, families: Sequence[SetFamily] = tuple(SetFamily)) -> None:
        """Read the hashes.

        Args:
            families: of test sets; all of them, retrieval included, if none is named.

        Raises:
            EvaluationError: the file of hashes is not readable.
        """
        self.name = f"test sets ({', '.join(kind.value for kind in families)})"
        self._hashes = known_hashes(families)
        self.identity = f"{self.name} {digest(families)}"

    def __call__(self, texts: Sequence[str]) -> NDArray[np.bool_]:
        """Whether each of n texts has the letters and digits of one of them, bool (n,)."""
        return among(sentence_hashes(texts), self._hashes)
