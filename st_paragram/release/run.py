"""Make the models of a release: prepare, train, pack, score, write the cards. What is finished is not made again."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from st_paragram.core.encoding.directory import CONFIG_FILE
from st_paragram.core.encoding.model_files import tokenizer_file
from st_paragram.core.encoding.record import read_training_record
from st_paragram.core.files import digest, file_digest, read_json, write_json, write_text
from st_paragram.core.tokenizers.sentencepiece import SentencePieceTokenizer
from st_paragram.errors import ModelDirectoryError
from st_paragram.learning.training.checkpoints import complete_checkpoints
from st_paragram.learning.training.run import TrainingRun, run_training
from st_paragram.release.card import release_card
from st_paragram.release.description import Packing
from st_paragram.release.plan import ModelPlan
from st_paragram.tools.preparation.prepare import prepare_cached

logger = logging.getLogger(__name__)

_STORES, _MADE, _RECORDS = "stores", "made", "records"


@dataclass(frozen=True)
class Work:
    """How a release goes about its work.

    Attributes:
        output: A folder: a model directory a model and a copy, and what is needed to resume.
        development: Graded pairs to watch trainings with; None: built-in ones.
        benchmarks: A folder of evaluation data, see `st-paragram evaluate`; None: nothing is scored.
        workers: Processes that prepare text.
    """

    output: Path
    development: Path | None = None
    benchmarks: Path | None = None
    workers: int = 1


def make_release(plans: Sequence[ModelPlan], work: Work) -> list[Path]:
    """Make all models; returns their directories, smaller copies included.

    A run that was stopped, by whatever, is resumed by the same call: texts that are prepared, epochs that are trained
    and models that are finished are not done again.

    Raises:
        ModelDirectoryError: A directory of the output was built from another description or other texts.
        ParagramError: As `prepare_cached`, `run_training` and the benchmarks.
    """
    made = []
    for each in plans:
        identity = _identity(each)
        if not _finished(each.name, identity, work):
            made_of = [each.name, *(packing.name for packing in each.model.pack)]
            logger.info(f"{each.name}: {sum(each.rows):,} rows of {len(each.texts)} texts")
            _train(each, work)
            for packing in each.model.pack:
                _pack(each, packing, work)
            for name in made_of:
                _finish(each, name, work)
            write_json(_record_of(each.name, work), {"identity": identity, "names": made_of})
        made += [work.output / name for name in read_json(_record_of(each.name, work))["names"]]
    return made


def _identity(each: ModelPlan) -> str:
    """What a model is built from, in one word."""
    texts = [(text.source, text.language, file_digest(str(text.path))) for text in each.texts]
    settings = (
        vars(each.model.training()),
        each.model.begin_with,
        each.model.preparing().as_json(),
        [vars(one) for one in each.model.pack],
    )
    return digest(each.name, texts, settings)


def _record_of(name: str, work: Work) -> Path:
    return work.output / _MADE / f"{name}.json"


def _finished(name: str, identity: str, work: Work) -> bool:
    path = _record_of(name, work)
    if not path.is_file():
        return False
    made = read_json(path)
    if not all((work.output / one / CONFIG_FILE).is_file() for one in made["names"]):
        return False
    if made["identity"] != identity:
        seen = f"{work.output / name}: built from other texts or with other settings"
        raise ModelDirectoryError(f"{seen}; remove it and {path}, or choose another output")
    return True


def _train(each: ModelPlan, work: Work) -> None:
    output = work.output / each.name
    if (output / CONFIG_FILE).is_file():  # stopped after its training
        return _check_training(each, work)
    sources = [text.parallel_text() for text in each.texts]
    store = prepare_cached(
        sources, each.model.preparing(), work.output / _STORES, _vocabulary(each, work), work.workers
    )
    run = TrainingRun(
        each.model.language,
        output,
        [str(store)],
        f"{len(each.texts)} texts of the sources below",
        config=each.model.config,
        overrides=each.model.settings | _beginning(each, work),
        development=work.development,
    )
    run_training(replace(run, resume=bool(complete_checkpoints(run.checkpoints))))


def _check_training(each: ModelPlan, work: Work) -> None:
    record = read_training_record(work.output / each.name)
    if record is None or record.settings != {"family": "psp", **asdict(each.model.training())} | _beginning(each, work):
        raise ModelDirectoryError(f"{work.output / each.name}: trained with other settings; remove it")


def _vocabulary(each: ModelPlan, work: Work) -> SentencePieceTokenizer | None:
    """That of the model to begin with: the same pieces, every one of which it knows."""
    if each.model.begin_with is None:
        return None
    settings = each.model.preparing()
    path = work.output / each.model.begin_with / tokenizer_file(SentencePieceTokenizer.kind)
    return SentencePieceTokenizer(path.read_bytes(), settings.lower_case, settings.segmentation)


def _beginning(each: ModelPlan, work: Work) -> dict[str, str]:
    return {"init": str(work.output / each.model.begin_with)} if each.model.begin_with else {}


def _pack(each: ModelPlan, packing: Packing, work: Work) -> None:
    from st_paragram.learning.models import directory as model_directory

    folder = work.output / each.name
    output = work.output / packing.name
    model = model_directory.load(folder, device="cpu", truncate_dim=packing.dim)
    training = read_training_record(folder)
    model_directory.save(model, output, overwrite=True, dtype=packing.dtype, training=training)


def _finish(each: ModelPlan, name: str, work: Work) -> None:
    """Score a model, and put the scores on its card."""
    from st_paragram.tools.evaluation.base import Request
    from st_paragram.tools.evaluation.benchmarks import run_benchmark
    from st_paragram.tools.evaluation.record import new_record, write_records

    folder = work.output / name
    found = {}
    if work.benchmarks:
        others = [code for code in each.model.languages if code != "en"]
        request = Request([str(folder)], work.benchmarks, languages=others)
        wanted = ("sts", "tatoeba") if others else ("sts",)
        runs = [run_benchmark(benchmark, request) for benchmark in wanted]
        write_records([new_record(run) for run in runs], work.output / _RECORDS / f"{name}.json")
        found = {run.benchmark: run.models[str(folder)] for run in runs}
    write_text(folder / "README.md", release_card(folder, each, found.get("sts"), found.get("tatoeba")))
