"""The benchmarks, and the runs of models on them.

Each protocol is a module with `find(folder, benchmark)`, which finds its data in a folder of
evaluation data; `read(request)`, which returns the data; `score(name, model, data)`, which yields
the scores of one model; and `tables(scores, data)`, which yields Markdown in parts. An optional
`reference(data)` yields scores that need no model. The modules are imported when a benchmark runs,
so that the command rejects wrong options immediately.
"""

from __future__ import annotations

import gc
import logging
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from st_paragram.errors import SettingsError
from st_paragram.tools.evaluation.parallel_sets import PARALLEL_SETS
from st_paragram.tools.evaluation.request import Request

if TYPE_CHECKING:
    from st_paragram.tools.evaluation.scores import Score

logger = logging.getLogger(__name__)

UNTRAINED = "untrained"
#: Benchmarks whose data can be loaded from the Hugging Face Hub.
ON_HUB = ("sts", "hard-sts", *PARALLEL_SETS)
#: All benchmarks, in running order.
BENCHMARKS = (*ON_HUB, "bucc", "semantic-retrieval", "answer-retrieval", "transfer", "nli", "mteb")


def benchmarks_in(folder: Path) -> list[str]:
    """Return the names of the benchmarks whose data are in a folder."""
    return [name for name in BENCHMARKS if _protocol(name).find(folder, name)]


def run_benchmark(name: str, request: Request) -> tuple[list[Score], Iterator[str]]:
    """Score models on one benchmark, or on the user's own data ("own").

    At most one model is in memory at a time.

    Returns:
        The scores with their differences, and the Markdown in parts.
    """
    from st_paragram.core.encoding.models import load_encoder
    from st_paragram.core.model_directory.find import find
    from st_paragram.core.model_directory.model_files import model_digest
    from st_paragram.tools.evaluation.bootstrap import differences

    from_hub = request.hub and name in (*ON_HUB, "mteb")
    if request.data is None and name != "own" and not from_hub:
        raise SettingsError(f"{name}: the hub does not have the data; give --data DIR")
    protocol = _protocol(name)
    data = protocol.read(replace(request, benchmark=name))
    scores: list[Score] = []
    if hasattr(protocol, "reference"):
        scores += protocol.reference(data)
    for model in dict.fromkeys(request.models):
        logger.info(f"{model}: scoring")
        digest = model_digest(find(model))
        encoder = load_encoder(model)
        for score in protocol.score(model, encoder, data):
            scores.append(replace(score, digest=digest))
        del encoder
        gc.collect()  # pipelines contain reference cycles
    if request.random_model is not None:
        logger.info(f"{UNTRAINED}: scoring")
        untrained = request.random_model(request.models[0])
        scores += protocol.score(UNTRAINED, untrained, data)
    scores += differences(scores)
    return scores, protocol.tables(scores, data)


def _protocol(benchmark: str) -> Any:
    """Return the module of a benchmark."""
    from st_paragram.tools.evaluation import (
        answer_retrieval,
        bucc,
        hard_sts,
        mteb_tasks,
        nli,
        own,
        semantic_retrieval,
        sts,
        transfer,
        translations,
    )

    if benchmark in PARALLEL_SETS:
        return translations
    return {
        "own": own,
        "sts": sts,
        "hard-sts": hard_sts,
        "bucc": bucc,
        "semantic-retrieval": semantic_retrieval,
        "answer-retrieval": answer_retrieval,
        "transfer": transfer,
        "nli": nli,
        "mteb": mteb_tasks,
    }[benchmark]
