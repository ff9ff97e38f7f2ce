"""Mining beside a baseline, and beside sentence-transformers' paraphrase mining."""

from __future__ import annotations

import argparse
from pathlib import Path

from harness.growing_table import say
from harness.mining_peers import (
    AGREEMENT_HEAD,
    HEAD,
    Comparison,
    agreement_rows,
    compare_bitext,
    compare_paraphrases,
)
from harness.mining_results import PeersRun
from harness.mining_texts import write_distinct
from st_paragram.core.tables import markdown_table
from st_paragram.tools.search.settings import parse_memory


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of this part."""
    add = parser.add_argument
    add("--sentences", type=int, default=50_000, help="on each side of the bitext; 0 leaves it out")
    add("--paraphrase-sentences", type=int, default=30_000, help="0 leaves paraphrases out")
    add("--top-k", type=int, default=20, help="neighbours, of paraphrases")
    add("--ratios", type=float, nargs="*", default=[1.05, 1.1], help="from which upwards pairs are compared too")
    add("--cosines", type=float, nargs="*", default=[0.7, 0.9], help="the same for paraphrases")


def run(arguments: argparse.Namespace, folder: Path) -> PeersRun:
    """Mine in turn, print the comparisons, and return them."""
    memory, model, rounds = parse_memory(arguments.memory), arguments.model, arguments.rounds
    found: list[Comparison] = []
    if count := arguments.sentences:
        texts = write_distinct(arguments.bitext, folder, count)
        found.append(compare_bitext(texts, model, folder, rounds, arguments.k, memory, arguments.ratios))
        _print(found[-1], f"{count:,} x {count:,} sentences", rounds)
    if count := arguments.paraphrase_sentences:
        text = write_distinct(arguments.bitext, folder, count)[0]
        found.append(compare_paraphrases(text, model, folder, rounds, arguments.top_k, memory, arguments.cosines))
        _print(found[-1], f"{count:,} sentences, top_k {arguments.top_k}", rounds)
    sizes = arguments.sentences, arguments.paraphrase_sentences
    return PeersRun({model: found}, *sizes, rounds, arguments.k, arguments.top_k)


def _print(comparison: Comparison, what: str, rounds: int) -> None:
    say(f"\n## {comparison.title}: {what}; medians of {rounds} rounds\n")
    say(markdown_table(HEAD, comparison.rows()) + "\n")
    say(markdown_table(AGREEMENT_HEAD, agreement_rows(comparison.agreements)))
