"""A mining run that is killed."""

from __future__ import annotations

import importlib
import os
import signal

from st_paragram.tools.bitext_mining.miner import mine
from st_paragram.tools.bitext_mining.settings import MiningSettings


def mine_until_killed(texts: list[str], output: str, model: str, settings: MiningSettings, point: str) -> None:
    """Mine, and die where a stage is about to note for the nth time that a result is complete.

    Args:
        texts: The two.
        output: The file.
        model: Directory.
        settings: Of the run.
        point: `module:n`, the stage's module within the package.
    """
    name, call = point.split(":")
    module = importlib.import_module(f"st_paragram.tools.{name}")
    original, calls = module.write_metadata, []

    def dies(*arguments: object) -> None:
        calls.append(1)
        if len(calls) == int(call):
            os.kill(os.getpid(), signal.SIGKILL)
        original(*arguments)

    module.write_metadata = dies
    mine(texts, output, model, settings)
