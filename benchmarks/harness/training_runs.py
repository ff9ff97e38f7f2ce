"""A whole training as the recipes run it, with M growing to its largest."""

from __future__ import annotations

import tempfile
from typing import Any

from harness.channel import Channel
from st_paragram.core.data.pair_store import PairStore
from st_paragram.core.data.sample.held_out import graded_pairs


def run(peer: str, arguments: dict[str, Any], channel: Channel) -> None:
    """Train anew in each round.

    Args:
        peer: ignored.
        arguments: `store`, and under `settings` fields of `TrainingSettings`.
        channel: to the benchmark. The time is that of the steps; evaluation and checkpoints, of which a run as short
            as this has far too many, are left out.
    """
    from st_paragram.learning.training.settings import TrainingSettings
    from st_paragram.learning.training.train import train
    from st_paragram.tools.evaluation.graded_pairs import GradedPairs

    store = PairStore(arguments["store"], check_ids=False)
    settings = TrainingSettings(**arguments["settings"])
    development = GradedPairs("built-in", *graded_pairs())
    channel.ready()
    while channel.wait():
        with tempfile.TemporaryDirectory() as folder:
            report = train(store, settings, development, folder).report
        pairs = settings.epochs * len(store)
        channel.report(pairs / report.pairs_per_second, pairs)
