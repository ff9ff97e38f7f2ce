"""Batches across requests: every request gets its own rows, whatever comes together with it."""

from __future__ import annotations

import asyncio
import threading

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from st_paragram.tools.serving.batching import Batcher, Kind, TooBusy


def rows_of(texts):
    """A row that tells which text it is of."""
    return np.array([[float(text), 2.0] for text in texts], np.float32)


class Encoder:
    """Encodes numbers as themselves; waits for `go`, and remembers what was asked together."""

    def __init__(self, go=True):
        self.go, self.begun, self.calls = threading.Event(), threading.Event(), []
        if go:
            self.go.set()

    def __call__(self, texts, kind):
        self.calls.append((len(texts), kind))
        self.begun.set()
        assert self.go.wait(10)
        return rows_of(texts)


def run(work, encode, batch_texts=8, most_waiting=100):
    async def all_of_it():
        batcher = Batcher(encode, batch_texts, most_waiting)
        try:
            return await work(batcher)
        finally:
            batcher.close()

    return asyncio.run(all_of_it())


async def begun(encode):
    await asyncio.to_thread(encode.begun.wait, 10)


@given(st.lists(st.lists(st.integers(0, 999), min_size=1, max_size=12), max_size=30), st.integers(1, 20))
def test_answers_are_never_mixed(requests, batch_texts):
    async def work(batcher):
        return await asyncio.gather(*(batcher.encoded([str(n) for n in request]) for request in requests))

    for request, rows in zip(requests, run(work, Encoder(), batch_texts, 10_000), strict=True):
        assert rows[:, 0].tolist() == request


def test_what_comes_while_the_thread_is_busy_is_encoded_together():
    encode = Encoder(go=False)

    async def work(batcher):
        first = asyncio.create_task(batcher.encoded(["1"]))
        await begun(encode)
        others = [asyncio.create_task(batcher.encoded([str(n), str(n)])) for n in range(5)]
        await asyncio.sleep(0.01)
        assert batcher.waiting == 10
        encode.go.set()
        await asyncio.gather(first, *others)
        assert batcher.waiting == 0

    run(work, encode, batch_texts=6)
    assert encode.calls == [(1, Kind.SENTENCE), (6, Kind.SENTENCE), (4, Kind.SENTENCE)]


def test_kinds_are_encoded_apart_and_in_their_order():
    encode = Encoder(go=False)

    async def work(batcher):
        kinds = [Kind.SENTENCE, Kind.QUERY, Kind.QUERY, Kind.DOCUMENT]
        jobs = [asyncio.create_task(batcher.encoded(["1"], kind)) for kind in kinds]
        await begun(encode)
        encode.go.set()
        await asyncio.gather(*jobs)

    run(work, encode)
    assert encode.calls == [(1, Kind.SENTENCE), (2, Kind.QUERY), (1, Kind.DOCUMENT)]


def test_a_request_larger_than_a_batch_is_not_cut():
    encode = Encoder()
    rows = run(lambda batcher: batcher.encoded([str(n) for n in range(20)]), encode, batch_texts=8)
    assert rows[:, 0].tolist() == list(range(20)) and encode.calls == [(20, Kind.SENTENCE)]


def test_too_many_waiting_texts_are_refused_and_later_ones_taken():
    encode = Encoder(go=False)

    async def work(batcher):
        first = asyncio.create_task(batcher.encoded(["1"]))
        await begun(encode)
        second = asyncio.create_task(batcher.encoded(["2"] * 9))
        await asyncio.sleep(0)
        with pytest.raises(TooBusy, match="9 texts wait"):
            await batcher.encoded(["3"] * 2)
        encode.go.set()
        await asyncio.gather(first, second)
        assert (await batcher.encoded(["4"] * 50))[:, 0].tolist() == [4.0] * 50  # alone it may be larger than the limit

    run(work, encode, most_waiting=10)


def test_a_failure_is_told_to_its_requests_alone():
    calls = []

    def encode(texts, kind):
        calls.append(texts)
        if texts == ["0"]:
            raise ValueError("broken")
        return rows_of(texts)

    async def work(batcher):
        with pytest.raises(ValueError, match="broken"):
            await batcher.encoded(["0"])
        return await batcher.encoded(["7"])

    assert run(work, encode)[0, 0] == 7 and calls == [["0"], ["7"]]


def test_a_client_that_has_gone_takes_no_other_with_it():
    encode = Encoder(go=False)

    async def work(batcher):
        first = asyncio.create_task(batcher.encoded(["1"]))
        await begun(encode)
        gone, stays = (asyncio.create_task(batcher.encoded([text])) for text in ("2", "3"))
        await asyncio.sleep(0.01)
        gone.cancel()
        encode.go.set()
        assert (await stays)[0, 0] == 3 and (await first)[0, 0] == 1

    run(work, encode)
    assert [texts for texts, _ in encode.calls] == [1, 1]


def test_of_requests_that_fail_together_only_the_cause_is_told():
    free, calls = threading.Event(), []

    def encode(texts, kind):
        calls.append(texts)
        assert free.wait(10)
        return rows_of(texts)  # "x" is no number

    async def work(batcher):
        first = asyncio.create_task(batcher.encoded(["0"]))
        while not calls:
            await asyncio.sleep(0.01)
        jobs = [asyncio.create_task(batcher.encoded(texts)) for texts in (["1", "2"], ["3", "x"], ["4"])]
        await asyncio.sleep(0.01)
        free.set()
        return await asyncio.gather(first, *jobs, return_exceptions=True)

    _, before, cause, behind = run(work, encode)
    assert before[:, 0].tolist() == [1, 2] and behind[:, 0].tolist() == [4]
    assert isinstance(cause, ValueError)
    assert calls == [["0"], ["1", "2", "3", "x", "4"], ["1", "2"], ["3", "x"], ["4"]]


def test_texts_of_a_client_that_has_gone_wait_no_longer():
    encode = Encoder(go=False)

    async def work(batcher):
        first = asyncio.create_task(batcher.encoded(["1"]))
        await begun(encode)
        gone = asyncio.create_task(batcher.encoded(["2"] * 10))
        await asyncio.sleep(0.01)
        gone.cancel()
        await asyncio.sleep(0.01)
        assert batcher.waiting == 0
        stays = asyncio.create_task(batcher.encoded(["3"] * 10))
        await asyncio.sleep(0.01)
        assert batcher.waiting == 10
        encode.go.set()
        assert (await stays)[:, 0].tolist() == [3] * 10 and (await first)[0, 0] == 1
        assert batcher.waiting == 0

    run(work, encode, most_waiting=10)


def test_a_batch_that_cannot_be_counted_is_answered():
    async def work(batcher):
        batcher.observe = lambda texts: 1 / 0  # a disk may be full
        with pytest.raises(ZeroDivisionError):
            await asyncio.wait_for(batcher.encoded(["1"]), 5)

    run(work, Encoder())
