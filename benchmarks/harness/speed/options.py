"""What a run of the benchmark was asked to do."""

from __future__ import annotations

import argparse
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from harness.speed.inputs import Inputs

from st_paragram.core.threads import usable_cores

_QUICK: dict[str, Any] = {"vocab_size": 4_000, "dim": 128, "count": 6_000, "slow_count": 64, "megabatch_size": 8}
_QUICK |= {"rounds": 2, "anneal_interval": 4, "quick": True}


@dataclass(frozen=True)
class Options:
    """Sizes and places of a run.

    Args:
        output: folder of the results; what is made for the run goes to `inputs` in it.
        model: a model directory, or None for a random one.
        sentences: a file of sentences, or None for built-in text.
        data: a pair store, or None.
        rounds: that count, of each peer.
        vocab_size: pieces of a random model.
        dim: components of a random model and of everything that is trained.
        count: sentences to encode.
        slow_count: sentences for peers a hundred times slower.
        batch_size: pairs of a mini-batch.
        megabatch_size: M.
        anneal_interval: of the whole training that lets M grow.
        device: torch device of what can use one.
        peers: only rows whose name has one of these in it; all if empty.
        quick: a smoke test: its figures mean nothing.
    """

    output: Path
    model: Path | None = None
    sentences: Path | None = None
    data: Path | None = None
    rounds: int = 5
    vocab_size: int = 50_000
    dim: int = 1024
    count: int = 120_000
    slow_count: int = 1_000
    batch_size: int = 128
    megabatch_size: int = 60
    anneal_interval: int = 20
    device: str = "cpu"
    peers: tuple[str, ...] = ()
    quick: bool = False

    def inputs(self) -> Inputs:
        """What the peers work on."""
        return Inputs(self.output / "inputs", self.count, self.sentences, self.model, self.data)

    def thread_counts(self) -> list[int]:
        """One thread, and all; a smoke test takes one."""
        return [1] if self.quick else sorted({1, usable_cores()})

    def wanted(self, name: str) -> bool:
        """Whether a row of this name was asked for."""
        return not self.peers or any(part in name for part in self.peers)

    def as_json(self) -> dict[str, Any]:
        """As JSON values: results of other options are not comparable."""
        values = {name: str(value) if isinstance(value, Path) else value for name, value in asdict(self).items()}
        return values | {"peers": list(self.peers)}


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of a run to a parser."""
    add = parser.add_argument
    add("--model", type=Path, metavar="DIR", help="a model directory; else a random model")
    add("--sentences", type=Path, metavar="FILE", help="one a line; else built-in text")
    add("--data", type=Path, metavar="STORE", help="a pair store; else one made of the sentences")
    add("--peers", metavar="NAMES", help="only rows with one of these, separated by commas, in the name")
    add("--rounds", type=int, help="that count (default 5)")
    add("--vocab-size", type=int, help="pieces of a random model (default 50,000)")
    add("--dim", type=int, help="components (default 1,024)")
    add("--count", type=int, help="sentences to encode (default 120,000)")
    add("--slow-count", type=int, help="sentences for transformers and their like (default 1,000)")
    add("--megabatch-size", type=int, help="M (default 60)")
    add("--device", help="torch device of what can use one (default cpu)")
    add("--output", type=Path, default=Path("build/speed"), metavar="FOLDER", help="of the results (%(default)s)")
    add("--quick", action="store_true", help="a smoke test of about two minutes; its figures say nothing")


def options_of(arguments: argparse.Namespace) -> Options:
    """The options that were given; a smoke test has small sizes where none is given."""
    options = Options(arguments.output, arguments.model, arguments.sentences, arguments.data)
    if arguments.quick:
        options = replace(options, **_QUICK)
    names = ("rounds", "vocab_size", "dim", "count", "slow_count", "megabatch_size", "device")
    given = {name: getattr(arguments, name) for name in names if getattr(arguments, name) is not None}
    return replace(options, **given, peers=tuple(arguments.peers.split(",")) if arguments.peers else ())
