"""What a checkpoint holds besides the model: the parameters of losses, random generators, and the optimizer's state.

Losses have parameters where they have a classifier, say, or the decoders of an autoencoder. Random generators are kept
as plain numbers and tensors, for which nothing is unpickled. Whether an optimizer's state is what this run would have
written, digests do not show.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import load_file, save
from torch import Tensor, nn

from st_paragram.errors import SettingsError

_LOSSES = "loss.safetensors"
_MAY_DIFFER = {"params", "lr", "initial_lr"}
_PYTHONS_VERSION = 3
_PARTS = "words", "place", "normal"  # of the Mersenne Twister, which Python and numpy have

#: The options of each of an optimizer's groups.
Options = list[dict[str, Any]]


def save_losses(losses: Mapping[str, nn.Module], model: nn.Module, folder: Path) -> None:
    """Write the losses' parameters, if any.

    Args:
        losses: by name.
        model: whose parameters and buffers are left out.
        folder: of the checkpoint.
    """
    if state := _own_tensors(losses, model):
        tensors = {name: tensor.detach().cpu().contiguous() for name, tensor in state.items()}
        (folder / _LOSSES).write_bytes(save(tensors))


def load_losses(losses: Mapping[str, nn.Module], model: nn.Module, folder: Path) -> None:
    """Read back what `save_losses` wrote; arguments as there.

    Raises:
        SettingsError: the checkpoint is of other losses.
    """
    path = folder / _LOSSES
    state, saved = _own_tensors(losses, model), load_file(path) if path.is_file() else {}
    shapes, found = ({name: tensor.shape for name, tensor in tensors.items()} for tensors in (state, saved))
    if shapes != found:
        raise SettingsError(f"{folder}: the checkpoint has different losses; resume with the same losses")
    with torch.no_grad():
        for name, tensor in state.items():
            tensor.copy_(saved[name])


def _own_tensors(losses: Mapping[str, nn.Module], model: nn.Module) -> dict[str, Tensor]:
    """Parameters and buffers that are not the model's, each once, however many losses share it."""
    seen = {id(tensor) for tensor in model.state_dict(keep_vars=True).values()}
    state = {}
    for loss_name, loss in losses.items():
        for name, tensor in loss.state_dict(keep_vars=True).items():
            if id(tensor) not in seen:
                seen.add(id(tensor))
                state[f"{loss_name}.{name}"] = tensor
    return state


def save_generators(path: Path) -> None:
    """Write the states of Python's, numpy's and torch's generators, that of the GPU included."""
    _, (*words, place), normal = random.getstate()
    state: dict[str, Any] = {"python": _mersenne_twister(words, place, normal), "cpu": torch.random.get_rng_state()}
    numpys: Any = np.random.get_state()
    _, numpys_words, place, has_normal, normal = numpys
    state["numpy"] = _mersenne_twister(numpys_words.tolist(), place, normal if has_normal else None)
    if torch.cuda.is_available():
        state["cuda"] = torch.cuda.random.get_rng_state()
    torch.save(state, path)


def load_generators(path: Path) -> None:
    """Set the generators as `save_generators` found them.

    Raises:
        Exception: anything, where the file holds something else.
    """
    state = torch.load(path, map_location="cpu", weights_only=True)
    words, place, normal = (state["python"][name] for name in _PARTS)
    random.setstate((_PYTHONS_VERSION, (*words.tolist(), place), normal))
    words, place, normal = (state["numpy"][name] for name in _PARTS)
    if not 0 <= place <= len(words):  # numpy would read beyond the words
        raise ValueError(f"a Mersenne Twister at {place} of {len(words)} words")
    np.random.set_state(("MT19937", words.numpy().astype(np.uint32), place, int(normal is not None), normal or 0.0))
    torch.random.set_rng_state(state["cpu"])
    if torch.cuda.is_available() and "cuda" in state:
        torch.cuda.random.set_rng_state(state["cuda"])


def _mersenne_twister(words: list[int], place: int, normal: float | None) -> dict[str, Any]:
    return {"words": torch.tensor(words, dtype=torch.int64), "place": place, "normal": normal}


def options_of(optimizer: torch.optim.Optimizer) -> Options:
    """The options that a checkpoint must not change: all but the learning rate."""
    return [{name: group[name] for name in group.keys() - _MAY_DIFFER} for group in optimizer.param_groups]


def check_optimizer(optimizer: torch.optim.Optimizer, options: Options) -> None:
    """Look at an optimizer after its state was loaded.

    Args:
        optimizer: any; `RowLazyAdam` checks its state itself.
        options: as they were before.

    Raises:
        ValueError: it has other options, or moments that do not suit its parameters, which torch's kernels trust.
    """
    if options_of(optimizer) != options:
        raise ValueError("an optimizer with other options")
    for parameter, state in optimizer.state.items():
        for name in {"exp_avg", "exp_avg_sq"} & state.keys():
            if state[name].shape != parameter.shape:
                raise ValueError(f"{name} is not of the shape {tuple(parameter.shape)}")
