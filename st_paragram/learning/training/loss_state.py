"""The parameters that losses have beside the model's, in a checkpoint: a classifier, the decoders of an autoencoder."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from st_paragram.core.file_modes import follow_umask
from st_paragram.errors import SettingsError

_FILE = "loss.safetensors"


def save(losses: Mapping[str, nn.Module], model: nn.Module, folder: Path) -> None:
    """Write what the losses have of their own, if anything.

    Args:
        losses: by name.
        model: whose parameters and buffers are left out.
        folder: of the checkpoint.
    """
    if state := _own_tensors(losses, model):
        save_file({name: tensor.detach().cpu().contiguous() for name, tensor in state.items()}, folder / _FILE)
        follow_umask([folder / _FILE])


def load(losses: Mapping[str, nn.Module], model: nn.Module, folder: Path) -> None:
    """Read back what `save` wrote; arguments as there.

    Raises:
        SettingsError: the checkpoint is of other losses.
    """
    path = folder / _FILE
    state, saved = _own_tensors(losses, model), load_file(path) if path.is_file() else {}
    shapes, found = ({name: tensor.shape for name, tensor in tensors.items()} for tensors in (state, saved))
    if shapes != found:
        raise SettingsError(f"{folder}: a checkpoint of other losses than this run's; resume with the same losses")
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
