"""The inputs of commands, and what undisturbed runs make of them."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from hostile.children import Child, command, import_all
from hostile.commands import COMMANDS, make_inputs
from hostile.mirror import address, serve

LIMIT = 120.0  # seconds for a run
ROWS = 3000


@dataclass
class Reference:
    """What undisturbed runs of a command make.

    Attributes:
        folders: Of the outputs, for both kinds of input.
        contents: Of these folders.
        seconds: From the first file beside the output to the end, for the first kind.
    """

    folders: list[Path] = field(default_factory=list)
    contents: list[dict[str, str]] = field(default_factory=list)
    seconds: float = 0.0


class Undisturbed:
    """Makes the inputs at once, and each command's outputs when they are first asked for."""

    def __init__(self, names: Sequence[str], folder: Path, rows: int = ROWS) -> None:
        """Import what the commands need, and make their inputs.

        Args:
            names: Of commands.
            folder: An empty one.
            rows: Of the texts.
        """
        self.folder, self.inputs = folder, folder / "in"
        self._references: dict[str, Reference] = {}
        self.inputs.mkdir()
        os.environ.update(XDG_CACHE_HOME=str(folder / "cache"), HF_HUB_OFFLINE="1")
        import_all(names)
        _finish(Child(lambda: make_inputs(self.inputs, names, rows), folder / "inputs.log"))
        if any(COMMANDS[name].mirror for name in names):
            server = Child(lambda: serve(self.inputs, rows), folder / "mirror.log")
            server.wait(LIMIT, lambda: bool(address(self.inputs)))

    def reference(self, name: str) -> Reference:
        """What undisturbed runs of a command make."""
        if name not in self._references:
            self._references[name] = found = Reference()
            for kind in (0, 1):
                folder = self.folder / f"{name} {kind}"
                COMMANDS[name].begin(self.inputs, folder)
                before = len(list(folder.iterdir()))
                child = Child(
                    command(COMMANDS[name].line(kind, self.inputs, folder), folder), self.folder / f"{name}.log"
                )
                child.wait(LIMIT, lambda folder=folder, before=before: len(list(folder.iterdir())) > before)
                seconds = _finish(child)
                found.seconds = found.seconds or seconds
                found.folders.append(folder)
                found.contents.append(COMMANDS[name].contents(folder))
        return self._references[name]


def _finish(child: Child) -> float:
    seconds = child.wait(LIMIT)
    if child.status:
        raise RuntimeError(f"an undisturbed run ended with {child.status}: {child.said}")
    return seconds
