"""Mining of BUCC's files by the command, beside the figures of benchmarks/bucc.py."""

from __future__ import annotations

import argparse
from pathlib import Path

from harness.growing_table import say
from harness.mining_known import mine_known
from harness.mining_part_planted import print_scored
from harness.mining_results import MinedBuccRun, MinedScores, MiningCost
from harness.mining_scores import score_mined, score_results
from st_paragram.core.tables import hundredths, markdown_table
from st_paragram.tools.evaluation.bucc import mine
from st_paragram.tools.evaluation.bucc_files import bucc_prefix, read_bucc
from st_paragram.tools.evaluation.results import BuccScores
from st_paragram.tools.search.settings import parse_memory


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of this part."""
    parser.add_argument("--data", required=True, metavar="DIR|PREFIX", help="as for benchmarks/bucc.py")


def run(arguments: argparse.Namespace, folder: Path) -> MinedBuccRun:
    """Mine by the command and by the evaluation, print both, and return what was found."""
    prefix = bucc_prefix(arguments.data, arguments.pair)
    memory = parse_memory(arguments.memory)
    scored, mined = mine_known(
        prefix, arguments.pair, arguments.model, folder, arguments.k, memory, arguments.index, arguments.seed
    )
    print_scored(f"BUCC {prefix.name}, {arguments.model}", scored, mined)
    ours, expected = score_results(scored), _evaluated(arguments, prefix)
    rows = [
        [how, score, hundredths(of.f1, 2), hundredths(expected[how].margins[score].f1, 2)]
        for how, scores in ours.items()
        for score, of in scores.margins.items()
    ]
    say(markdown_table(("threshold", "score", "F1, mine", "F1, benchmarks/bucc.py"), rows))
    found = MinedScores(ours, MiningCost.of(mined), expected)
    return MinedBuccRun({arguments.model: found}, prefix.name, arguments.k)


def _evaluated(arguments: argparse.Namespace, prefix: Path) -> dict[str, BuccScores]:
    from st_paragram.tools.evaluation.correlation import embed
    from st_paragram.tools.evaluation.models import load_model

    texts, model = read_bucc(prefix, arguments.pair), load_model(arguments.model)
    mined = mine(embed(model, texts.source), embed(model, texts.target), arguments.k)
    return score_results(score_mined(mined, texts, arguments.seed))
