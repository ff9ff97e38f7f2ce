"""Known pairs hidden among sentences without a translation: precision, recall and F1 by each margin."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
from harness.mining.planted import Planted, Recipe, write_planted
from harness.mining.process import WatchedMining, watch_mining
from harness.output import say

from st_paragram.core.tables import MISSING, hundredths, markdown_table
from st_paragram.errors import TextError
from st_paragram.tools.bitext_mining.candidates import Candidates, ScoredPairs
from st_paragram.tools.bitext_mining.margin import Margin
from st_paragram.tools.bitext_mining.settings import MiningSettings
from st_paragram.tools.bitext_mining.threshold import Extraction
from st_paragram.tools.evaluation.bucc import LABELS, MarginResult, extractions, half_extractions, thresholds
from st_paragram.tools.evaluation.bucc_files import ComparableTexts, read_bucc
from st_paragram.tools.search.settings import AUTO, parse_memory

HALF, ORACLE = "half", "oracle"
HEAD = ("threshold chosen", "score", "threshold", "extracted", "right", "gold", "precision", "recall", "F1")
_HOW = {HALF: "on the other half", ORACLE: "on the same pairs (oracle)"}

Scored = dict[str, dict[Margin, Extraction]]


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of this part."""
    add = parser.add_argument
    add("--pair", default="en-xx", help="codes of the languages")
    add("--seed", type=int, default=0, help="of all that is drawn")
    add("--held", nargs="+", required=True, metavar="FILE", help="known pairs, source TAB target")
    add("--held-swapped", action="store_true", help="their columns are target TAB source")
    add("--planted", type=int, default=1000, help="pairs")
    add("--distractors", type=int, default=200_000, help="on each side")
    add("--distractor-source", nargs="+", default=[], metavar="FILE", help="more sources (first column)")
    add("--distractor-target", nargs="+", default=[], metavar="FILE", help="more targets (first column)")
    add("--target-share", type=float, default=0.5, help="of the bitext's rows that give targets")
    add("--block", type=int, default=500, help="neighbouring rows of the bitext that are for one side")


def run(arguments: argparse.Namespace, folder: Path) -> dict[str, Any]:
    """Plant, mine, print, and return what was found as JSON values."""
    recipe = Recipe(
        str(arguments.bitext),
        tuple(arguments.held),
        arguments.held_swapped,
        arguments.planted,
        arguments.distractors,
        (tuple(arguments.distractor_source), tuple(arguments.distractor_target)),
        arguments.target_share,
        arguments.block,
        arguments.seed,
    )
    made = write_planted(recipe, folder / "planted", arguments.pair)
    _describe(made, recipe, arguments.pair)
    memory = parse_memory(arguments.memory)
    scored, mined = mine_known(
        folder / "planted", arguments.pair, arguments.model, folder, arguments.k, memory, arguments.index
    )
    _print(f"Planted pairs, {arguments.pair}, {arguments.model}", scored, mined)
    figures = {
        how: {LABELS[margin]: asdict(MarginResult.of(found)) for margin, found in by_margin.items()}
        for how, by_margin in scored.items()
    }
    return {"scores": figures, "mining": asdict(mined), "recipe": asdict(recipe), "planted": asdict(made)}


def mine_known(
    prefix: Path, pair: str, model: str, folder: Path, k: int, memory: int, index: str = AUTO, seed: int = 0
) -> tuple[Scored, WatchedMining]:
    """Mine PREFIX.zh and PREFIX.en by ids, by every margin from one work folder, and score against PREFIX.gold.

    Args:
        prefix: Of three files as BUCC's.
        pair: Codes of the languages, "zh-en".
        model: To embed with.
        folder: For the work and the pairs.
        k: Neighbours.
        memory: Bytes that mining may take.
        index: See `MiningSettings`.
        seed: Of the halves.

    Returns:
        The scores, and the first mining: the others only score and choose again.

    Raises:
        TextError: The files are not of that form.
    """
    texts = read_bucc(prefix, pair)
    files = [Path(f"{prefix}.{code}") for code in pair.split("-")]
    runs, pairs = [], {}
    for margin in (Margin.ABSOLUTE, Margin.RATIO, Margin.DISTANCE):
        settings = MiningSettings(
            k=k, margin=margin, candidates=Candidates.MAX, index=index, memory=memory, with_ids=True
        )
        output = folder / f"{margin.value}.tsv"
        runs.append(watch_mining(files, output, model, settings, folder / "work"))
        pairs[margin] = read_mined(output, texts)
    return score_mined(pairs, texts, seed), runs[0]


def read_mined(path: Path, texts: ComparableTexts) -> ScoredPairs:
    """Read `score TAB id TAB id` as rows of the texts.

    Raises:
        TextError: A line is of another form, or an id is not in the texts.
    """
    rows = [{key: row for row, key in enumerate(ids)} for ids in (texts.source_ids, texts.target_ids)]
    source, target, scores = list[int](), list[int](), list[float]()
    with path.open(encoding="utf-8", newline="\n") as file:
        for number, line in enumerate(file, start=1):
            try:
                score, one, other = line.rstrip("\n").split("\t")
                scores.append(float(score))
                source.append(rows[0][one])
                target.append(rows[1][other])
            except (ValueError, KeyError) as error:
                raise TextError(
                    f"{path}: line {number}: not `score TAB id TAB id` of {texts.name}: {line!r}"
                ) from error
    return ScoredPairs(np.array(source, np.int64), np.array(target, np.int64), np.array(scores, np.float64))


def score_mined(mined: Mapping[Margin, ScoredPairs], texts: ComparableTexts, seed: int = 0) -> Scored:
    """By each margin: threshold chosen on one half of the source ids and counted on the other, and the best threshold.

    Args:
        mined: Candidate pairs of each margin, without a threshold.
        texts: With the known pairs.
        seed: Of the halves.
    """
    mined = dict(mined)
    return {
        HALF: half_extractions(mined, texts, seed),
        ORACLE: extractions(mined, texts, thresholds(mined, texts)),
    }


def score_rows(scored: Scored) -> list[list[str]]:
    """Rows of a table under `HEAD`; precision, recall and F1 x 100."""
    return [
        [
            _HOW[how],
            LABELS[margin],
            f"{row.threshold:.4f}" if np.isfinite(row.threshold) else MISSING,
            *(f"{count:,}" for count in (row.extracted, row.right, row.gold)),
            *map(hundredths, (row.precision, row.recall, row.f1)),
        ]
        for how, by_margin in scored.items()
        for margin, row in by_margin.items()
    ]


def _print(title: str, scored: Scored, mined: WatchedMining) -> None:
    """Print what was found by every margin, and what it took."""
    say(f"\n## {title}; precision, recall, F1 x 100\n")
    say(markdown_table(HEAD, score_rows(scored)))
    stages = ", ".join(f"{name} {seconds:.1f}" for name, seconds in mined.stages.items())
    indexes = ", ".join(sorted({each["index"] for each in mined.report["searched"]}))
    peak = f"{mined.run.peak_anonymous_mb:,.0f} MB"
    say(f"\nIndex: {indexes}. Seconds: {stages}; all {mined.run.seconds:.1f}. Peak {peak}.\n")


def _describe(made: Planted, recipe: Recipe, pair: str) -> None:
    counts = " and ".join(f"{all_:,}" for all_ in made.distractors)
    say(f"{made.pairs:,} known pairs among {counts} distractors ({pair})")
    say(f"left out: {made.known_to_model} held pairs that are in the bitext, {made.repeated} that repeat a side")
    say(f"not taken, since near to others: {made.near[0]:,} sources, {made.near[1]:,} targets")
    if any(made.from_more):
        say(f"from further texts: {made.from_more[0]:,} sources, {made.from_more[1]:,} targets")
    if made.pairs < recipe.planted or min(made.distractors) < recipe.distractors:
        say(f"(fewer than the {recipe.planted:,} and {recipe.distractors:,} asked for: the texts have no more)")
