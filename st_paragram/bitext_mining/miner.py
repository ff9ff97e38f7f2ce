"""Mining from end to end: sentences, embeddings, neighbours both ways, margins, pairs.

Every stage leaves its results in a work folder, task by task, so a run that was interrupted goes on where it stopped,
and one with another margin or threshold searches nothing again. The pairs do not depend on the size of shards nor on
who did the work.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from st_paragram.bitext_mining.pair_stage import PairStage
from st_paragram.bitext_mining.report import MiningReport, collect
from st_paragram.bitext_mining.settings import MiningSettings
from st_paragram.bitext_mining.stages import EffortStage, EmbedStage, IndexStage, SearchPlan, SearchStage, SentenceStage
from st_paragram.errors import MiningError, ParagramError, SettingsError
from st_paragram.files import file_digest
from st_paragram.models import directory as model_directory
from st_paragram.models.find import find
from st_paragram.stages.executors import Executor, LocalExecutor
from st_paragram.stages.stage import forget
from st_paragram.stages.work import prune, tidied


@dataclass(frozen=True)
class Work:
    """How a mining goes about its work; nothing here changes the pairs.

    Attributes:
        folder: For the results of stages. None: hidden beside the output, `.<output>.work`.
        keep: Leave the folder there, so that another run need not do again what has not changed.
        force: A stage to do again, with all that follow it, though nothing has changed.
        executor: Who does the work; None: this process.
        workers: Processes that share the memory and the cores.
    """

    folder: Path | None = None
    keep: bool = False
    force: str | None = None
    executor: Executor | None = None
    workers: int = 1


def mine(
    texts: Sequence[str],
    output: str | Path,
    model: str,
    settings: MiningSettings | None = None,
    overwrite: bool = False,
    work: Work | None = None,
) -> MiningReport:
    """Find sentences of two texts, or of one, that mean the same, and write them to a file.

    Args:
        texts: Source and target; for paraphrases one text. Plain or compressed, a sentence a line.
        output: The file to make, `score TAB source TAB target`, best pairs first.
        model: Directory, name or hub id of a model.
        settings: What to do.
        overwrite: Replace an output that exists.
        work: How to go about it.

    Raises:
        TextError, MiningError: A text cannot be read or has too few sentences; vectors are not finite.
        SettingsError: Settings are refused.
        ModelDirectoryError: There is no such model.
        MissingExtraError: faiss is not installed.
        ParagramError: Another run is at work in the folder.
    """
    settings, work, output = settings or MiningSettings(), work or Work(), Path(output)
    _check(texts, output, settings)
    folder = work.folder or output.with_name(f".{output.name}.work")
    found = find(model)
    try:
        with tidied(folder, work.keep):
            stages = build(texts, output, found, settings, folder, work.workers)
            last = stages[-1]
            if output.exists() and not overwrite and not _made_before(last):
                raise MiningError(f"{output}: exists already; choose another name or allow to overwrite it")
            if work.force:
                forget(stages, work.force)
            times = (work.executor or LocalExecutor()).run(stages)
            report = collect(last, times)
            kept = {results for stage in stages for results in stage.folders}
            prune(folder, lambda results: results in kept)
    except OSError as error:
        message = f"{output}: could not be made ({error}); free space, or choose another folder, and start again"
        raise MiningError(message) from error
    return report


def build(
    texts: Sequence[str], output: Path, model: Path, settings: MiningSettings, folder: Path, workers: int
) -> tuple[SentenceStage, EmbedStage, IndexStage, EffortStage, SearchStage, PairStage]:
    """The stages, first to last."""
    digests = tuple(map(file_digest, texts))
    sentences = SentenceStage(folder, tuple(texts), digests, settings.with_ids, settings.most_repeats)
    threads = max(1, (os.cpu_count() or 1) // workers)
    embed = EmbedStage(sentences, model, model_directory.fingerprint(model), settings, threads)
    index = IndexStage(SearchPlan(embed, settings, workers))
    effort = EffortStage(index)
    search = SearchStage(effort)
    return sentences, embed, index, effort, search, PairStage(search, output)


def _check(texts: Sequence[str], output: Path, settings: MiningSettings) -> None:
    wanted = 1 if settings.paraphrase else 2
    if len(texts) != wanted:
        raise SettingsError(
            f"{len(texts)} texts, where {wanted} are needed; paraphrases are of one text, bitext of two"
        )
    if output.is_dir():
        raise MiningError(f"{output}: is a folder; name a file")


def _made_before(last: PairStage) -> bool:
    """Whether the output is what this work folder has made before, or nothing can be said yet."""
    try:
        return not last.pending()
    except ParagramError:  # stages before it are not done
        return False
