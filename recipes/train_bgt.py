"""Train the bilingual generative transformer (EMNLP 2020), an ablation or a baseline, on English
and another language.

    python recipes/train_bgt.py --lang es --data en-es.tsv.xz
    python recipes/train_bgt.py --lang es --data en-es.tsv.xz --objective bilingual-trans
    python recipes/train_bgt.py --lang fr --config bgt_paper

After Ctrl-C, --resume continues. `st-paragram train bgt` trains the same model, and has more
options.
"""

import argparse
import sys
from pathlib import Path

import st_paragram
from st_paragram.cli.main import run_reporting_errors

SETTINGS = ("objective", "epochs")
MODELS = ["bgt", "no-langvars", "no-prior"]
BASELINES = ["bilingual-trans", "english-trans", "english-ae", "english-vae"]


def main() -> int:
    """Train a model, and return the exit status."""
    parser = argparse.ArgumentParser(description="Train a generative model on bitext.")
    add = parser.add_argument
    add("--lang", required=True, help="language other than English, e.g. es")
    add("--data", action="append", default=[], help="a pair store, a text or built-in")
    add("--config", help="bgt_small (default), bgt_paper, or a YAML file of settings")
    settings = parser.add_argument_group("settings", argument_default=argparse.SUPPRESS)
    settings.add_argument(
        "--objective", choices=MODELS + BASELINES, help="model to train (default: bgt)"
    )
    settings.add_argument("--epochs", type=float, help="passes over the pairs")
    add("--output", type=Path, help="model directory (default: OBJECTIVE-LANG)")
    add("--overwrite", action="store_true", help="replace an existing model directory")
    add("--resume", action="store_true", help="continue from the last checkpoint")
    options = parser.parse_args()

    # The whole run. Two decoders write the sentences of a pair from one variable for the shared
    # meaning, and one per language for the rest. Settings replace those of the configuration.
    objective = getattr(options, "objective", "bgt")
    run = st_paragram.TrainingRun(
        language=options.lang,
        output=options.output or Path(f"{objective}-{options.lang}"),
        data=options.data,
        family="bgt",
        config=options.config,
        overrides={name: value for name, value in vars(options).items() if name in SETTINGS},
        resume=options.resume,
        overwrite=options.overwrite,
    )
    record = st_paragram.run_training(run)

    # The scores on graded pairs, and the last values of the parts of the loss in nats per pair.
    for score in record.scores:
        print(f"{score.model}: {score.data}, Pearson x 100 {100 * score.correlation.pearson:.1f}")
    losses = [values for values in record.history if "loss" in values]
    for name in ("loss", "reconstruction", "translation", "kl_semantic"):
        if losses and name in losses[-1]:
            print(f"{name}: {losses[-1][name]:.2f}")

    # A sentence's embedding is the mean of the meaning variable.
    model = st_paragram.load(run.output)
    embeddings = model.encode(["The house is old.", "The building is ancient.", "Two cats sleep."])
    print("cosines of three sentences:", model.similarity(embeddings, embeddings))
    print(f"model in {run.output}; `st-paragram generate {run.output}` writes sentences")
    return 0


if __name__ == "__main__":
    sys.exit(run_reporting_errors("train_bgt", main))
