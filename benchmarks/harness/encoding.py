"""Measured encoding: functions that run inside a process, on a function from texts to a matrix."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from statistics import median
from typing import Any

PARAGRAPH = 8  # sentences
SINGLES = 200  # sentences that are encoded one by one

Encode = Callable[[list[str]], Any]


def rate(encode: Encode, texts: list[str]) -> float:
    """Encode texts once; return texts/s."""
    started = time.perf_counter()
    encode(texts)
    return len(texts) / (time.perf_counter() - started)


def later_rate(encode: Encode, texts: list[str], seconds: float) -> float:
    """Encode texts at least once, again and again until the time is over; return texts/s."""
    started = time.perf_counter()
    spent = 0.0
    passes = 0
    while passes == 0 or spent < seconds:
        encode(texts)
        passes += 1
        spent = time.perf_counter() - started
    return passes * len(texts) / spent


def single_ms(encode: Encode, texts: Sequence[str]) -> float:
    """Encode texts one by one; return the median time in milliseconds."""
    times = []
    for text in texts:
        started = time.perf_counter()
        encode([text])
        times.append(time.perf_counter() - started)
    return 1000 * median(times)


def paragraphs(sentences: list[str]) -> list[str]:
    """Join every `PARAGRAPH` sentences; leave out an incomplete paragraph at the end."""
    starts = range(0, len(sentences) - PARAGRAPH + 1, PARAGRAPH)
    return [" ".join(sentences[start : start + PARAGRAPH]) for start in starts]
