"""Look at what a model does: similar sentences in two languages, graded pairs, and finding translations.

    python recipes/try_model.py p-sp-es --lang es

The sentences are st_paragram's own and none of them was trained on: a quick look, not a benchmark.
"""

from __future__ import annotations

import argparse
import sys
from itertools import islice

import numpy as np
from sentence_transformers import SentenceTransformer

from st_paragram.cli.main import run_reporting_errors
from st_paragram.data.sample.grammar import sample_pairs, sample_paraphrases
from st_paragram.data.sample.held_out import held_out_pairs
from st_paragram.evaluation.correlation import correlate
from st_paragram.evaluation.development import built_in_pairs
from st_paragram.evaluation.tatoeba import retrieval_error
from st_paragram.models import directory as model_directory
from st_paragram.models.find import find
from st_paragram.training.training_data import BUILT_IN_PAIRS


def main() -> int:
    """Encode and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", help="model directory or name")
    parser.add_argument("--lang", required=True, help="language of the second sentences, e.g. es")
    arguments = parser.parse_args()

    folder = find(arguments.model)
    model = model_directory.load(folder)
    pairs = built_in_pairs(arguments.lang)

    samples = sample_paraphrases() if arguments.lang == "en" else sample_pairs(arguments.lang)
    phrases = list(islice(samples, BUILT_IN_PAIRS, BUILT_IN_PAIRS + 300))
    one, other = (model.encode([pair[side] for pair in phrases], normalize_embeddings=True) for side in (0, 1))
    print(f"\n{arguments.model}: {model.get_embedding_dimension()} components.")
    print("Sentences of the phrase grammar: cosine with the translation, cosine with the next sentence's translation")
    for index in range(5):
        right, wrong = one[index] @ other[index], one[index] @ other[index + 1]
        print(f"  {right:5.2f}  {wrong:5.2f}  {phrases[index][0]}  |  {phrases[index][1]}")
    print("Natural sentences: grade 0-5, cosine")
    order = np.argsort(pairs.grades)[:: max(1, len(pairs.grades) // 10)][::-1]
    first, second = ([texts[i] for i in order] for texts in (pairs.first, pairs.second))
    cosines = model.similarity_pairwise(model.encode(first), model.encode(second))
    for index, cosine, text, translated in zip(order, cosines, first, second, strict=True):
        print(f"  {pairs.grades[index]:.1f}  {cosine:5.2f}  {text}  |  {translated}")

    correlation = correlate(model, pairs)
    print(f"all {len(pairs.grades)} graded pairs: Pearson {100 * correlation.pearson:.1f} (x 100)")
    for name, translations in (("natural", held_out_pairs("en", arguments.lang)), ("phrase-grammar", phrases)):
        error = retrieval_error(model, [one for one, _ in translations], [other for _, other in translations])
        right = 100 * (1 - error.mean)
        print(f"finding the translation among {len(translations)} {name} sentences: {right:.1f} % right")

    stock = SentenceTransformer(str(folder), device="cpu")
    ours, theirs = (m.encode(first + second, normalize_embeddings=True) for m in (model, stock))
    print(f"stock SentenceTransformer: cosine with the native pipeline at least {(ours * theirs).sum(1).min():.6f}")
    return 0


if __name__ == "__main__":
    sys.exit(run_reporting_errors("try_model", main))
