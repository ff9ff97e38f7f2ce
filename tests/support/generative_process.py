"""One process of a training of several: `main` in the environment that torchrun makes.

Each leaves its weights in FOLDER/<rank>.safetensors and what it logged in FOLDER/<rank>.json.
"""

import json
import os

import torch
from safetensors.torch import save_file

from st_paragram.core.pair_store import PairStore
from support.generative import new_trainer, tiny

RUN = {"accumulate": 2, "epochs": 1.0, "clip_norm": 5.0, "learning_rate": 1e-2, "warmup_updates": 0, "dropout": 0.0}


def untrained(store, folder, **arguments):
    """A trainer that will make two updates.

    Adam's epsilon is large: the bias of keys has a gradient of 0 but for rounding, of which a small one makes steps.
    """
    return new_trainer(store, tiny(**RUN), folder, max_steps=2, adam_epsilon=0.1, **arguments)


def trained(store, folder):
    """A trainer that has made its updates."""
    trainer = untrained(store, folder, logging_steps=1, save_strategy="steps", save_steps=2)
    trainer.train()
    return trainer


def main(path, folder):
    """Train on a store."""
    torch.set_num_threads(1)
    trainer = trained(PairStore(path), folder / "run")
    rank = os.environ["RANK"]
    assert trainer.args.world_size == 2 and trainer.args.process_index == int(rank)
    weights = {name: tensor.contiguous() for name, tensor in trainer.loss.state_dict().items()}
    save_file(weights, folder / f"{rank}.safetensors")
    history = {"log": trainer.state.log_history, "pairs": trainer.pairs_trained}
    (folder / f"{rank}.json").write_text(json.dumps(history))
