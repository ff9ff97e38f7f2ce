"""The models that the page can show: found at once, each read when it is first picked."""

from __future__ import annotations

import threading
from collections.abc import Callable, Container, Sequence
from pathlib import Path
from typing import NamedTuple

from st_paragram.core.encoding.directory import AVERAGING, PIPELINE, read_configuration
from st_paragram.core.encoding.find import find
from st_paragram.core.encoding.models import TextEncoder, load_encoder
from st_paragram.core.families import entry_of_architecture
from st_paragram.errors import SettingsError

_KINDS = {AVERAGING: "average of pieces", PIPELINE: "pipeline of modules"}


class Choice(NamedTuple):
    """A model that can be picked: its name as it was given, its directory, and its kind in words."""

    name: str
    folder: Path
    kind: str


class Models:
    """Models by their labels.

    Attributes:
        choices: By label, in the order they were given in.
    """

    choices: dict[str, Choice]
    _loaded: dict[str, TextEncoder]

    def __init__(self, names: Sequence[str], load: Callable[[Path], TextEncoder] | None = None) -> None:
        """Find models without reading them.

        Args:
            names: paths, names or hub ids; one that is given twice counts once.
            load: reads a directory; `load_encoder` if not given.

        Raises:
            SettingsError: no name.
            ModelDirectoryError: there is no such model.
        """
        self.choices, self._loaded, self._load = {}, {}, load
        self._lock = threading.Lock()
        for name in dict.fromkeys(names):
            folder = find(name)
            architecture = read_configuration(folder).architecture
            entry = entry_of_architecture(architecture)
            kinds = _KINDS if entry is None else entry.architectures
            choice = Choice(name, folder, kinds.get(architecture, architecture))
            self.choices[_label(choice, self.choices)] = choice
        if not self.choices:
            raise SettingsError("no model to show; name at least one")

    @property
    def labels(self) -> list[str]:
        """Names with kinds; the first is the one that is picked at first."""
        return list(self.choices)

    def choice(self, label: str | None) -> Choice:
        """The model of a label.

        Raises:
            SettingsError: there is no such label.
        """
        if label not in self.choices:
            raise SettingsError("Unknown model. Please pick one from the list.")
        return self.choices[label]

    def model(self, label: str | None) -> TextEncoder:
        """The model behind a label, read when it is first asked for and kept.

        Raises:
            SettingsError: there is no such label.
            ModelDirectoryError: it cannot be read.
        """
        choice = self.choice(label)
        with self._lock:
            if choice.name not in self._loaded:
                self._loaded[choice.name] = (self._load or load_encoder)(choice.folder)
            return self._loaded[choice.name]


def _label(choice: Choice, taken: Container[str]) -> str:
    """The name of a model's folder, not where it lies, and the kind; the name that was given where that is taken."""
    path = Path(choice.name)
    short = f"{path.resolve().name if path.is_dir() else choice.name} ({choice.kind})"
    return f"{choice.name} ({choice.kind})" if short in taken else short
