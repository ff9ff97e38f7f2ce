"""Show what a model does: similar sentences in two languages, graded pairs, and finding
translations.

    python recipes/try_model.py p-sp-es --lang es

The sentences are part of st_paragram and were not trained on: this is a quick look, not a
benchmark.
"""

from __future__ import annotations

import argparse
import sys
from itertools import islice

import numpy as np
from sentence_transformers import SentenceTransformer

import st_paragram
from st_paragram.cli.main import run_reporting_errors
from st_paragram.core.model_directory.find import find
from st_paragram.core.model_directory.record import read_training_record
from st_paragram.core.sample import held_out_pairs, sample_pairs
from st_paragram.runs.development import built_in_pairs
from st_paragram.runs.training_data import BUILT_IN_PAIRS
from st_paragram.tools.evaluation.files import GradedPairs
from st_paragram.tools.evaluation.scores import correlation, cosines, embed
from st_paragram.tools.evaluation.translations import ERROR, retrieval_errors

BUILT_IN = """
This model is a demonstration. It was trained for a few seconds on sentences from a small phrase
grammar, and knows only the words of that grammar. It finds nearly all translations of such
sentences. Natural sentences have mostly words that it has never seen, so expect low cosines there,
even for sentences with the same meaning. For a useful model, train on real text (st-paragram
bitext, then st-paragram train bitext), or use p-sp-mini, which is included."""

OTHER = """
Its cosines should be higher for pairs with the same meaning than for other pairs, even in natural
sentences. Typical values differ between models: compare only cosines from the same model."""

GRAMMAR = """
1. Simple sentences from a phrase grammar. The first number is the cosine of a sentence and its
   translation; the second, which should be far lower, is its cosine with the translation of another
   sentence.
"""
GRADED = """
2. Natural sentences. The first number is a person's grade, from 5 (the same meaning) to 0 (nothing
   in common); the second is the cosine. In a good model, cosines fall with the grades.
"""
RETRIEVAL = """
3. Finding the translation of a sentence among the translations of all sentences, by the highest
   cosine.
"""
STOCK = """
4. Plain sentence-transformers, without st_paragram, opens the same folder. The cosine of its
   embeddings with ours is at least {:.6f}; 1 means that they are the same."""


def show_grammar(model: SentenceTransformer, phrases: list[tuple[str, str]]) -> None:
    """Print cosines of sentences of the phrase grammar with right and wrong translations."""
    print(GRAMMAR)
    english = [pair[0] for pair in phrases[:6]]
    translations = [pair[1] for pair in phrases[:6]]
    cosines = model.similarity(model.encode(english), model.encode(translations))
    for row in range(5):
        right = cosines[row, row]
        wrong = cosines[row, row + 1]
        print(f"  {right:5.2f}  {wrong:5.2f}  {english[row]}  |  {translations[row]}")


def show_graded(model: SentenceTransformer, pairs: GradedPairs) -> None:
    """Print cosines of some graded pairs, and the correlation over all."""
    print(GRADED)
    by_grade = np.argsort(pairs.grades)
    some = by_grade[:: max(1, len(pairs.grades) // 10)][::-1]
    for row in some:
        texts = [pairs.first[row], pairs.second[row]]
        first, second = model.encode(texts, normalize_embeddings=True)
        print(f"  {pairs.grades[row]:.1f}  {first @ second:5.2f}  {texts[0]}  |  {texts[1]}")
    pearson = 100 * correlation(cosines(model, pairs), pairs.grades).pearson
    print(
        f"\n   Over all {len(pairs.grades)} graded pairs, grades and cosines have a correlation of"
        f" {pearson:.1f}"
    )
    print("   (Pearson x 100: 100 would be perfect agreement, 0 none).")


def show_retrieval(model: SentenceTransformer, lang: str, phrases: list[tuple[str, str]]) -> None:
    """Print how many translations are found by nearest neighbor."""
    print(RETRIEVAL)
    for name, translations in (("simple", phrases), ("natural", held_out_pairs("en", lang))):
        first = embed(model, [pair[0] for pair in translations])
        second = embed(model, [pair[1] for pair in translations])
        error = retrieval_errors(first, second)[ERROR]
        print(f"  {100 * (1 - error):5.1f} % right among {len(translations)} {name} sentences")


def main() -> int:
    """Encode the sentences and print the results."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("model", help="model directory or name")
    parser.add_argument("--lang", required=True, help="language of the second sentences, e.g. es")
    arguments = parser.parse_args()

    folder = find(arguments.model)
    model = st_paragram.load(folder)
    record = read_training_record(folder)
    phrases = list(islice(sample_pairs(arguments.lang), BUILT_IN_PAIRS, BUILT_IN_PAIRS + 300))
    print(f"\n==== What {arguments.model} does ({model.get_embedding_dimension()} dimensions)")
    print(BUILT_IN if record and record.data.startswith("the built-in bitext") else OTHER)
    show_grammar(model, phrases)
    show_graded(model, built_in_pairs(arguments.lang))
    show_retrieval(model, arguments.lang, phrases)

    if (folder / "modules.json").is_file():
        stock = SentenceTransformer(str(folder), device="cpu")
        texts = [english for english, _ in phrases[:20]]
        ours = model.encode(texts, normalize_embeddings=True)
        theirs = stock.encode(texts, normalize_embeddings=True)
        print(STOCK.format((ours * theirs).sum(axis=1).min()))
    else:
        print(
            f"\nst-paragram get {arguments.model} writes a folder that plain sentence-transformers"
            " also opens."
        )
    return 0


if __name__ == "__main__":
    sys.exit(run_reporting_errors("try_model", main))
