"""Train p-sp-en on English paraphrases (ParaNMT style), step by step.

    st-paragram prepare --lang en --text paraphrases.tsv.xz --output data/en-en.h5
    python recipes/train_paraphrase.py
    python recipes/try_model.py p-sp-en --lang en

Without data/en-en.h5 and --data it trains on built-in paraphrases: a demonstration. After Ctrl-C,
--resume continues. `st-paragram train paraphrase` trains the same model, and has more options.
"""

import argparse
import os
import sys
from dataclasses import asdict
from pathlib import Path

os.environ.setdefault("GOMP_SPINCOUNT", "1000")  # waiting threads yield to other programs

import torch
from sentence_transformers import SentenceTransformer
from transformers import set_seed

import st_paragram
from st_paragram.cli.main import run_reporting_errors

SETTINGS = {"dim": int, "epochs": float, "batch_size": int, "learning_rate": float}
SETTINGS |= {"dropout": float, "margin": float, "megabatch_size": int, "anneal_interval": int}


def main() -> int:
    """Train a model, and return the exit status."""
    parser = argparse.ArgumentParser(description="Train p-sp-en on paraphrases.")
    add = parser.add_argument
    add("--data", action="append", default=[], help="a pair store, a text or built-in")
    add("--vocab-size", type=int, help="vocabulary size for a text")
    add("--output", type=Path, default=Path("p-sp-en"), help="model directory (default: p-sp-en)")
    add("--overwrite", action="store_true", help="replace an existing model directory")
    add("--resume", action="store_true", help="continue from the last checkpoint")
    presets = ("paraphrase", "paper_paraphrase", "small", "demo")
    add("--config", choices=presets, help="settings (default: paraphrase)")
    for name, kind in SETTINGS.items():
        option = f"--{name.replace('_', '-')}"
        add(option, type=kind, default=argparse.SUPPRESS, help="replaces the setting of --config")
    options = parser.parse_args()

    run = st_paragram.TrainingRun(
        language="en",
        output=options.output,
        data=options.data,
        config=options.config,
        default_config="paraphrase",
        overrides={name: value for name, value in vars(options).items() if name in SETTINGS},
        vocab_size=options.vocab_size,
        resume=options.resume,
        overwrite=options.overwrite,
    )
    with run.started():  # a wrong setting, missing data or an existing output end the run here
        settings = run.settings
        set_seed(settings.seed)

        # The pairs, tokenized. A text is prepared once. The last pairs are paraphrases to find.
        store, held_out = run.store(), None
        if not run.source.built_in:
            store, held_out = st_paragram.hold_out(store)

        # The model: the mean of the embeddings of sentencepiece tokens.
        embedding = st_paragram.SentencePieceEmbedding(
            store.tokenizer(), settings.dim, dropout=settings.dropout
        )
        pool = st_paragram.MeanPool(settings.dim)
        model = SentenceTransformer(modules=[embedding, pool], similarity_fn_name="cosine")

        # Development data: graded pairs of English, and the paraphrases.
        graded = st_paragram.development_pairs(None, "en")
        development = st_paragram.Development(model, graded, held_out)
        development.measure("before training")

        # The loss keeps a margin between a paraphrase and the hardest of many other sentences.
        loss = st_paragram.MarginHardNegativeLoss(model, margin=settings.margin)
        arguments = st_paragram.MegaBatchTrainingArguments(
            output_dir=str(run.checkpoints),
            num_train_epochs=settings.epochs,
            per_device_train_batch_size=settings.batch_size,
            megabatch_size=settings.megabatch_size,
            anneal_interval=settings.anneal_interval,
            negatives=settings.negatives,
            mining_precision=settings.mining_precision,
            learning_rate=settings.learning_rate,
            lr_scheduler_type=settings.schedule,
            eval_strategy="epoch",
            seed=settings.seed,
            use_cpu=not torch.cuda.is_available(),
        )
        trainer = st_paragram.MegaBatchTrainer(
            model, arguments, store, loss, evaluator=development.evaluator
        )
        trainer.settings = asdict(settings)  # --resume refuses other settings
        trainer.train(resume_from_checkpoint=options.resume)
        development.measure("after training")

        # The model directory and its card. Plain sentence-transformers can open it.
        run.save(trainer, development)
    print(f"model in {run.output}; its README.md has the scores before and after training")
    return 0


if __name__ == "__main__":
    sys.exit(run_reporting_errors("train_paraphrase", main))
