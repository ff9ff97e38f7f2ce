"""Train a multilingual dual encoder (ACL 2020) on translations, questions and answers, responses
and inference.

    python recipes/train_muse.py --langs es de --bitext data/en-de-es.h5 --qa qa --nli nli
    python recipes/train_muse.py --architecture transformer --langs es --bitext texts --dim 1024
    python recipes/train_muse.py --langs es de --bitext texts --config muse_transformer

`texts` is a folder of files en-LANG.tsv; the folders of other tasks have files LANG.tsv. After
Ctrl-C, --resume continues. `st-paragram train muse` trains the same model, and has more options.
"""

import argparse
import sys
from dataclasses import replace
from pathlib import Path

import st_paragram
from st_paragram.cli.main import run_reporting_errors

SETTINGS = ("architecture", "init", "dim", "batch_size", "steps")


def main() -> int:
    """Train a model, and return the exit status."""
    parser = argparse.ArgumentParser(description="Train a dual encoder on several tasks.")
    add = parser.add_argument
    add("--langs", nargs="+", required=True, help="languages other than English, e.g. es de")
    add("--bitext", help="a pair store, a folder of texts or built-in (default: data/en-LANG.h5)")
    for task, about in (
        ("qa", "questions and answers"),
        ("responses", "responses"),
        ("nli", "NLI"),
    ):
        add(f"--{task}", type=Path, help=f"folder of {about}, files LANG.tsv")
    add("--config", help="muse_small (default), muse_cnn, muse_transformer, or a YAML file")
    settings = parser.add_argument_group("settings", argument_default=argparse.SUPPRESS)
    settings.add_argument("--architecture", choices=("cnn", "transformer"), help="kind of encoder")
    settings.add_argument("--init", help="averaging model whose embeddings of tokens start it")
    settings.add_argument("--dim", type=int, help="dimensions of an embedding")
    settings.add_argument("--batch-size", type=int, help="pairs per batch")
    settings.add_argument("--steps", type=int, help="number of updates")
    add("--output", type=Path, help="model directory (default: muse-ARCHITECTURE)")
    add("--overwrite", action="store_true", help="replace an existing model directory")
    add("--resume", action="store_true", help="continue from the last checkpoint")
    options = parser.parse_args()

    # Translations: a store of all languages, or a text per language.
    languages = sorted(set(options.langs))
    language = "-".join(languages)
    data = [options.bitext] if options.bitext else []
    if options.bitext and options.bitext.endswith(".h5"):
        language = st_paragram.PairStore(options.bitext).languages[1]
    elif options.bitext and Path(options.bitext).is_dir():
        data = [f"en-{code}:{options.bitext}/en-{code}.tsv" for code in languages]

    # The other tasks. Each step trains on one task and one language.
    folders = {"qa": options.qa, "response": options.responses, "nli": options.nli}
    tasks = {task: folder for task, folder in folders.items() if folder}

    # The whole run: the mean of token embeddings and a network, with towers for questions and
    # answers. Settings replace those of the configuration.
    run = st_paragram.TrainingRun(
        language=language,
        output=options.output or Path("muse"),
        data=data,
        family="muse",
        more=st_paragram.MuseData(tasks, languages),
        config=options.config,
        overrides={name: value for name, value in vars(options).items() if name in SETTINGS},
        resume=options.resume,
        overwrite=options.overwrite,
    )
    if options.output is None:
        run = replace(run, output=Path(f"muse-{run.settings.architecture}"))
    record = st_paragram.run_training(run)
    for score in record.scores:
        print(f"{score.model}: {score.data}, Pearson x 100 {100 * score.correlation.pearson:.1f}")

    # Sentences, questions and answers have separate embeddings.
    model = st_paragram.load(run.output)
    question = model.encode_query(["where is the station?"])
    answers = model.encode_document(["The station is behind the bridge.", "Two cats sleep."])
    print("cosines of a question and two answers:", model.similarity(question, answers))
    print(f"model in {run.output}")
    return 0


if __name__ == "__main__":
    sys.exit(run_reporting_errors("train_muse", main))
