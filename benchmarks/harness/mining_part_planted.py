"""Known pairs hidden among sentences without a translation: precision, recall and F1 by each margin."""

from __future__ import annotations

import argparse
from pathlib import Path

from harness.growing_table import say
from harness.mining_known import mine_known
from harness.mining_planted import Planted, Recipe, write_planted
from harness.mining_process import WatchedMining
from harness.mining_results import MinedScores, MiningCost, PlantedRun
from harness.mining_scores import HEAD, Scored, score_results, score_rows
from st_paragram.core.tables import markdown_table
from st_paragram.tools.search.settings import parse_memory


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of this part."""
    add = parser.add_argument
    add("--held", nargs="+", required=True, metavar="FILE", help="known pairs, source TAB target")
    add("--held-swapped", action="store_true", help="their columns are target TAB source")
    add("--planted", type=int, default=1000, help="pairs")
    add("--distractors", type=int, default=200_000, help="on each side")
    add("--distractor-source", nargs="+", default=[], metavar="FILE", help="more sources (first column)")
    add("--distractor-target", nargs="+", default=[], metavar="FILE", help="more targets (first column)")
    add("--target-share", type=float, default=0.5, help="of the bitext's rows that give targets")
    add("--block", type=int, default=500, help="neighbouring rows of the bitext that are for one side")


def run(arguments: argparse.Namespace, folder: Path) -> PlantedRun:
    """Plant, mine, print, and return what was found."""
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
    print_scored(f"Planted pairs, {arguments.pair}, {arguments.model}", scored, mined)
    found = MinedScores(score_results(scored), MiningCost.of(mined))
    return PlantedRun({arguments.model: found}, recipe, made)


def print_scored(title: str, scored: Scored, mined: WatchedMining) -> None:
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
