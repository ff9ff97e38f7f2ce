"""Embedding of requests in batches.

No request waits for others: when nothing is being encoded, all waiting texts are encoded together,
up to a maximum number. These are the texts of all requests that the event loop has just read. Few
characters are encoded in the event loop, which takes less time than passing them to a thread.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from typing import NamedTuple

import prometheus_client as prometheus
from starlette.exceptions import HTTPException

from st_paragram.core.arrays import Integers, Mask, Vectors

Rows = Vectors  # (n, D)
Way = tuple[str, str | None]  # how to encode: kind of the texts, and name of a prompt
BATCH_TEXTS = 4096  # texts encoded together
MAX_WAITING = 32_768  # texts waiting to be encoded
BATCHES = prometheus.Histogram(
    "st_paragram_batch_texts", "Texts encoded together", buckets=[2**n for n in range(13)]
)


class Encoded(NamedTuple):
    """Embeddings of n texts.

    Attributes:
        rows: The model's embeddings, (n, D).
        units: The embeddings with length 1; zeros for texts without a known token, (n, D).
        known: Whether the model knows a token of each text, (n,).
        tokens: Number of tokens of each text, (n,).
    """

    rows: Rows
    units: Rows
    known: Mask
    tokens: Integers

    def part(self, texts: slice) -> Encoded:
        """Return the embeddings of some of the texts."""
        return Encoded(self.rows[texts], self.units[texts], self.known[texts], self.tokens[texts])


class _Request(NamedTuple):
    texts: list[str]
    way: Way
    answer: asyncio.Future[Encoded]


class Batcher:
    """Encodes the texts of all requests, within one event loop.

    Requests of together up to `short` characters are encoded in the event loop, others in a thread.
    Up to `batch_texts` texts are encoded together, and up to `max_waiting` texts may wait.
    """

    def __init__(
        self,
        encode: Callable[[list[str], Way], Encoded],
        short: int,
        batch_texts: int = BATCH_TEXTS,
        max_waiting: int = MAX_WAITING,
    ) -> None:
        self.encode = encode
        self.short = short
        self.batch_texts = batch_texts
        self.max_waiting = max_waiting
        self.waiting = 0
        self._requests: deque[_Request] = deque()
        self._thread = ThreadPoolExecutor(1)
        self._work: asyncio.Task[None] | None = None

    async def __call__(self, texts: list[str], way: Way = ("sentence", None)) -> Encoded:
        """Encode the texts of a request, or refuse it if too many texts are waiting."""
        self._check_waiting(len(texts))
        answer = asyncio.get_running_loop().create_future()
        self._requests.append(_Request(texts, way, answer))
        self.waiting += len(texts)
        if self._work is None or self._work.done():
            self._work = asyncio.create_task(self._encode_waiting())
        return await answer

    @contextmanager
    def counted(self, texts: int) -> Iterator[None]:
        """Count texts of other work as waiting, such as a search, or refuse it like a call."""
        self._check_waiting(texts)
        self.waiting += texts
        try:
            yield
        finally:
            self.waiting -= texts

    def _check_waiting(self, texts: int) -> None:
        if self.waiting and self.waiting + texts > self.max_waiting:
            raise HTTPException(
                503,
                f"{self.waiting} texts are waiting; try again in a second",
                {"Retry-After": "1"},
            )

    async def _encode_waiting(self) -> None:
        while self._requests:
            requests = self._next_batch()
            count = sum(len(request.texts) for request in requests)
            self.waiting -= count
            BATCHES.observe(count)
            await self._answer(requests)
            if self._requests:
                await asyncio.sleep(0)  # send these answers first

    async def _answer(self, requests: list[_Request]) -> None:
        texts = [text for request in requests for text in request.texts]
        try:
            encoded = await self._encoded(texts, requests[0].way)
        except Exception as error:  # any error; continue with the next batch
            if len(requests) > 1:
                # only the requests that cannot be encoded fail
                for request in requests:
                    await self._answer([request])
            elif not requests[0].answer.done():
                requests[0].answer.set_exception(error)
            return
        begin = 0
        for request in requests:
            end = begin + len(request.texts)
            if not request.answer.done():  # a server that stops cancels requests
                request.answer.set_result(encoded.part(slice(begin, end)))
            begin = end

    async def _encoded(self, texts: list[str], way: Way) -> Encoded:
        encode = partial(self.encode, texts, way)
        if _characters(texts) <= self.short:
            return encode()
        return await asyncio.get_running_loop().run_in_executor(self._thread, encode)

    def _next_batch(self) -> list[_Request]:
        """Take the first waiting request, and following requests of its way that fit.

        A batch that begins with a short request stays short.
        """
        first = self._requests.popleft()
        batch = [first]
        count = len(first.texts)
        characters = _characters(first.texts)
        is_short = characters <= self.short
        while self._requests and self._requests[0].way == first.way:
            texts = self._requests[0].texts
            count += len(texts)
            characters += _characters(texts)
            if count > self.batch_texts or (is_short and characters > self.short):
                break
            batch.append(self._requests.popleft())
        return batch


def _characters(texts: list[str]) -> int:
    return sum(map(len, texts))
