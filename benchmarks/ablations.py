"""What each choice of the training is worth: `python benchmarks/ablations.py --lang es --text FILE --dev FILE.tsv...`.

Trains the rows of a configuration (benchmarks/configs/ablations.yaml) with each seed, scores them on development pairs,
prints Pearson x 100 as a table. Results are kept next to the output; a run that was stopped resumes where it stopped.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from harness.families.ablations import read_ablations, score_ablations
from harness.output import write_run
from reports.ablations import seeds_table

from st_paragram.cli.main import run_reporting_errors
from st_paragram.core.files import cache_folder
from st_paragram.core.text.parallel import parse_source
from st_paragram.learning.training.development import development_pairs, development_translations
from st_paragram.tools.preparation.prepare import prepare_cached
from st_paragram.tools.preparation.settings import PrepareSettings

CONFIG = Path(__file__).parent / "configs" / "ablations.yaml"


def main() -> int:
    """Train, score and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lang", required=True, help="language of the other side, e.g. es")
    parser.add_argument("--text", nargs="+", required=True, metavar="FILE", help="parallel text, as `prepare` takes it")
    parser.add_argument("--dev", nargs="+", required=True, metavar="FILE.tsv", help="development pairs")
    parser.add_argument("--dev-bitext", nargs="+", default=[], metavar="FILE.tsv", help="held-out translations")
    parser.add_argument("--config", default=CONFIG, help="the rows (%(default)s)")
    parser.add_argument("--seeds", nargs="+", type=int, default=[1, 2], help="(%(default)s)")
    parser.add_argument("--output", type=Path, default=Path("ablations.json"), help="(%(default)s)")
    arguments = parser.parse_args()
    languages = "en", arguments.lang
    rows = read_ablations(arguments.config)
    development = [development_pairs(path, arguments.lang) for path in arguments.dev]
    translations = [development_translations(path, arguments.lang) for path in arguments.dev_bitext]
    sources = [parse_source(spec, languages) for spec in arguments.text]

    def store_of(vocab_size: int) -> Path:
        settings = PrepareSettings(languages=languages, vocab_size=vocab_size)
        return prepare_cached(sources, settings, cache_folder() / "stores")

    parts = arguments.output.with_suffix(".parts")
    found = score_ablations(rows, arguments.seeds, store_of, development, parts, arguments.text, translations)
    write_run(found, arguments.output)
    print(f"Pearson x 100, mean (lowest - highest) of the seeds {', '.join(map(str, arguments.seeds))}\n")
    print(seeds_table(found))
    return 0


if __name__ == "__main__":
    sys.exit(run_reporting_errors("ablations", main))
