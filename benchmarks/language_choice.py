"""Which language teaches English best: overlap of vocabularies, distance of languages, STS (ACL 2019).

    python benchmarks/language_choice.py --data eval --text es=en-es.tsv fr=en-fr.tsv de=en-de.tsv ar=en-ar.tsv

Of the texts those rows are trained on whose English all languages have, so that only the translations differ. Each
language has a vocabulary of its own, whose equal pieces share rows with English (string) or do not (disjoint); the
score is that of the English side on STS 2012-2016. Distances are URIEL+'s: pip install "st_paragram[languages,plots]".
A run that was stopped resumes where it stopped.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import asdict
from pathlib import Path

from harness.language_runs import run_languages, same_english, uriel_distances
from reports.languages import correlation_table, language_table, plot_languages

from st_paragram.cli.main import run_reporting_errors
from st_paragram.core.files import write_json
from st_paragram.core.machine import describe_machine
from st_paragram.core.tokenizers.bilingual import Sharing
from st_paragram.errors import SettingsError
from st_paragram.learning.training.settings import TrainingSettings
from st_paragram.tools.evaluation.sts.sts_files import find_sts


def main() -> int:
    """Train, score, correlate and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--data", type=Path, required=True, metavar="DIR", help="evaluation data, as `evaluate` takes it"
    )
    parser.add_argument("--text", nargs="+", required=True, metavar="LANG=FILE", help="parallel text, English first")
    parser.add_argument("--sharing", nargs="+", default=["string", "disjoint"], choices=["string", "disjoint"])
    parser.add_argument("--seeds", nargs="+", type=int, default=[1, 2, 3], help="(%(default)s)")
    parser.add_argument("--vocab-size", type=int, default=4000, help="pieces of each language (%(default)s)")
    parser.add_argument("--epochs", type=float, default=20, help="(%(default)s)")
    parser.add_argument("--learning-rate", type=float, default=0.001, help="(%(default)s)")
    parser.add_argument("--output", type=Path, default=Path("language_choice.json"), help="(%(default)s)")
    parser.add_argument("--plot", type=Path, metavar="FILE.png", help="a picture of STS over overlap")
    arguments = parser.parse_args()
    texts = dict(_named(each) for each in arguments.text)
    distances = uriel_distances(list(texts))
    folder = arguments.output.with_suffix(".parts")
    folder.mkdir(parents=True, exist_ok=True)
    settings = TrainingSettings(
        dim=300,
        epochs=arguments.epochs,
        learning_rate=arguments.learning_rate,
        megabatch_size=20,
        anneal_interval=25,
    )
    data = find_sts(arguments.data, only=["2012", "2013", "2014", "2015", "2016"])
    files, sharings = same_english(texts, folder), [Sharing(name) for name in arguments.sharing]
    runs = list(run_languages(files, settings, arguments.vocab_size, sharings, arguments.seeds, data, folder))
    result = {"machine": asdict(describe_machine()), "distances": distances, "runs": [asdict(run) for run in runs]}
    write_json(arguments.output, result)
    if arguments.plot:
        plot_languages(runs, arguments.plot)
    print(f"{runs[0].pairs:,} pairs a language; mean (lowest - highest) of the seeds\n")
    print(f"{language_table(runs, distances)}\n\n{correlation_table(runs, distances)}")
    return 0


def _named(text: str) -> tuple[str, str]:
    language, separator, path = text.partition("=")
    if not (separator and language and path):
        raise SettingsError(f"text {text!r}; give LANG=FILE")
    return language, path


if __name__ == "__main__":
    sys.exit(run_reporting_errors("language_choice", main))
