"""The texts of requests to embeddings: short ones at once, others together with what has arrived meanwhile.

Short texts are encoded in the event loop: that takes less time than handing them to a thread. One thread encodes the
rest. No request waits for company: when the thread is free, it takes all that has come, up to a number of texts.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from starlette.exceptions import HTTPException

from st_paragram.core.encoding.encoder import Encoder
from st_paragram.core.encoding.models import batch_size, load_encoder
from st_paragram.core.tokenizers.base import FlatIds
from st_paragram.tools.serving.schemas import Kind

Rows = NDArray[np.float32]


class Encoded(NamedTuple):
    """Embeddings (n, D) of any length, and the tokens of each text, (n,)."""

    rows: Rows
    tokens: NDArray[np.int64]


class Model:
    """A model that counts the tokens that it reads, for `usage`. One thread at a time may call it."""

    def __init__(self, folder: Path) -> None:
        self.encoder: Any = load_encoder(folder)
        self.dimension = int(self.encoder.get_embedding_dimension() or 0)
        self.short = 0  # characters that are encoded within about half a millisecond
        self._batch_size, self._counting = batch_size(self.encoder), self.encoder
        self._counts = list[NDArray[np.int64]]()
        if isinstance(self.encoder, Encoder):
            tokenizer: Any = SimpleNamespace(encode=self._tokenize)
            self._counting = Encoder(replace(self.encoder.model, tokenizer=tokenizer), None, self.encoder.num_threads)
            self.short = 4096

    def __call__(self, texts: list[str], kind: Kind = "sentence") -> Encoded:
        """Encode texts."""
        encode = getattr(self._counting, {"sentence": "encode"}.get(kind, f"encode_{kind}"))
        rows = np.asarray(encode(texts, batch_size=self._batch_size, show_progress_bar=False), np.float32)
        if not self.short:  # a network: next to it, the tokenizer takes no time
            features = self.encoder.preprocess(texts)
            mask = features.get("attention_mask")
            return Encoded(rows, np.asarray(features["cu_seq_lens_q"].diff() if mask is None else mask.sum(1)))
        counts, self._counts = self._counts, []
        return Encoded(rows, np.concatenate(counts))

    def _tokenize(self, texts: Sequence[str], max_length: int | None, threads: int) -> FlatIds:
        tokenizer = self.encoder.tokenizer
        ids, offsets = getattr(tokenizer, "encode_rows", tokenizer.encode)(texts, max_length, threads)
        self._counts.append(np.diff(offsets))
        return ids, offsets


class Batcher:
    """Encodes the texts of all requests, within one event loop.

    `encode` is a `Model`, or a function like it. Requests of up to `short` characters are encoded at once if nothing
    else is being encoded. Up to `batch_texts` are encoded together, and up to `max_waiting` wait. `observe` is called
    with the number of texts of each call of `encode`.
    """

    def __init__(
        self,
        encode: Callable[[list[str], Kind], Encoded],
        short: int,
        batch_texts: int,
        max_waiting: int,
        observe: Callable[[int], object] = lambda texts: None,
    ) -> None:
        self.encode, self.short, self.batch_texts, self.max_waiting = encode, short, batch_texts, max_waiting
        self.observe, self.waiting = observe, 0
        self._requests: deque[tuple[list[str], Kind, asyncio.Future[Encoded]]] = deque()
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="encode")
        self._work: asyncio.Task[None] | None = None

    async def __call__(self, texts: list[str], kind: Kind = "sentence") -> Encoded:
        """Encode the texts of a request; an error with status 503 if too many texts wait already."""
        is_idle = self._work is None or self._work.done()
        if is_idle and sum(map(len, texts)) <= self.short:
            self.observe(len(texts))
            return self.encode(texts, kind)
        if self.waiting and self.waiting + len(texts) > self.max_waiting:
            raise HTTPException(503, f"{self.waiting} texts wait; try again in a second", {"Retry-After": "1"})
        answer = asyncio.get_running_loop().create_future()
        self._requests.append((texts, kind, answer))
        self.waiting += len(texts)
        if is_idle:
            self._work = asyncio.create_task(self._encode_waiting())
        return await answer

    async def _encode_waiting(self) -> None:
        while self._requests:
            batch = [self._requests.popleft()]
            texts, kind = list(batch[0][0]), batch[0][1]
            while self._requests and self._requests[0][1] == kind:
                if len(texts) + len(self._requests[0][0]) > self.batch_texts:
                    break
                batch.append(self._requests.popleft())
                texts += batch[-1][0]
            self.waiting -= len(texts)
            try:
                self.observe(len(texts))
                encoded = await asyncio.get_running_loop().run_in_executor(self._thread, self.encode, texts, kind)
            except Exception as error:  # whatever it is, the next batch is tried
                for _, _, answer in batch:
                    if not answer.done():
                        answer.set_exception(error)
                continue
            begin = 0
            for own, _, answer in batch:
                part = slice(begin, begin := begin + len(own))
                if not answer.done():  # a server that stops cancels requests
                    answer.set_result(Encoded(encoded.rows[part], encoded.tokens[part]))
