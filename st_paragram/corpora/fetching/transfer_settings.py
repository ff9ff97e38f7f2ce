"""How patient a transfer is."""

from __future__ import annotations

from dataclasses import dataclass

from st_paragram.errors import SettingsError


@dataclass(frozen=True)
class TransferSettings:
    """Limits of one transfer.

    Attributes:
        timeout: Seconds without a byte, or without a connection, until a try has failed.
        tries: Failed tries in a row until the file is given up; one that brought `progress` bytes starts anew.
        first_wait: Seconds before the second try; they double each time, give or take a half by chance.
        longest_wait: Seconds, also where a server asks for more.
        least_rate: Bytes per second below which a try has failed.
        rate_window: Seconds over which the rate is looked at.
        progress: New bytes that count as getting on.
        most_bytes: Of a file; more is refused. None for no limit.

    Raises:
        SettingsError: A number makes no sense.
    """

    timeout: float = 30.0
    tries: int = 6
    first_wait: float = 1.0
    longest_wait: float = 120.0
    least_rate: float = 1024.0
    rate_window: float = 60.0
    progress: int = 1 << 20
    most_bytes: int | None = None

    def __post_init__(self) -> None:
        for name in ("timeout", "tries", "rate_window", "progress"):
            if not getattr(self, name) > 0:
                raise SettingsError(f"{name} is {getattr(self, name)}; give a number above 0")
        for name in ("first_wait", "longest_wait", "least_rate"):
            if not getattr(self, name) >= 0:
                raise SettingsError(f"{name} is {getattr(self, name)}; give 0 or more")

    def wait(self, failures: int, chance: float, asked: float | None) -> float:
        """Seconds until the next try.

        Args:
            failures: Tries that failed in a row, at least one.
            chance: A random number, 0 to 1.
            asked: Seconds the server asks for, None if it does not.
        """
        own = self.first_wait * 2.0 ** min(failures - 1, 30) * (0.5 + chance)
        return min(self.longest_wait, own if asked is None else max(asked, own))
