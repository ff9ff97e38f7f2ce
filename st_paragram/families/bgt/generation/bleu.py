"""BLEU of a text that comes sentence by sentence, by sacrebleu."""

from __future__ import annotations

from typing import Any

from st_paragram.core.extras import require

_ORDERS = 4
# Of languages that put no spaces between words; sacrebleu's own choice for Japanese needs a package more.
_TOKENIZERS = {"zh": "zh", "ja": "char"}


class CorpusBleu:
    """BLEU of a whole text (Papineni et al., 2002), of which counts are kept alone.

    Case makes no difference: models here know text in lower case. It is sacrebleu's `corpus_bleu(lowercase=True)`.

    Args:
        language: code of the text, for its words.

    Raises:
        MissingExtraError: sacrebleu is not installed.
    """

    def __init__(self, language: str) -> None:
        bleu = require("sacrebleu.metrics", "generation", "BLEU").BLEU
        tokenizer = _TOKENIZERS.get(language.partition("_")[0], "13a")
        self._bleu: Any = bleu(lowercase=True, tokenize=tokenizer, effective_order=True)
        self._counts = [0] * (2 + 2 * _ORDERS)

    def add(self, output: str, reference: str) -> None:
        """Count a sentence and the one that it should be."""
        found = self._bleu.sentence_score(output, [reference])
        counts = [found.sys_len, found.ref_len, *found.counts, *found.totals]
        self._counts = [before + now for before, now in zip(self._counts, counts, strict=True)]

    def score(self) -> float:
        """BLEU of all sentences so far, 0 to 100."""
        length, of_references, *counts = self._counts
        orders = counts[:_ORDERS], counts[_ORDERS:]
        return float(self._bleu.compute_bleu(*orders, length, of_references, smooth_method="exp").score)
