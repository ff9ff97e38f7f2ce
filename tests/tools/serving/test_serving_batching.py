"""Batches across requests: every request gets its own rows, whatever comes together with it."""

from __future__ import annotations

import asyncio
import threading

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

HTTPException = pytest.importorskip("starlette.exceptions").HTTPException

from st_paragram.tools.serving.batching import Batcher, Encoded  # noqa: E402

SENTENCE, QUERY = ("sentence", None), ("query", None)


class Encode:
    """Encodes numbers as themselves; waits for `go`, and remembers what was asked together."""

    def __init__(self, go=True):
        self.go, self.begun, self.calls = threading.Event(), threading.Event(), []
        if go:
            self.go.set()

    def __call__(self, texts, way):
        self.calls.append((len(texts), way))
        self.begun.set()
        assert self.go.wait(10)
        rows = np.array([[float(text), 2.0] for text in texts], np.float32)
        return Encoded(rows, rows, rows[:, 1] > 0, rows[:, 0].astype(int))


def run(work, encode, batch_texts=8, max_waiting=100, short=0):
    async def in_loop():
        return await work(Batcher(encode, short, batch_texts, max_waiting))

    return asyncio.run(in_loop())


@given(
    st.lists(st.lists(st.integers(0, 999), min_size=1, max_size=12), max_size=30),
    st.integers(1, 20),
)
def test_answers_are_never_mixed(requests, batch_texts):
    async def work(batcher):
        return await asyncio.gather(*(batcher([str(n) for n in request]) for request in requests))

    for request, found in zip(
        requests, run(work, Encode(), batch_texts, 10_000, short=9), strict=True
    ):
        assert found.rows[:, 0].tolist() == found.tokens.tolist() == request


def test_what_comes_while_the_thread_is_busy_is_encoded_together_by_kind_or_refused():
    encode = Encode(go=False)

    async def work(batcher):
        jobs = [asyncio.create_task(batcher(["1"]))]
        await asyncio.to_thread(encode.begun.wait, 10)
        jobs += [asyncio.create_task(batcher(["2"] * 2)) for _ in range(5)]
        jobs += [asyncio.create_task(batcher(["3"] * 20, QUERY))]  # a request is never divided
        await asyncio.sleep(0.01)
        assert batcher.waiting == 30
        with pytest.raises(HTTPException, match="30 texts are waiting"):
            await batcher(["4"] * 2)
        encode.go.set()
        await asyncio.gather(*jobs)
        # alone, it may be larger
        assert batcher.waiting == 0 and len((await batcher(["5"] * 50)).rows) == 50

    run(work, encode, batch_texts=6, max_waiting=31)
    assert encode.calls == [
        (1, SENTENCE),
        (6, SENTENCE),
        (4, SENTENCE),
        (20, QUERY),
        (50, SENTENCE),
    ]


def test_short_requests_read_together_are_encoded_together_in_the_event_loop():
    encode = Encode()
    threads = set()

    def encode_here(texts, way):
        threads.add(threading.current_thread())
        return encode(texts, way)

    async def work(batcher):
        requests = [["11"], ["12"] * 3, ["13"] * 2, ["14"]]
        found = await asyncio.gather(*(batcher(texts) for texts in requests))
        assert [len(encoded.rows) for encoded in found] == [1, 3, 2, 1]

    run(work, encode_here, short=8)
    assert encode.calls == [(4, SENTENCE), (3, SENTENCE)]
    assert threads == {threading.current_thread()}


def test_a_failure_or_a_cancelled_request_does_not_touch_later_ones():
    encode = Encode()

    async def work(batcher):
        with pytest.raises(ValueError, match="could not convert"):
            await batcher(["x"])
        cancelled, kept = asyncio.create_task(batcher(["1"])), asyncio.create_task(batcher(["2"]))
        await asyncio.sleep(0)
        cancelled.cancel()
        return await kept

    assert run(work, encode).rows[0, 0] == 2


@pytest.mark.parametrize("short", [0, 100])
def test_a_request_that_cannot_be_encoded_fails_alone(short):
    async def work(batcher):
        requests = [["1"], ["x", "2"], ["3"]]
        answers = (batcher(texts) for texts in requests)
        return await asyncio.gather(*answers, return_exceptions=True)

    encode = Encode()
    first, failed, last = run(work, encode, short=short)
    assert isinstance(failed, ValueError)
    assert first.rows[0, 0] == 1 and last.rows[0, 0] == 3
    assert [count for count, _ in encode.calls] == [4, 1, 2, 1]
