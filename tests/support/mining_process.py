"""A mining run that is killed."""

from __future__ import annotations

import os
import signal
from pathlib import Path

from st_paragram.tools.bitext_mining.miner import mine
from st_paragram.tools.bitext_mining.settings import MiningSettings


def mine_until_killed(texts: list[str], output: str, model: str, settings: MiningSettings, call: int) -> None:
    """Mine, and die where a result is complete for the nth time and is about to take its name."""
    original, calls = Path.replace, []

    def dies(path: Path, target: Path) -> Path:
        calls.append(1)
        if len(calls) == call:
            os.kill(os.getpid(), signal.SIGKILL)
        return original(path, target)

    Path.replace = dies  # type: ignore[assignment,method-assign]
    mine(texts, output, model, settings)
