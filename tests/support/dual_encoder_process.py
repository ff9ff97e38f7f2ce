"""One process of a training of several: `main` in the environment that torchrun makes.

Each leaves its weights in FOLDER/<rank>.safetensors and what it logged in FOLDER/<rank>.json.
"""

import json
import os

import torch
from safetensors.torch import save_file

from st_paragram.core.pair_store import PairStore
from st_paragram.families.muse.tasks.task_stores import TaskStore
from st_paragram.families.muse.training_data import OtherTasks
from support.dual_encoder import Data, new_trainer, tiny

# An odd batch is shared out unevenly; sources of one row leave a process without any.
RUN = {
    "batch_size": 7,
    "steps": 10,
    "dropout": 0.0,
    "learning_rate": 1e-2,
    "schedule": "constant",
    "clip_norm": 5.0,
    "translation_share": 0.25,
    "qa_share": 0.25,
    "response_share": 0.25,
    "nli_share": 0.25,
    "language_power": 0.0,
    "seed": 9,
}


def opened(folder):
    """The stores of all tasks, by the names of their files: `qa-en.h5` and `qa-en.contexts.h5`."""
    stores = []
    for path in sorted(folder.glob("*-*.h5")):
        if path.stem.count("."):
            continue
        task, language = path.stem.split("-")
        contexts = path.with_suffix(".contexts.h5")
        stores.append(TaskStore(task, language, PairStore(path), PairStore(contexts) if contexts.exists() else None))
    return Data(PairStore(folder / "bitext.h5"), OtherTasks(stores))


def untrained(data, folder, negatives="batch", **arguments):
    """A trainer that will make its steps; Adam's epsilon is large, or gradients that are but rounding would count."""
    return new_trainer(data, tiny(**RUN, negatives=negatives), folder, adam_epsilon=0.1, **arguments)


def trained(data, folder, negatives):
    """A trainer that has made its steps."""
    trainer = untrained(data, folder, negatives, logging_steps=1, save_strategy="steps", save_steps=RUN["steps"])
    trainer.train()
    return trainer


def main(data, folder, negatives):
    """Train on a folder of stores."""
    torch.set_num_threads(1)
    trainer = trained(opened(data), folder / "run", negatives)
    rank = os.environ["RANK"]
    assert trainer.args.world_size == 2 and trainer.args.process_index == int(rank)
    save_file(
        {name: tensor.contiguous() for name, tensor in trainer.loss.state_dict().items()},
        folder / f"{rank}.safetensors",
    )
    history = {"log": trainer.state.log_history, "pairs": trainer.pairs_trained}
    (folder / f"{rank}.json").write_text(json.dumps(history))
