"""What a server is started with, and what one request, and all that wait together, may ask of it."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

from pydantic import BeforeValidator

from st_paragram.core.settings import setting, settings
from st_paragram.errors import SettingsError
from st_paragram.tools.neighbors.settings import Size, parse_memory


@settings
class ServingSettings:
    """Limits of a server; what is beyond them is refused with the status that docs/serving.md names."""

    max_body: Annotated[int, BeforeValidator(parse_memory)] = setting(
        Size(4 << 20), "maximum body of a request", metavar="SIZE"
    )
    max_texts: int = setting(2048, "maximum texts per request; a pair has two", ge=1)
    max_characters: int = setting(20_000, "maximum characters per text", ge=1)
    max_hits: int = setting(100, "maximum sentences per search query", ge=1)
    max_waiting: int = setting(32_768, "maximum texts waiting to be encoded; further requests get status 503", ge=1)
    batch_texts: int = setting(
        4096, "maximum texts encoded together; a request is never split, so a larger request is encoded alone", ge=1
    )
    body_seconds: float = setting(30.0, "timeout in seconds for a request's header, and again for its body", gt=0)
    stop_seconds: int = setting(30, "seconds that a stopping server waits for pending requests", ge=1)


@dataclass(frozen=True)
class Job:
    """A model, an index, limits and a key; small enough to be sent to other processes.

    Attributes:
        model: directory, name or hub id.
        name: what requests call it; None: the last part of `model`.
        index: a folder of `st-paragram index`.
        settings: limits.
        key: what clients must send; None: nothing.
        writable: clients may change the index.
        origins: of web pages that may use the server, see `cors.parse_origin`; none: pages of the server itself.
    """

    model: str
    name: str | None = None
    index: Path | None = None
    settings: ServingSettings = field(default_factory=ServingSettings)
    key: str | None = field(default=None, repr=False)
    origins: tuple[str, ...] = ()
    writable: bool = False

    def __post_init__(self) -> None:
        """Refuse what contradicts itself.

        Raises:
            SettingsError: there is no index that clients may change, or there is no key.
        """
        if self.writable and self.index is None:
            raise SettingsError("--index-writable is about an index; give --index")
        if self.writable and not self.key:
            raise SettingsError(
                "--index-writable needs a key, so that not everybody changes the index; give --api-key-file"
            )
