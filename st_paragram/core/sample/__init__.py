"""Built-in text."""

from st_paragram.core.sample.grammar import LANGUAGES, sample_pairs, sample_paraphrases
from st_paragram.core.sample.held_out import HELD_OUT_LANGUAGES, graded_pairs, held_out_pairs, held_out_tuples

__all__ = [
    "HELD_OUT_LANGUAGES",
    "LANGUAGES",
    "graded_pairs",
    "held_out_pairs",
    "held_out_tuples",
    "sample_pairs",
    "sample_paraphrases",
]
