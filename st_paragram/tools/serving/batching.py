"""Requests that arrive while others are computed are computed together.

Short texts are encoded at once, in the event loop: that takes less time than handing them to a thread. One thread
encodes the rest. No request waits for company: when the thread is free, it takes all that has come in the meantime, in
order, up to a number of texts.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from enum import Enum
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

Rows = NDArray[np.float32]
_Result = TypeVar("_Result")


class Kind(str, Enum):
    """What a text is; a model with towers embeds questions and answers apart."""

    SENTENCE = "sentence"
    QUERY = "query"
    DOCUMENT = "document"


class TooBusy(Exception):
    """So many texts wait that more would wait too long."""


@dataclass(eq=False)
class _Job:
    texts: Sequence[str]
    kind: Kind
    answer: asyncio.Future[Rows]


class Batcher:
    """Encodes the texts of all requests; use it within one event loop.

    Args:
        encode: texts and their kind -> rows (n, D), in the order of the texts.
        batch_texts: maximum texts of one call, unless a single request has more.
        most_waiting: maximum texts that wait.
        short: maximum characters that the event loop encodes itself; 0: the thread encodes everything.
        observe: called with the number of texts of each call of `encode`.
    """

    def __init__(
        self,
        encode: Callable[[list[str], Kind], Rows],
        batch_texts: int,
        most_waiting: int,
        short: int = 0,
        observe: Callable[[int], object] = lambda texts: None,
    ) -> None:
        self.encode, self.batch_texts, self.most_waiting = encode, batch_texts, most_waiting
        self.short, self.observe = short, observe
        self.waiting = 0  # texts
        self._jobs: deque[_Job] = deque()
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="encode")
        self._worker: asyncio.Task[None] | None = None

    def at_once(self, texts: Sequence[str], kind: Kind = Kind.SENTENCE) -> Rows | None:
        """Rows of short texts, (n, D), if the thread is idle; None: they are for the thread."""
        is_idle = self._worker is None or self._worker.done()
        if not is_idle or sum(map(len, texts)) > self.short:
            return None
        self.observe(len(texts))
        return self.encode(list(texts), kind)

    async def encoded(self, texts: Sequence[str], kind: Kind = Kind.SENTENCE) -> Rows:
        """Rows of texts, (n, D).

        Raises:
            TooBusy: too many texts wait. A request is taken in any case if none does.
        """
        if self.waiting and self.waiting + len(texts) > self.most_waiting:
            raise TooBusy(f"{self.waiting} texts wait, and {len(texts)} more are too many")
        job = _Job(texts, kind, asyncio.get_running_loop().create_future())
        self._jobs.append(job)
        self.waiting += len(texts)
        if self._worker is None or self._worker.done():
            self._worker = asyncio.create_task(self._work())
        try:
            return await job.answer
        except asyncio.CancelledError:  # the client has gone; its texts wait no longer
            if job in self._jobs:
                self._jobs.remove(job)
                self.waiting -= len(texts)
            raise

    async def in_thread(self, work: Callable[[], _Result]) -> _Result:
        """Do other work in the thread that encodes, so that both never compete for the cores."""
        return await asyncio.get_running_loop().run_in_executor(self._thread, work)

    def close(self) -> None:
        """End the thread when it has done what it is at."""
        self._thread.shutdown(cancel_futures=True)

    async def _work(self) -> None:
        while self._jobs:
            batch = self._take()
            self.waiting -= sum(len(job.texts) for job in batch)
            batch = [job for job in batch if not job.answer.cancelled()]  # whose clients have gone
            if batch:
                await self._answer(batch)

    def _take(self) -> list[_Job]:
        """The first jobs that are of one kind and together small enough; at least one."""
        batch = [self._jobs.popleft()]
        texts = len(batch[0].texts)
        while self._jobs and self._jobs[0].kind is batch[0].kind:
            texts += len(self._jobs[0].texts)
            if texts > self.batch_texts:
                break
            batch.append(self._jobs.popleft())
        return batch

    async def _answer(self, batch: list[_Job]) -> None:
        texts = [text for job in batch for text in job.texts]
        try:
            self.observe(len(texts))
            rows = await self.in_thread(lambda: self.encode(texts, batch[0].kind))
        except Exception as error:  # whatever it is, the next batch is tried
            await self._answer_failed(batch, error)
            return
        begin = 0
        for job in batch:
            end = begin + len(job.texts)
            if not job.answer.done():
                job.answer.set_result(rows[begin:end])
            begin = end

    async def _answer_failed(self, batch: list[_Job], error: Exception) -> None:
        """Try requests that failed together one by one, so that only those that are the cause fail."""
        if len(batch) > 1:
            for job in batch:
                if not job.answer.done():
                    await self._answer([job])
        elif not batch[0].answer.done():
            batch[0].answer.set_exception(error)
