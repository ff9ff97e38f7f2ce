"""Load time, first call and single sentences: a new process each time, one round in it."""

from __future__ import annotations

import statistics
import time
from pathlib import Path
from typing import Any

from harness.speed.encoders import FACTORIES, Encode, require
from harness.speed.inputs import read_sentences
from harness.speed.peers import Channel

#: Calls with the same sentence.
REPEATS = 1000
_MODULES = {
    "light": ("st_paragram.core.encoding.encoder",),
    "native": ("st_paragram.learning.models.directory",),
    "stock": ("sentence_transformers",),
    "model2vec": ("model2vec", "safetensors.numpy"),
}


def run(peer: str, arguments: dict[str, Any], channel: Channel) -> None:
    """Import a peer's libraries, load the model, encode sentences one by one; arguments as in `encoders.run`.

    The round is the loading. Its metadata: `import_seconds`, `first_seconds` (the first sentence), `median_seconds` and
    `p95_seconds` (one sentence, later), `repeated_seconds` (the median of calls with the last sentence).
    """
    sentences = read_sentences(Path(arguments["sentences"]), arguments["count"])
    if peer == "model2vec":
        require("model2vec", "model2vec")
    started = time.perf_counter()
    for name in _MODULES[peer]:
        __import__(name)
    imported = time.perf_counter()
    channel.ready()
    if not channel.wait():
        return
    waited = time.perf_counter()
    encode = FACTORIES[peer](arguments)
    loaded = time.perf_counter()
    singles = _each(encode, sentences)
    channel.report(
        loaded - waited,
        1,
        import_seconds=imported - started,
        first_seconds=singles[0],
        median_seconds=statistics.median(singles[1:]),
        p95_seconds=statistics.quantiles(singles[1:], n=20, method="inclusive")[-1],
        repeated_seconds=statistics.median(_each(encode, sentences[-1:] * REPEATS)),
    )


def _each(encode: Encode, sentences: list[str]) -> list[float]:
    """Seconds for each sentence by itself."""
    seconds = []
    for sentence in sentences:
        before = time.perf_counter()
        encode([sentence])
        seconds.append(time.perf_counter() - before)
    return seconds
