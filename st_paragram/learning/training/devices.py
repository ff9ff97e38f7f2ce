"""Torch devices that settings name."""

from __future__ import annotations

import torch

from st_paragram.errors import SettingsError


def check_device(name: str) -> None:
    """Refuse a torch device that cannot be used here; "auto" can.

    Raises:
        SettingsError: It cannot be used.
    """
    try:
        if name != "auto":
            torch.empty(0, device=name)
    except (RuntimeError, AssertionError) as error:
        reason = str(error).split("\n")[0]
        raise SettingsError(f"device is {name!r}, which cannot be used here ({reason}); try cpu") from error
