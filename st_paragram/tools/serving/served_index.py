"""The index behind a server, which this process, other workers or a command may change while it is searched."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar

from st_paragram.core.encoding.models import TextEncoder
from st_paragram.errors import InUseError, ParagramError, SettingsError
from st_paragram.tools.search.index_metadata import folder_state
from st_paragram.tools.search.search_index import SearchIndex
from st_paragram.tools.serving.batching import TooBusy
from st_paragram.tools.serving.guard import log_failure

_Result = TypeVar("_Result")
_PATIENCE = 10.0  # seconds that a change waits for another process to finish its own
_PAUSE = 0.05  # seconds between two attempts


class ServedIndex:
    """An index that is searched as it is on disk, and changed by one thread.

    Args:
        folder: Of `st-paragram index`.
        model: Directory of its model.
        encoder: The model, in memory once.
        writable: Clients may change the index.

    Raises:
        MiningError: The index is damaged, or was built with another model.
        SettingsError: It is to be changed, and cannot be written.
    """

    def __init__(self, folder: Path, model: Path, encoder: TextEncoder, writable: bool = False) -> None:
        self.opened, self.writable = SearchIndex(folder, model), writable
        self.opened.encoder = encoder
        for place in (folder, folder.resolve().parent) if writable else ():  # its lock is in the latter
            if not os.access(place, os.W_OK):
                raise SettingsError(f"{place} cannot be written to; change its permissions, or serve it read-only")
        self._seen = folder_state(self.opened.folder)
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="change")

    def __len__(self) -> int:
        """Number of distinct sentences, as far as seen."""
        return len(self.opened)

    def current(self) -> SearchIndex:
        """The index as it is on disk now; as it was before, where that cannot be read. For a thread."""
        if (state := folder_state(self.opened.folder)) != self._seen:
            self._seen = state
            try:
                self.opened.reload()
            except (ParagramError, OSError) as error:
                log_failure("reading a changed index", error)
        return self.opened

    async def change(self, work: Callable[[SearchIndex], _Result]) -> _Result:
        """Change the index in the thread for it, one change after another.

        Raises:
            TooBusy: Another process keeps changing the index.
        """
        pending: Awaitable[_Result] = asyncio.get_running_loop().run_in_executor(self._thread, self._change, work)
        return await pending

    def close(self) -> None:
        """End the thread when it has done the change it is at."""
        self._thread.shutdown(cancel_futures=True)

    def _change(self, work: Callable[[SearchIndex], _Result]) -> _Result:
        end = time.monotonic() + _PATIENCE
        while True:
            try:
                return work(self.opened)
            except InUseError:
                if time.monotonic() > end:
                    raise TooBusy("another process is changing the index") from None
            time.sleep(_PAUSE)
