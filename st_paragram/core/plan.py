"""What long work will read, make and need, in words: what `--plan` prints before anything is done."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Needs:
    """What work takes: seconds on two cores (a guess), bytes of memory and disk; None where it cannot be known."""

    seconds: float | None = None
    memory: int | None = None
    disk: int | None = None
    depends_on: str = "the text"

    def __str__(self) -> str:
        """One line: "about 12 minutes on two cores (a guess), 300 MB of memory, 1.2 GB on disk"."""
        parts = [
            f"time depends on {self.depends_on}"
            if self.seconds is None
            else f"about {_duration(self.seconds)} on two cores",
            None if self.memory is None else f"{size(self.memory)} of memory",
            None if self.disk is None else f"{size(self.disk)} on disk",
        ]
        return ", ".join(part for part in parts if part) + (" (a guess)" if self.seconds is not None else "")


@dataclass(frozen=True)
class Plan:
    """What work will do, in a few words; what it reads, what it makes and how, one line each; what it takes."""

    work: str
    reads: Sequence[str]
    makes: Sequence[str]
    settings: Sequence[str] = ()
    needs: Needs = Needs()

    def __str__(self) -> str:
        """The plan as lines of text."""
        parts = (("reads", self.reads), ("makes", self.makes), ("with", self.settings), ("needs", [str(self.needs)]))
        lines = [f"{name if not number else '':7}{line}" for name, part in parts for number, line in enumerate(part)]
        return "\n".join([self.work, *lines])


def size(count: float) -> str:
    """Bytes in words: "1.2 GB"."""
    for unit in ("bytes", "kB", "MB"):
        if count < 1000:
            return f"{count:.0f} {unit}" if count >= 10 or unit == "bytes" else f"{count:.1f} {unit}"
        count /= 1000
    return f"{count:.1f} GB"


def _duration(seconds: float) -> str:
    if seconds < 90:
        return f"{max(seconds, 1):.0f} s"
    return f"{seconds / 60:.0f} minutes" if seconds < 5400 else f"{seconds / 3600:.1f} hours"
