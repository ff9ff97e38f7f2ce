"""What each choice of the training is worth: `python benchmarks/ablations.py --lang es --text FILE --dev FILE.tsv...`.

Trains the rows of a configuration (benchmarks/configs/ablations.yaml) with each seed, scores them on development pairs,
prints Pearson x 100 as a table. Results are kept beside the output; a run that was stopped goes on where it stopped.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import asdict
from pathlib import Path
from statistics import mean
from typing import Any

from harness.ablations import read_ablations, run_ablations

from st_paragram.cli.main import run_reporting_errors
from st_paragram.data.text import parse_source
from st_paragram.evaluation.development import development_pairs
from st_paragram.evaluation.record import new_record, write_record
from st_paragram.files import cache_folder
from st_paragram.preparation.prepare import prepare_cached
from st_paragram.preparation.settings import PrepareSettings
from st_paragram.tables import markdown_table

CONFIG = Path(__file__).parent / "configs" / "ablations.yaml"


def main() -> int:
    """Train, score and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lang", required=True, help="language of the other side, e.g. es")
    parser.add_argument("--text", nargs="+", required=True, metavar="FILE", help="parallel text, as `prepare` takes it")
    parser.add_argument("--dev", nargs="+", required=True, metavar="FILE.tsv", help="development pairs")
    parser.add_argument("--config", default=CONFIG, help="the rows (%(default)s)")
    parser.add_argument("--seeds", nargs="+", type=int, default=[1, 2], help="(%(default)s)")
    parser.add_argument("--output", type=Path, default=Path("ablations.json"), help="(%(default)s)")
    arguments = parser.parse_args()

    rows = read_ablations(arguments.config)
    development = [development_pairs(path, arguments.lang) for path in arguments.dev]
    sources = [parse_source(spec, ("en", arguments.lang)) for spec in arguments.text]

    def store_of(vocab_size: int) -> Path:
        settings = PrepareSettings(languages=("en", arguments.lang), vocab_size=vocab_size)
        return prepare_cached(sources, settings, cache_folder() / "stores")

    parts = arguments.output.with_suffix(".parts")
    results: dict[str, Any] = {}
    for row, run in run_ablations(rows, arguments.seeds, store_of, development, parts):
        entry = results.setdefault(row.name, {"group": row.group, "overrides": dict(row.overrides), "runs": []})
        entry["runs"].append(run)
    base = {"vocab_size": rows[0].vocab_size, **asdict(rows[0].settings)}
    data = {"text": arguments.text, "development": {pairs.name: len(pairs) for pairs in development}, "base": base}
    write_record(new_record("ablations", [], data, results), arguments.output)
    names = [pairs.name for pairs in development]
    print(f"Pearson x 100, mean (lowest - highest) of the seeds {', '.join(map(str, arguments.seeds))}\n")
    print(
        markdown_table(["row", *names, "seconds"], [_cells(name, row["runs"], names) for name, row in results.items()])
    )
    return 0


def _cells(name: str, runs: list[dict[str, Any]], sets: list[str]) -> list[str]:
    cells = [name]
    for pairs in sets:
        values = [100 * run["scores"][pairs]["pearson"] for run in runs]
        cells.append(f"{mean(values):.1f} ({min(values):.1f} - {max(values):.1f})")
    return [*cells, f"{mean(run['seconds'] for run in runs):.0f}"]


if __name__ == "__main__":
    sys.exit(run_reporting_errors("ablations", main))
