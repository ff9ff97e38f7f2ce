"""A server under load, and under malformed requests: `python benchmarks/serving.py`.

    python benchmarks/serving.py                              # 1, 8 and 64 clients
    python benchmarks/serving.py --workers 2
    python benchmarks/serving.py --clients 8 --minutes 10     # whether memory stays flat
    python benchmarks/serving.py --fuzz 10000

Starts `st-paragram serve` on this machine; one thread of this process drives all clients, on the same cores. Every
answer is compared with the model's own.
"""

from __future__ import annotations

import argparse
import sys
import time

import numpy as np
from harness.output import print_growing
from harness.speed.serving import Server, Texts, fuzz, load, server

from st_paragram.cli.main import run_reporting_errors
from st_paragram.core.encoding.models import load_encoder
from st_paragram.core.sample import sample_pairs

HEAD = [
    *("clients", "texts per request", "requests/s", "sentences/s", "p50 ms", "p99 ms", "wrong", "lost"),
    *("RSS MB", "PSS MB"),
]


def main() -> int:
    """Measure and print; status 1 if an answer was wrong or lost, or the server failed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="p-sp-mini", help="(%(default)s)")
    parser.add_argument("--workers", type=int, default=1, metavar="N", help="processes of the server (%(default)s)")
    parser.add_argument("--clients", type=int, nargs="+", default=[1, 8, 64], metavar="N", help="(%(default)s)")
    parser.add_argument("--texts", type=int, nargs="+", default=[1, 32], metavar="N", help="per request (%(default)s)")
    parser.add_argument("--seconds", type=float, default=10.0, help="per row (%(default)s)")
    parser.add_argument("--minutes", type=int, default=0, metavar="N", help="number of one-minute rows")
    parser.add_argument("--fuzz", type=int, default=0, metavar="N", help="malformed requests, instead of load")
    given = parser.parse_args()
    with server(given.model, given.workers) as where:
        return _fuzz(where, given.fuzz) if given.fuzz else _measure(where, given)


def _measure(where: Server, given: argparse.Namespace) -> int:
    sentences = [text for pair in sample_pairs("es", 2000) for text in pair]
    texts = Texts(sentences, np.asarray(load_encoder(given.model).encode(sentences, normalize_embeddings=True)))
    bad = 0

    def row(clients: int, each: int, seconds: float) -> list[str]:
        nonlocal bad
        began = time.perf_counter()
        answers = load(where, given.model, texts, clients, each, seconds)
        rate = len(answers.seconds) / (time.perf_counter() - began)
        bad += answers.wrong + answers.lost
        middle, high = 1000 * np.percentile(answers.seconds, [50, 99])
        figures = [f"{rate:,.0f}", f"{rate * each:,.0f}", f"{middle:.2f}", f"{high:.2f}", answers.wrong, answers.lost]
        memory = [f"{where.megabytes():.0f}", f"{where.proportional_megabytes():.0f}"]
        return [str(value) for value in [clients, each, *figures, *memory]]

    rounds = [60.0] * given.minutes or [given.seconds]
    work = ((clients, each, time_) for time_ in rounds for each in given.texts for clients in given.clients)
    print_growing(HEAD, (row(*each) for each in work))
    return int(bad > 0)


def _fuzz(where: Server, count: int) -> int:
    before = where.megabytes()
    counts = fuzz(where, count)
    print(*(f"{status}: {number:,}" for status, number in sorted(counts.items())), sep="\n")
    print(f"healthy afterwards: {where.is_healthy()}; {before:.0f} MB before, {where.megabytes():.0f} MB after")
    return int(not where.is_healthy() or any(status.startswith("5") and status != "503" for status in counts))


if __name__ == "__main__":
    sys.exit(run_reporting_errors("serving", main))
