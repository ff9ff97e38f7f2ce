"""F1 of finding translations in comparable texts: `python benchmarks/bucc.py MODEL... --data DIR|PREFIX --pair zh-en`.

Files as the BUCC 2018 shared task gives them: PREFIX.zh and PREFIX.en (`id TAB sentence`), PREFIX.gold (`id TAB id`).
With `--train-gold TRAIN.gold` (beside TRAIN.zh and TRAIN.en) the threshold of each score is chosen there; without, on
the gold that is scored: an oracle's, an upper bound. `--split` adds a fair figure from one gold: chosen on one half
of the source sentences, scored on the other. Needs faiss: `st_paragram[mining]`.
"""

from __future__ import annotations

import argparse
import math
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path

from sentence_transformers import SentenceTransformer

from st_paragram.bitext_mining.candidates import Candidates
from st_paragram.bitext_mining.margin import DEFAULT_K, Margin
from st_paragram.bitext_mining.threshold import Extraction
from st_paragram.cli.main import run_reporting_errors
from st_paragram.errors import SettingsError
from st_paragram.evaluation.bucc import Mined, extractions, half_extractions, mine, thresholds
from st_paragram.evaluation.bucc_files import ComparableTexts, bucc_prefix, read_bucc
from st_paragram.evaluation.correlation import embed
from st_paragram.evaluation.models import load_model
from st_paragram.evaluation.published import BUCC
from st_paragram.evaluation.record import new_record, write_record
from st_paragram.tables import MISSING, hundredths, markdown_table

HEAD = ("model", "score", "threshold", "extracted", "right", "precision", "recall", "F1")
LABELS = {Margin.RATIO: "ratio", Margin.DISTANCE: "distance", Margin.ABSOLUTE: "cosine"}


@dataclass
class Protocol:
    """A way to choose thresholds, and what every model reached under it."""

    key: str
    heading: str
    rows: dict[str, dict[Margin, Extraction]] = field(default_factory=dict)


def main() -> int:
    """Score every model by every margin."""
    arguments = _parser().parse_args()
    pair = arguments.pair
    texts = read_bucc(bucc_prefix(arguments.data, pair), pair)
    training = read_bucc(arguments.train_gold.removesuffix(".gold"), pair) if arguments.train_gold else None
    if training and arguments.split:
        raise SettingsError("--split chooses thresholds on half of the gold, --train-gold on other texts; drop one")
    origin = f"threshold chosen on {training.name}" if training else "oracle threshold (chosen on the same gold)"
    whole = Protocol(pair, f"{texts.name}: {origin}")
    half = Protocol(f"{pair} half", f"{texts.name}: threshold chosen on one half of the gold, scored on the other")
    seconds = {}
    for name in arguments.models:
        model = load_model(name)
        start = time.perf_counter()
        mined = _mine(name, model, texts, arguments)
        learned = thresholds(_mine(name, model, training, arguments), training) if training else None
        whole.rows[name] = extractions(mined, texts, learned or thresholds(mined, texts))
        if arguments.split:
            half.rows[name] = half_extractions(mined, texts, arguments.seed)
        seconds[name] = time.perf_counter() - start
    protocols = [protocol for protocol in (whole, half) if protocol.rows]
    for protocol in protocols:
        _print(protocol, arguments.candidates)
    for row in BUCC:
        print(f"{row.label}: F1 " + ", ".join(f"{key} {hundredths(f1)}" for key, f1 in row.scores.items()))
    if arguments.json:
        facts = {"headings": {one.key: one.heading for one in protocols}, "k": arguments.k}
        facts |= {"candidates": arguments.candidates.value, "gold pairs": len(texts.gold)}
        results = {name: {"seconds": seconds[name], "languages": _figures(protocols, name)} for name in seconds}
        write_record(new_record("bucc", arguments.models, facts, results), arguments.json)
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="+", metavar="MODEL")
    parser.add_argument("--data", required=True, metavar="DIR|PREFIX", help="DIR: its test, sample or training set")
    parser.add_argument("--pair", required=True, metavar="zh-en", help="languages, in the order of the gold's columns")
    parser.add_argument("--train-gold", metavar="FILE.gold", help="choose thresholds here, beside its two texts")
    parser.add_argument("--split", action="store_true", help="also choose on one half of the gold, score on the other")
    parser.add_argument("--seed", type=int, default=0, help="of the halves (%(default)s)")
    parser.add_argument("--k", type=int, default=DEFAULT_K, help="neighbours of a sentence (%(default)s)")
    parser.add_argument("--candidates", type=Candidates, choices=list(Candidates), default=Candidates.MAX)
    parser.add_argument("--json", type=Path, metavar="FILE")
    return parser


def _mine(name: str, model: SentenceTransformer, texts: ComparableTexts, arguments: argparse.Namespace) -> Mined:
    start = time.perf_counter()
    source, target = embed(model, texts.source), embed(model, texts.target)
    embedded = time.perf_counter()
    mined = mine(source, target, arguments.k, arguments.candidates)
    counts = f"{texts.name}, {len(source)} x {len(target)} sentences, {len(texts.gold)} gold pairs"
    times = f"embedding {embedded - start:.1f} s, search and margins {time.perf_counter() - embedded:.1f} s"
    print(f"{name}: {counts}: {times}\n", flush=True)
    return mined


def _print(protocol: Protocol, candidates: Candidates) -> None:
    print(f"## BUCC {protocol.heading}; candidates: {candidates.value}; precision, recall, F1 x 100\n")
    rows = [
        [
            name,
            LABELS[margin],
            f"{row.threshold:.4f}" if math.isfinite(row.threshold) else MISSING,
            str(row.extracted),
            str(row.right),
        ]
        + [hundredths(value) for value in (row.precision, row.recall, row.f1)]
        for name, by_margin in protocol.rows.items()
        for margin, row in by_margin.items()
    ]
    print(markdown_table(HEAD, rows) + "\n")


def _figures(protocols: list[Protocol], name: str) -> dict[str, dict[str, object]]:
    return {
        protocol.key: {
            "pairs": next(iter(protocol.rows[name].values())).gold,
            **{LABELS[margin]: row.figures for margin, row in protocol.rows[name].items()},
        }
        for protocol in protocols
    }


if __name__ == "__main__":
    sys.exit(run_reporting_errors("bucc", main))
