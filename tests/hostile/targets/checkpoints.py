"""Folders of checkpoints with files damaged, emptied, removed or renamed, then resumed from.

A damaged checkpoint must be passed over or refused. One that was signed again after the damage, as an attacker would,
may give other weights, or end in any error of Python's, but not in a crash.
"""

from __future__ import annotations

import json
import os
import pickle
import shutil
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from support.data import make_pairs, write_store
from torch import Tensor, nn

from hostile.damage import damaged, edited_json, json_bytes
from st_paragram.core.pair_store import PairStore
from st_paragram.core.tokenizers.sentencepiece import SentencePieceTokenizer, train_vocabulary
from st_paragram.errors import DAMAGED, SettingsError, StoreError
from st_paragram.learning.models.encoder import pipeline
from st_paragram.learning.modules.sentencepiece_embedding import SentencePieceEmbedding
from st_paragram.learning.training import checkpoints
from st_paragram.learning.training.arguments import StoreTrainingArguments
from st_paragram.learning.training.mega_batch.arguments import MegaBatchTrainingArguments
from st_paragram.learning.training.mega_batch.trainer import MegaBatchTrainer
from st_paragram.learning.training.store_trainer import StoreTrainer

TRIES, QUICK = 1_000, 3

_STEPS, _SAVED = 9, (4, 8)
_SETTINGS: dict[str, Any] = {"per_device_train_batch_size": 3, "learning_rate": 1e-2, "seed": 1, "logging_steps": 100}


class _Scaled(nn.Module):
    """A loss with a parameter of its own."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model, self.dense = model, nn.Linear(8, 3)

    def forward(self, features: list[dict[str, Tensor]], labels: Tensor | None = None) -> Tensor:
        first, second = (self.dense(self.model(column)["sentence_embedding"]) for column in features)
        return (first - second).square().mean() + 1 / (1 + first.std())


@dataclass(frozen=True)
class Run:
    """A training run: how its trainer is made, its folder of checkpoints, its weights at the end."""

    make: Callable[..., StoreTrainer]
    folder: Path
    weights: Tensor


def prepare(folder: Path) -> list[Run]:
    """A run with mega-batches and `RowLazyAdam`, and one with dense Adam and a loss with parameters."""
    os.environ["XDG_CACHE_HOME"] = str(folder)
    pairs = make_pairs(30)
    vocabulary = SentencePieceTokenizer(train_vocabulary((text for pair in pairs for text in pair), 150))
    store = write_store(folder / "x.h5", pairs, vocabulary)
    return [_trained(make, folder / make.__name__, store) for make in (_mega_batches, _dense)]


def _trained(make: Callable[..., StoreTrainer], folder: Path, store: PairStore) -> Run:
    trainer = make(folder, store, save_strategy="steps", save_steps=_SAVED[0], save_total_limit=9)
    trainer.train()
    shutil.rmtree(folder / f"checkpoint-{_STEPS}", ignore_errors=True)
    return Run(lambda where: make(where, store, save_strategy="no"), folder, _weights(trainer))


def _mega_batches(folder: Path, store: PairStore, **settings: Any) -> StoreTrainer:
    arguments = MegaBatchTrainingArguments(
        str(folder), max_steps=_STEPS, use_cpu=True, megabatch_size=3, anneal_interval=0, **_SETTINGS, **settings
    )
    return MegaBatchTrainer(_model(store), arguments, store)


def _dense(folder: Path, store: PairStore, **settings: Any) -> StoreTrainer:
    arguments = StoreTrainingArguments(
        str(folder), max_steps=_STEPS, use_cpu=True, row_lazy_adam=False, **_SETTINGS, **settings
    )
    model = _model(store)
    return StoreTrainer(model, arguments, store, _Scaled(model))


def _model(store: PairStore) -> Any:
    torch.manual_seed(0)
    return pipeline(SentencePieceEmbedding(store.tokenizer(), 8, dropout=0.2), device="cpu")


def _weights(trainer: StoreTrainer) -> Tensor:
    return trainer.model[0].embedding.weight.detach().clone()


def attempt(shared: list[Run], rng: np.random.Generator, folder: Path) -> str:
    """Damage checkpoints, and resume."""
    run = shared[rng.integers(len(shared))]
    where = folder / "run"
    shutil.copytree(run.folder, where)
    newest = where / f"checkpoint-{_SAVED[-1]}"
    attacked = rng.random() < 0.5
    if attacked:
        _attack(newest, rng)
    else:
        for _ in range(int(rng.geometric(0.5))):
            _DAMAGES[rng.integers(len(_DAMAGES))](where, rng)
    trainer = run.make(where)
    try:
        trainer.train(resume_from_checkpoint=True)
    except (SettingsError, StoreError) as error:
        told = str(where) in str(error) or (attacked and str(error).startswith("loss is "))
        assert "\n" not in str(error) and told, error
        return "attacked: refused" if attacked else "refused"
    except Exception:
        if not attacked:
            raise
        return "attacked: an error in training"
    same = torch.equal(_weights(trainer), run.weights)
    if attacked:
        return f"attacked: {'the same' if same else 'other'} weights"
    if not same:
        return "wrong: other weights"
    return "resumed from an earlier one" if trainer._initial_global_step < _SAVED[-1] else "unharmed"


# Damage as it happens.


def _a_file(where: Path, rng: np.random.Generator) -> Path:
    """A file of a checkpoint, of the newest one more often than not."""
    folders = sorted((path for path in where.iterdir() if path.is_dir()), key=lambda path: path.name)
    folder = folders[-1] if rng.random() < 0.6 else folders[rng.integers(len(folders))]
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    return files[rng.integers(len(files))] if files else folder / "nothing"


def _damage(where: Path, rng: np.random.Generator) -> None:
    if (path := _a_file(where, rng)).is_file():
        path.write_bytes(damaged(path.read_bytes(), rng))


def _empty(where: Path, rng: np.random.Generator) -> None:
    _a_file(where, rng).write_bytes(b"")


def _remove(where: Path, rng: np.random.Generator) -> None:
    _a_file(where, rng).unlink(missing_ok=True)


def _rename(where: Path, rng: np.random.Generator) -> None:
    path = _a_file(where, rng)
    if path.is_file():
        path.rename(path.with_name(f"{path.name}.bak"))


def _edit_json(where: Path, rng: np.random.Generator) -> None:
    path = _a_file(where, rng).with_name(["files.json", "trainer_state.json"][rng.integers(2)])
    try:
        path.write_bytes(json_bytes(edited_json(json.loads(path.read_bytes()), rng)))
    except (OSError, ValueError):
        path.write_bytes(b"{")


def _swap(where: Path, rng: np.random.Generator) -> None:
    """A file of one checkpoint in another."""
    path = _a_file(where, rng)
    others = [other / path.name for other in where.iterdir() if other != path.parent and (other / path.name).is_file()]
    if others and path.is_file():
        shutil.copy(others[0], path)


def _rename_checkpoint(where: Path, rng: np.random.Generator) -> None:
    folder = _a_file(where, rng).parent
    name = ["checkpoint-99", "checkpoint-8-backup", "checkpoint-", "checkpoint-08", "old"][rng.integers(5)]
    if folder.parent == where and not (where / name).exists():
        folder.rename(where / name)


def _neighbour(where: Path, rng: np.random.Generator) -> None:
    """Something strange beside the checkpoints, or in one."""
    name = [
        *("checkpoint-47-backup", "checkpoint-50", "checkpoint-x", "checkpoint--1", "checkpoint-1e3", "checkpoint-٣"),
        *("checkpoint-999999999999999999999", "checkpoint-8/notes.txt", "checkpoint-8/scaler.pt"),
    ][rng.integers(9)]
    path, kind = where / name, rng.integers(4)
    if path.exists() or path.is_symlink() or not path.parent.is_dir():
        return
    if kind == 0:
        path.write_bytes(rng.bytes(20))
    elif kind == 1:
        path.mkdir()
        (path / "files.json").write_text("{}")
    elif kind == 2:
        path.symlink_to(path)
    elif (where / "checkpoint-4").is_dir() and path.parent == where:
        shutil.copytree(where / "checkpoint-4", path, symlinks=True)


_DAMAGES = (
    *(_damage, _damage, _damage, _empty, _remove, _rename),
    *(_edit_json, _swap, _rename_checkpoint, _neighbour, _neighbour),
)


# Damage on purpose, with the list of files written again.

_ATTACKED = (
    *("optimizer.pt", "optimizer.pt", "optimizer.pt", "scheduler.pt", "rng_state.pth", "rng_state.pth"),
    *("trainer_state.json", "trainer_state.json", "mega_batch.npz", "loss.safetensors", "model.safetensors"),
)


def _attack(checkpoint: Path, rng: np.random.Generator) -> None:
    stores = json.loads((checkpoint / checkpoints.FILE_LIST).read_bytes())["stores"]
    for _ in range(int(rng.geometric(0.7))):
        path = checkpoint / str(rng.choice(_ATTACKED))
        if not path.is_file() or rng.random() < 0.1:
            files = [other for other in sorted(checkpoint.iterdir()) if other.is_file()]
            path = files[rng.integers(len(files))]
        if rng.random() < 0.25:
            path.write_bytes(damaged(path.read_bytes(), rng))
            continue
        try:
            _EDITS.get(path.suffix, _edit_bytes)(path, rng)
        except (*DAMAGED, pickle.UnpicklingError, SafetensorError, zipfile.BadZipFile):
            path.write_bytes(b"")  # damaged by an earlier edit, or beyond what its writer can write
    checkpoints.seal(checkpoint, stores)
    if rng.random() < 0.05:
        listed = checkpoint / checkpoints.FILE_LIST
        listed.write_bytes(json_bytes(json.loads(listed.read_bytes()) | {"stores": edited_json(stores, rng)}))


def _edit_bytes(path: Path, rng: np.random.Generator) -> None:
    path.write_bytes(damaged(path.read_bytes(), rng))


def _edit_text(path: Path, rng: np.random.Generator) -> None:
    path.write_bytes(json_bytes(edited_json(json.loads(path.read_bytes()), rng)))


def _edit_torch(path: Path, rng: np.random.Generator) -> None:
    torch.save(_edited_state(torch.load(path, weights_only=True), rng), path)


def _edit_numpy(path: Path, rng: np.random.Generator) -> None:
    with np.load(path) as saved:
        arrays = dict(saved)
    np.savez(path, **{name: each.numpy() for name, each in _edited_state(_tensors(arrays), rng).items()})


def _tensors(arrays: dict[str, Any]) -> dict[str, Tensor]:
    return {name: torch.from_numpy(array) for name, array in arrays.items()}


def _edit_safetensors(path: Path, rng: np.random.Generator) -> None:
    state = _edited_state(load_file(path), rng)
    save_file({name: tensor.contiguous() for name, tensor in state.items() if isinstance(tensor, Tensor)}, path)


_EDITS: dict[str, Callable[[Path, np.random.Generator], None]] = {
    ".json": _edit_text,
    ".pt": _edit_torch,
    ".pth": _edit_torch,
    ".npz": _edit_numpy,
    ".safetensors": _edit_safetensors,
}


def _edited_state(state: Any, rng: np.random.Generator) -> Any:
    """What torch has saved, with one of its values edited."""
    places = list(_places(state))
    container, key = places[rng.integers(len(places))]
    value = container[key]
    kind = rng.random()
    if kind < 0.1:
        del container[key]
    elif kind < 0.2 and isinstance(container, dict):
        container["extra" if rng.random() < 0.5 else 7] = value
    elif isinstance(value, Tensor) and kind < 0.9:
        container[key] = _edited_tensor(value, rng)
    elif isinstance(value, int | float) and kind < 0.6:
        container[key] = [value + 1, -value, value * 10**6, float("nan"), 2**62, -(10**9), 0][rng.integers(7)]
    else:
        container[key] = [None, "x", [], {}, torch.zeros(2), 1, 1.5, True, (1, 2), 10**30][rng.integers(10)]
    return state


def _places(value: Any) -> Any:
    for key in list(value) if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ():
        yield value, key
        yield from _places(value[key])


def _edited_tensor(value: Tensor, rng: np.random.Generator) -> Tensor:
    """A tensor of other numbers, another type or another shape."""
    types = [torch.float32, torch.float64, torch.float16, torch.int64, torch.int32, torch.uint8, torch.bool]
    kind = rng.integers(10)
    if kind == 0:
        return value.to(types[rng.integers(len(types))])
    if kind == 1:
        return value.reshape(1, -1)
    if kind == 2:
        return value.reshape(-1)[: rng.integers(value.numel() + 1)]
    if kind == 3:
        return torch.cat([value.reshape(-1), value.reshape(-1)])
    if kind == 4:
        return value[..., None] * torch.ones(3).to(value.dtype)
    flat = value.clone().reshape(-1)
    if flat.numel():
        where = slice(None) if rng.random() < 0.3 else int(rng.integers(flat.numel()))
        strange = [-1, 1, 7, 10**7, -(10**9), 2**62, float("nan"), float("inf"), 1e30, 300]
        flat[where] = strange[rng.integers(len(strange))]
    return flat.reshape(value.shape)
