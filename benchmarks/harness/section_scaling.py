"""Tables of how training and encoding scale with what they are given."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial

from harness.options import Options
from harness.processes import Peer
from harness.results import Measure, Row, Table
from harness.section_encode import arguments
from harness.section_train import ours
from harness.timing import interleave, rows
from harness.units import Unit
from st_paragram.core.threads import usable_cores

_ROUNDS = 3
_LEAST_STEPS = 60  # of a round


@dataclass(frozen=True)
class Factors:
    """The values that each factor takes while the others stay as the options have them."""

    dims: Sequence[int]
    vocab_sizes: Sequence[int]
    megabatch_sizes: Sequence[int]
    threads: Sequence[int]
    lengths: Sequence[float]
    pair_factors: Sequence[int]

    @classmethod
    def of(cls, options: Options) -> Factors:
        """The factors of a whole run, or of a smoke test; a model or a store that is given keeps its vocabulary."""
        if options.quick:
            return cls((options.dim // 2, options.dim), (), (1, options.megabatch_size), (), (0.5, 3), ())
        counts = [1 << power for power in range(usable_cores().bit_length()) if 1 << power <= usable_cores()]
        vocab_sizes = () if options.model or options.data else (20_000, 50_000)
        return cls(
            (300, 1024), vocab_sizes, (1, 20, 60, 100), sorted({*counts, usable_cores()}), (0.5, 1, 3), (1, 10, 50)
        )


def units(options: Options) -> Iterator[Unit]:
    """One table for training, one for encoding."""
    factors = Factors.of(options)
    yield Unit("scaling-train", partial(_table, options, "train", train_groups(options, factors)))
    yield Unit("scaling-encode", partial(_table, options, "encode", encode_groups(options, factors)))


def train_groups(options: Options, factors: Factors) -> Iterator[list[Peer]]:
    """Training: the peers of each factor, which are run side by side."""
    options = replace(options, rounds=_ROUNDS)
    threads = options.thread_counts()[-1]
    inputs = options.inputs()

    def peer(name: str, count: int = threads, **others: object) -> Peer:
        megabatch_size = others.get("megabatch_size", options.megabatch_size)
        assert isinstance(megabatch_size, int)
        steps = max(megabatch_size, min(_LEAST_STEPS, 4 * options.megabatch_size))
        return Peer(name, "train", "ours", ours(options, steps=steps, **others), count)

    yield [peer(f"dim {dim:,}", dim=dim) for dim in factors.dims]
    yield [peer(f"vocabulary {size:,}", store=str(inputs.pair_store(size))) for size in factors.vocab_sizes]
    yield [peer(f"M {size}", megabatch_size=size) for size in factors.megabatch_sizes]
    yield [peer(f"threads {count}", count) for count in factors.threads]
    yield [
        peer(f"sentence length x {length:g}", store=str(inputs.pair_store(options.vocab_size, length=length)))
        for length in factors.lengths
    ]
    pairs = options.count // 2
    yield [
        peer(f"pairs {pairs * factor:,}", store=str(inputs.pair_store(options.vocab_size, pairs * factor)))
        for factor in factors.pair_factors
    ]


def encode_groups(options: Options, factors: Factors) -> Iterator[list[Peer]]:
    """Encoding from text: the peers of each factor."""
    threads = options.thread_counts()[-1]

    def peer(name: str, count: int = threads, **others: object) -> Peer:
        return Peer(name, "encode", "native", {**arguments(options, count), **others}, count)

    inputs = options.inputs()
    if options.model is None:
        size = options.vocab_size
        yield [peer(f"dim {dim:,}", model=str(inputs.model_directory(size, dim))) for dim in factors.dims]
        yield [
            peer(f"vocabulary {size:,}", model=str(inputs.model_directory(size, options.dim)))
            for size in factors.vocab_sizes
        ]
    yield [peer(f"threads {count}", count) for count in factors.threads]
    yield [peer(f"sentence length x {length:g}", sentences=str(inputs.sentences(length))) for length in factors.lengths]
    yield [
        peer(f"sentences {count:,}", count=count)
        for count in (100, 1_000, 10_000, 100_000)
        if count <= options.count and not options.quick
    ]


def _table(options: Options, what: str, groups: Iterator[list[Peer]]) -> Table:
    table_rows: list[Row] = []
    for group in groups:
        processes = interleave(group, _ROUNDS, title=f"scaling, {what}")
        table_rows += rows(processes, memory=True)
    what_else = f"M {options.megabatch_size}, batch {options.batch_size}, " if what == "train" else ""
    return Table(
        f"scaling-{what}",
        {"train": "How training scales", "encode": "How encoding (text to vectors) scales"}[what],
        {"train": "pairs/s", "encode": "sentences/s"}[what],
        Measure.RATE,
        table_rows,
        notes=[
            f"One factor at a time; the others: dim {options.dim:,}, vocabulary {options.vocab_size:,}, {what_else}"
            f"threads {options.thread_counts()[-1]}. {_ROUNDS} rounds, interleaved among the values of a factor.",
        ],
    )
