"""A server under load, and under requests that are none: `python benchmarks/serving.py`.

    python benchmarks/serving.py                              # 1, 8 and 64 clients
    python benchmarks/serving.py --clients 8 --minutes 10     # whether memory stays flat
    python benchmarks/serving.py --fuzz 10000

Starts `st-paragram serve` on this machine; clients run in threads of this process, on the same cores. Every answer is
compared with the model's own.
"""

from __future__ import annotations

import argparse
import sys
import time

import numpy as np
from harness.growing_table import print_growing
from harness.http_load import Server, fuzz, load, server

from st_paragram.cli.main import run_reporting_errors
from st_paragram.data.sample.grammar import sample_pairs

HEAD = ["clients", "texts a request", "requests/s", "sentences/s", "p50 ms", "p99 ms", "wrong", "lost", "server's MB"]


def main() -> int:
    """Measure and print; status 1 if an answer was wrong or lost, or the server failed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="p-sp-mini", help="(%(default)s)")
    parser.add_argument("--clients", type=int, nargs="+", default=[1, 8, 64], metavar="N", help="(%(default)s)")
    parser.add_argument("--texts", type=int, nargs="+", default=[1, 32], metavar="N", help="a request (%(default)s)")
    parser.add_argument("--seconds", type=float, default=10.0, help="of each row (%(default)s)")
    parser.add_argument("--minutes", type=int, default=0, metavar="N", help="rows of one minute each, so many")
    parser.add_argument("--fuzz", type=int, default=0, metavar="N", help="requests that are none, instead of load")
    given = parser.parse_args()

    from st_paragram.models.directory import load as load_model

    texts = [text for pair in sample_pairs("es", 2000) for text in pair]
    rows = load_model(given.model, device="cpu").encode(texts, normalize_embeddings=True)
    bad = 0

    def row(where: Server, clients: int, each: int, seconds: float) -> list[str]:
        nonlocal bad
        began = time.perf_counter()
        answers = load(where, given.model, texts, rows, clients, each, seconds)
        rate = len(answers.seconds) / (time.perf_counter() - began)
        bad += answers.wrong + answers.lost
        middle, high = 1000 * np.percentile(answers.seconds, [50, 99])
        figures = [f"{rate:.0f}", f"{rate * each:,.0f}", f"{middle:.1f}", f"{high:.1f}", answers.wrong, answers.lost]
        return [str(one) for one in [clients, each, *figures, f"{where.megabytes():.0f}"]]

    with server(given.model) as where:
        if given.fuzz:
            before = where.megabytes()
            counts = fuzz(where, given.fuzz)
            print(*(f"{status}: {count:,}" for status, count in sorted(counts.items())), sep="\n")
            print(f"healthy afterwards: {where.is_healthy()}; {before:.0f} MB before, {where.megabytes():.0f} MB after")
            return int(not where.is_healthy() or any(status.startswith("5") and status != "503" for status in counts))
        rounds = [60.0] * given.minutes or [given.seconds]
        work = ((clients, each, time_) for time_ in rounds for each in given.texts for clients in given.clients)
        print_growing(HEAD, (row(where, *each) for each in work))
    return int(bad > 0)


if __name__ == "__main__":
    sys.exit(run_reporting_errors("serving", main))
