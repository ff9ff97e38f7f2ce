"""STS 2012-2017 and the STS Benchmark: `python benchmarks/sts.py MODEL... --data FOLDER`.

A model is a directory of ours, a name, or any SentenceTransformer's directory. The folder holds `sts2012/MSRpar.tsv`,
... or the layout of SentEval and of the tasks' releases (`STS12-en-test/STS.input.MSRpar.txt`, ...); `--hub` fetches
what it does not hold. Prints Markdown tables by the papers' protocol, Sentence-BERT's and mteb's, with published rows,
95 % bootstrap intervals, and with `--compare` every model against the first on the same resamples.
"""

from __future__ import annotations

import argparse
import dataclasses
import sys
from pathlib import Path

from st_paragram.cli.main import run_reporting_errors
from st_paragram.errors import SettingsError
from st_paragram.evaluation.bootstrap import RESAMPLES
from st_paragram.evaluation.models import load_model, random_model
from st_paragram.evaluation.record import new_record, write_record
from st_paragram.evaluation.sts.scores import Bootstrap, ModelScores, results_of, score_sts
from st_paragram.evaluation.sts.sts_files import StsData, find_sts
from st_paragram.evaluation.sts.sts_tables import comparison_table, sts_tables

UNTRAINED = "untrained"


def main() -> int:
    """Score every model on everything there is."""
    arguments = _arguments()
    only = [name for part in arguments.only for name in part.split(",") if name]
    data = find_sts(arguments.data, only, arguments.hub)
    models = _score(arguments.models, data, arguments.untrained)
    bootstrap = Bootstrap(models, arguments.bootstrap, arguments.seed) if arguments.bootstrap else None
    for table in sts_tables(models, bootstrap):
        print(table)
    if arguments.compare and bootstrap:
        for table in comparison_table(models, bootstrap):
            print(table)
    if bootstrap:
        print(f"Intervals: 95 %, percentiles of {arguments.bootstrap} bootstrap resamples, seed {arguments.seed}.")
    for note in data.notes:
        print(f"- {note}")
    if arguments.json:
        _write(arguments, data, models, bootstrap)
    return 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="+", metavar="MODEL")
    parser.add_argument("--data", type=Path, metavar="FOLDER")
    parser.add_argument("--hub", action="store_true", help="fetch from the Hugging Face hub what the folder lacks")
    parser.add_argument(
        "--only", "--years", action="append", default=[], metavar="NAME,...", help="2012, 2017/en-en, stsb/dev, ..."
    )
    parser.add_argument("--untrained", action="store_true", help="add random embeddings, N(0, 1), seed 0")
    parser.add_argument("--compare", action="store_true", help="compare every model with the first")
    parser.add_argument("--bootstrap", type=int, default=RESAMPLES, metavar="N", help="resamples; 0 for none")
    parser.add_argument("--seed", type=int, default=0, help="of the resamples")
    parser.add_argument("--json", type=Path, metavar="FILE")
    arguments = parser.parse_args()
    if arguments.data is None and not arguments.hub:
        raise SettingsError("no data: give --data FOLDER, --hub, or both")
    if arguments.bootstrap < 0 or arguments.seed < 0:
        raise SettingsError("--bootstrap and --seed are numbers from 0 on")
    if arguments.compare and not (arguments.bootstrap and len(set(arguments.models)) + arguments.untrained > 1):
        raise SettingsError("--compare needs two models or --untrained, and --bootstrap above 0")
    return arguments


def _score(names: list[str], data: StsData, untrained: bool) -> dict[str, ModelScores]:
    """One model in memory at a time; the random one has the first model's vocabulary."""
    scores = {name: score_sts(load_model(name), data) for name in dict.fromkeys(names)}
    if untrained:
        scores[UNTRAINED] = score_sts(random_model(load_model(names[0])), data)
    return scores


def _write(
    arguments: argparse.Namespace, data: StsData, models: dict[str, ModelScores], bootstrap: Bootstrap | None
) -> None:
    results = {name: results_of(scores, name, bootstrap) for name, scores in models.items()}
    if arguments.compare and bootstrap:
        first, *others = models
        for name in others:
            compared = {key: dataclasses.asdict(found) for key, found in bootstrap.compare(first, name).items()}
            results[name]["against"] = {"model": first, "differences": compared}
    about = {
        "folder": str(arguments.data or ""),
        "hub": arguments.hub,
        "notes": list(data.notes),
        "skipped": {key: pairs.skipped for key, pairs in data.sets.items() if pairs.skipped},
        "bootstrap": {"resamples": arguments.bootstrap, "seed": arguments.seed},
    }
    write_record(new_record("sts", [name for name in models if name != UNTRAINED], about, results), arguments.json)


if __name__ == "__main__":
    sys.exit(run_reporting_errors("sts", main))
