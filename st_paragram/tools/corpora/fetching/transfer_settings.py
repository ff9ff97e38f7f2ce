"""How patient a transfer is."""

from __future__ import annotations

from st_paragram.core.settings import setting, settings


@settings
class TransferSettings:
    """Limits of one transfer; a number that makes no sense raises `SettingsError`."""

    timeout: float = setting(30.0, "seconds in which an answer must begin, and each further byte come", above=0)
    tries: int = setting(6, "failed tries in a row after which the file is given up", least=1)
    first_wait: float = setting(1.0, "seconds before the second try; they double each time, varied at random", least=0)
    longest_wait: float = setting(120.0, "the longest wait in seconds, also where a server asks for more", least=0)
    least_rate: float = setting(1024.0, "bytes per second below which a try has failed", least=0)
    rate_window: float = setting(60.0, "seconds over which the rate is taken", above=0)
    progress: int = setting(1 << 20, "new bytes after which failed tries are counted from one again", least=1)
    overlap: int = setting(1 << 16, "bytes before the end of a part that come once more and must be the same", least=1)
    most_bytes: int | None = setting(None, "the largest size of a file in bytes; there is no limit if it is not given")

    def wait(self, failures: int, chance: float, asked: float | None) -> float:
        """Seconds until the next try.

        Args:
            failures: Tries that have failed in a row, at least one.
            chance: A random number from 0 to 1.
            asked: Seconds that the server asks for; None if it does not.
        """
        own = self.first_wait * 2.0 ** min(failures - 1, 30) * (0.5 + chance)
        return min(self.longest_wait, own if asked is None else max(asked, own))
