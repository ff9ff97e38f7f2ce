"""Train p-sp-en on English paraphrases (ParaNMT style).

    st-paragram prepare --lang en --text paraphrases.tsv.xz --output data/en-en.h5
    python recipes/train_paraphrase.py
    python -c "from sentence_transformers import SentenceTransformer as S; print(S('p-sp-en').encode(['hello']).shape)"

Without data/en-en.h5 and --data it trains on the built-in paraphrases, a demonstration. Ctrl-C saves a checkpoint;
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
from st_paragram.training.run import remove_checkpoints, save, train
from st_paragram.training.settings import TrainingSettings
from st_paragram.training.training_data import find_training_data

CONFIGS = Path(__file__).parent / "configs"


def main() -> int:
    """Train, save and report."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_training_options(parser, tuning=False)
    arguments = parser.parse_args()

    output = Path(arguments.output or "p-sp-en")
    checkpoints = output.with_name(f"{output.name}.checkpoints")
    model_directory.check_free(output, arguments.overwrite)
    development = development_pairs(arguments.dev, "en", arguments.force_test_set)
    translations = None
    if arguments.dev_bitext:
        translations = development_translations(arguments.dev_bitext, "en", arguments.force_test_set)
    given = overrides(arguments)
    TrainingSettings.read(arguments.config, given)  # complain before the data is prepared
    data = find_training_data("en", arguments.data, arguments.vocab_size, arguments.workers)
    config = arguments.config or CONFIGS / ("small.yaml" if data.built_in else "paraphrase.yaml")
    settings = TrainingSettings.read(config, given)
    print(f"training on {data.description}: {len(data.store):,} pairs, {settings.epochs:g} epochs", flush=True)

    result = train(data.store, settings, development, checkpoints, arguments.resume, translations)
    save(result, data.store, development, output, data.description, arguments.overwrite)
    remove_checkpoints(checkpoints)

    before, after = 100 * result.report.before.pearson, 100 * result.report.after.pearson
    print(f"{development.name}, Pearson x 100: {before:.1f} before training, {after:.1f} after")
    for score in result.report.translations:
        print(f"{score.data}, translations found {score.model}: {100 * score.accuracy:.1f} %")
    print(
        f"trained for {result.report.seconds:.0f} s at {result.report.pairs_per_second:.0f} pairs/s; model in {output}"
    )
    return 0


if __name__ == "__main__":
    sys.exit(run_reporting_errors("train_paraphrase", main))
