"""Train p-sp-LANG on pairs of English and another language.

    st-paragram prepare --lang es --text en-es.tsv.xz --output data/en-es.h5
    python recipes/train_bitext.py --lang es
    python -c "from sentence_transformers import SentenceTransformer as S; print(S('p-sp-es').encode(['hola']).shape)"

Without data/en-es.h5 and --data it trains on the built-in bitext, a demonstration. Ctrl-C saves a checkpoint;
--resume goes on from it.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from st_paragram.cli.main import run_reporting_errors
from st_paragram.cli.training_options import add_training_options, overrides
from st_paragram.evaluation.development import development_pairs, development_translations
from st_paragram.models import directory as model_directory
from st_paragram.training.run import remove_checkpoints, save, train, tune
from st_paragram.training.settings import TrainingSettings
from st_paragram.training.training_data import find_training_data

CONFIGS = Path(__file__).parent / "configs"


def main() -> int:
    """Train, save and report."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lang", required=True, help="language of the other side, e.g. es")
    add_training_options(parser)
    arguments = parser.parse_args()

    output = Path(arguments.output or f"p-sp-{arguments.lang}")
    checkpoints = output.with_name(f"{output.name}.checkpoints")
    model_directory.check_free(output, arguments.overwrite)
    development = development_pairs(arguments.dev, arguments.lang, arguments.force_test_set)
    translations = None
    if arguments.dev_bitext:
        translations = development_translations(arguments.dev_bitext, arguments.lang, arguments.force_test_set)
    given = overrides(arguments)
    TrainingSettings.read(arguments.config, given)  # complain before the data is prepared
    data = find_training_data(arguments.lang, arguments.data, arguments.vocab_size, arguments.workers)
    config = arguments.config or CONFIGS / ("small.yaml" if data.built_in else "paper.yaml")
    settings = TrainingSettings.read(config, given)
    print(f"training on {data.description}: {len(data.store):,} pairs, {settings.epochs:g} epochs", flush=True)

    if arguments.tune:
        best, reports = tune(data.store, settings, development, checkpoints, arguments.resume, translations)
        for report in reports:
            size = report.settings.megabatch_size
            print(f"dropout {report.settings.dropout}  M {size}  {development.name} {100 * report.after.pearson:.1f}")
    else:
        best = train(data.store, settings, development, checkpoints, arguments.resume, translations)
    save(best, data.store, development, output, data.description, arguments.overwrite)
    remove_checkpoints(checkpoints)

    before, after = 100 * best.report.before.pearson, 100 * best.report.after.pearson
    print(f"{development.name}, Pearson x 100: {before:.1f} before training, {after:.1f} after")
    for score in best.report.translations:
        print(f"{score.data}, translations found {score.model}: {100 * score.accuracy:.1f} %")
    seconds, rate = best.report.seconds, best.report.pairs_per_second
    print(f"trained for {seconds:.0f} s at {rate:.0f} pairs/s; model in {output}")
    return 0


if __name__ == "__main__":
    sys.exit(run_reporting_errors("train_bitext", main))
