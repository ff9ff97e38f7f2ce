"""The process in which `peers.py` measures the speed of one program.

It imports little before the first embedding, so that the time until then is the program's.
"""

from __future__ import annotations

import json
import sys
import time
from itertools import cycle, islice
from pathlib import Path
from typing import Any

from harness.encoding import PARAGRAPH, SINGLES, later_rate, paragraphs, rate, single_ms
from harness.models import LOADERS, Model

FIRST = "Where is the station?"
PROBE = 64  # sentences that show how fast a program is
BATCH, PAPER = 64, 120_000  # sentences
LEAST_SENTENCES = PROBE + SINGLES + 10 * PARAGRAPH


def main() -> None:
    """Measure the program that the command line names; print its figures as JSON."""
    loader, name, file, seconds = sys.argv[1:]
    model = LOADERS[loader](name)
    model.encode([FIRST])
    figures = {"start, s": time.perf_counter()}
    lines = json.loads(Path(file).read_text(encoding="utf-8"))
    figures |= measure(model, lines, float(seconds))
    print(json.dumps(figures))


def measure(model: Model, lines: list[str], seconds: float) -> dict[str, float]:
    """Embed single sentences, all sentences, paragraphs, and batches as in the paper; return
    figures by name.
    """
    probe, singles, lines = lines[:PROBE], lines[PROBE:][:SINGLES], lines[PROBE + SINGLES :]
    model.encode(probe)
    expected = seconds * rate(model.encode, probe)
    figures = {"one sentence, ms": single_ms(model.encode, part(singles, expected))}
    some = part(lines, expected)
    figures["sentences/s"] = rate(model.encode, some)
    figures["known words: sentences/s"] = later_rate(model.encode, some, seconds)
    longer = part(paragraphs(lines), max(PARAGRAPH, expected / PARAGRAPH))
    figures["paragraphs/s"] = rate(model.encode, longer)
    figures["paper: sentences/s"] = paper_rate(model, lines, expected)
    return figures


def paper_rate(model: Model, lines: list[str], expected: float) -> float:
    """Embed batches of sentences sorted by length; return sentences/s without tokenization.

    Args:
        model: The model.
        lines: Sentences, which are repeated to make `PAPER` sentences.
        expected: About how many of these sentences to embed.
    """
    ordered = sorted(islice(cycle(lines), PAPER), key=len)
    batches = [ordered[start : start + BATCH] for start in range(0, PAPER, BATCH)]
    batches = part(batches, max(8, expected / BATCH))
    spent = 0.0
    for start in range(0, len(batches), BATCH):
        tokens = [model.tokenize(batch) for batch in batches[start : start + BATCH]]
        started = time.perf_counter()
        for each in tokens:
            model.embed(each)
        spent += time.perf_counter() - started
    return BATCH * len(batches) / spent


def part(items: list[Any], wanted: float) -> list[Any]:
    """Return `wanted` evenly spaced items, or all if there are fewer."""
    count = min(len(items), max(1, int(wanted)))
    return [items[int((number + 0.5) * len(items) / count)] for number in range(count)]
