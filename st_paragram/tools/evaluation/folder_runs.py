"""The benchmarks on the data that a folder, or the Hugging Face hub, has of them: what `benchmarks.BENCHMARKS` runs."""

from __future__ import annotations

from pathlib import Path
from typing import cast

from st_paragram.families.muse.nli import NliRun, run_nli
from st_paragram.families.muse.nli_files import read_nli_sets
from st_paragram.tools.evaluation.answer_retrieval import AnswerRetrievalRun, read_answer_tasks, run_answer_retrieval
from st_paragram.tools.evaluation.benchmark_runs import run_bucc, run_hard_sts, run_mteb, run_sts, run_tatoeba
from st_paragram.tools.evaluation.benchmarks import Request
from st_paragram.tools.evaluation.bucc_files import read_bucc_pairs
from st_paragram.tools.evaluation.bucc_scores import BuccTask
from st_paragram.tools.evaluation.mteb.data import LOCAL_TASKS, local_tasks
from st_paragram.tools.evaluation.results import BuccRun, HardStsRun, MtebRun, StsRun, TatoebaRun
from st_paragram.tools.evaluation.retrieval_files import read_semantic_sets
from st_paragram.tools.evaluation.semantic_retrieval import SemanticRetrievalRun, run_semantic_retrieval
from st_paragram.tools.evaluation.sts.catalogue import YEARS
from st_paragram.tools.evaluation.sts.sts_files import find_sts
from st_paragram.tools.evaluation.tatoeba_files import read_tatoeba
from st_paragram.tools.evaluation.transfer import TransferRun, run_transfer
from st_paragram.tools.evaluation.transfer_files import read_transfer


def sts(request: Request) -> StsRun:
    """STS 2012-2017 and the STS Benchmark."""
    return run_sts(request.models, find_sts(request.data, (), request.hub), request.untrained, request.compare)


def hard_sts(request: Request) -> HardStsRun:
    """Hard STS, made of STS 2012-2016."""
    return run_hard_sts(request.models, find_sts(request.data, YEARS, request.hub), request.untrained)


def tatoeba(request: Request) -> TatoebaRun:
    """Tatoeba, of a folder alone."""
    sets = read_tatoeba(_folder(request), request.languages)
    return run_tatoeba(request.models, sets, untrained=request.untrained)


def bucc(request: Request) -> BuccRun:
    """BUCC, of a folder alone, with an oracle's threshold and one of the other half."""
    pairs = read_bucc_pairs(_folder(request), request.pairs)
    return run_bucc(request.models, BuccTask(pairs, split=True), request.untrained)


def semantic_retrieval(request: Request) -> SemanticRetrievalRun:
    """Sets of a folder alone whose queries are candidates themselves."""
    sets = read_semantic_sets(_folder(request), request.limit)
    return run_semantic_retrieval(request.models, sets, request.untrained)


def answer_retrieval(request: Request) -> AnswerRetrievalRun:
    """Sets of a folder alone whose queries are questions."""
    tasks = read_answer_tasks(_folder(request), request.languages)
    return run_answer_retrieval(request.models, tasks, request.untrained)


def transfer(request: Request) -> TransferRun:
    """SentEval's transfer tasks, of a folder alone."""
    return run_transfer(request.models, read_transfer(_folder(request)), request.untrained)


def nli(request: Request) -> NliRun:
    """Inference, of a folder alone, for models that have a classifier; random embeddings have none."""
    return run_nli(request.models, read_nli_sets(_folder(request), request.languages))


def mteb(request: Request) -> MtebRun:
    """The tasks of mteb that the folder has data of; without a folder, all that a folder could have."""
    tasks = local_tasks(request.data) if request.data else LOCAL_TASKS
    return run_mteb(request.models, tasks, request.data, request.languages)


def _folder(request: Request) -> Path:
    return cast(Path, request.data)  # `benchmarks.check_data` has seen that there is one
