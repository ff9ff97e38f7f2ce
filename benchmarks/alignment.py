"""Sentence alignment: strict and lax F1, and seconds with the embedding of sentences.

    python benchmarks/alignment.py p-sp-base --source test*.de --target test*.fr --gold test*.defr
    python benchmarks/alignment.py p-sp-base --pairs en-es.tsv.xz en-de.tsv.xz

A gold alignment has lines `[source rows]:[target rows]`, as in Vecalign. Pairs are made documents:
sentences are joined, split, dropped and swapped at random. A block is strictly right if it is a
gold block, and laxly if it shares a pair of sentences with one. As in Vecalign's `score.py`,
skipped sentences count in precision but not in recall. The second pair of F1 leaves them out.
"""

from __future__ import annotations

import argparse
import ast
import re
import sys
import time
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import islice

import numpy as np
from harness.output import print_growing

from st_paragram import AlignmentSettings, align
from st_paragram.cli.main import run_reporting_errors
from st_paragram.core.encoding.models import TextEncoder, load_encoder
from st_paragram.core.text.streams import read_lines

Alignment = list[tuple[tuple[int, ...], tuple[int, ...]]]
Example = tuple[list[str], list[str], Alignment]
HEAD = ["model", "data", "blocks", "strict", "lax", "strict, blocks", "lax, blocks", "seconds"]


def main(arguments: argparse.Namespace) -> int:
    """Print a table with a row for each model and data set."""
    print_growing(HEAD, results(arguments))
    return 0


def results(arguments: argparse.Namespace) -> Iterator[Sequence[str]]:
    """Yield a row for each model and data set."""
    data: dict[str, list[Example]] = {}
    for source, target, gold in zip(
        arguments.source, arguments.target, arguments.gold, strict=True
    ):
        example = (list(read_lines(source)), list(read_lines(target)), read_gold(gold))
        data.setdefault("gold", []).append(example)
    for path in arguments.pairs:
        pairs = [line.split("\t")[:2] for line in read_lines(path)]
        starts = np.linspace(0, len(pairs) - 300, 8, dtype=int).tolist()
        data[path] = [make_document(pairs[i : i + 300], np.random.default_rng(i)) for i in starts]
    for name in arguments.models:
        model = load_encoder(name)
        model.encode(["warm up"])
        for label, examples in data.items():
            yield [name, label, *score(model, examples)]


def read_gold(path: str) -> Alignment:
    """Read lines `[source rows]:[target rows]`."""
    gold = []
    for line in read_lines(path):
        source, target = line.split(":")[:2]
        gold.append((tuple(ast.literal_eval(source)), tuple(ast.literal_eval(target))))
    return gold


def score(model: TextEncoder, examples: Sequence[Example]) -> list[str]:
    """Align documents; return the number of gold blocks, four F1 and seconds."""
    seconds = 0.0
    totals = np.zeros((3, 3))
    for source, target, gold in examples:
        started = time.perf_counter()
        blocks = align(source, target, model, AlignmentSettings(with_skipped=True))
        seconds += time.perf_counter() - started
        aligned = [(block.source, block.target) for block in blocks]
        both = [block for block in aligned if all(block)]
        totals += [hits(aligned, gold), hits(both, gold), hits([g for g in gold if all(g)], both)]
    strict_and_lax = totals[:, :2] / totals[:, 2:]
    recall = strict_and_lax[2]
    f1 = 2 * strict_and_lax[:2] * recall / (strict_and_lax[:2] + recall)
    return [f"{totals[2, 2]:,.0f}", *[f"{value:.3f}" for value in f1.flat], f"{seconds:.1f}"]


def hits(blocks: Alignment, others: Alignment) -> tuple[int, int, int]:
    """Count the blocks that are strictly and laxly right, and all."""
    links = {(i, j) for source, target in others for i in source for j in target}
    strict = [block in others for block in blocks]
    lax = [any((i, j) in links for i in source for j in target) for source, target in blocks]
    return sum(strict), int(np.logical_or(strict, lax).sum()), len(blocks)


def make_document(pairs: Sequence[Sequence[str]], random: np.random.Generator) -> Example:
    """Join, split, drop and swap sentences of pairs at random."""
    documents: tuple[list[str], list[str]] = ([], [])
    gold: Alignment = []
    rest = iter(pairs)
    while group := list(islice(rest, int(random.choice([1, 2, 3], p=[0.8, 0.15, 0.05])))):
        sides = [[pair[0] for pair in group], [pair[1] for pair in group]]
        changed = int(random.integers(2))
        chance = random.random()
        if len(group) > 1 and chance < 0.2:
            sides[changed].reverse()
        elif len(group) > 1:
            sides[changed] = [" ".join(sides[changed])]
        elif chance < 0.08:
            sides[changed] = []
        elif chance < 0.2:
            sides[changed] = re.split(r"(?<=[,;:،؛，；：])(?=.)", sides[changed][0], maxsplit=1)
        places = []
        for document, side in zip(documents, sides, strict=True):
            places.append(tuple(range(len(document), len(document) + len(side))))
            document += side
        gold.append((places[0], places[1]))
    return *documents, gold


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("models", nargs="+")
    for option in ("--source", "--target", "--gold", "--pairs"):
        parser.add_argument(option, nargs="+", default=[], metavar="FILE")
    sys.exit(run_reporting_errors("alignment", partial(main, parser.parse_args())))
