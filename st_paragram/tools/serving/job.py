"""What a server is started with."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from st_paragram.tools.serving.settings import ServingSettings


@dataclass(frozen=True)
class Job:
    """A model, an index, limits and a key; small enough to be sent to other processes.

    Attributes:
        model: directory, name or hub id.
        name: what requests call it; None: the last part of `model`.
        index: a folder of `st-paragram index`.
        settings: limits.
        key: what clients must send; None: nothing.
    """

    model: str
    name: str | None = None
    index: Path | None = None
    settings: ServingSettings = field(default_factory=ServingSettings)
    key: str | None = field(default=None, repr=False)
