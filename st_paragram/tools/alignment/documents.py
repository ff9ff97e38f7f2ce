"""Mining or aligning within pairs of documents, any number of them.

Each pair of documents is a separate task that leaves its result in a work folder, so a run that was interrupted is
resumed where it stopped, and any executor can share the tasks; the results follow each other in the order of the list.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from st_paragram.core.encoding.find import find
from st_paragram.core.files import atomic, check_output
from st_paragram.core.threads import usable_cores
from st_paragram.errors import SettingsError
from st_paragram.tools.alignment.document_list import DocumentPair, check_pairs, read_list, write_plan
from st_paragram.tools.alignment.document_stage import DocumentStage, Settings
from st_paragram.tools.alignment.settings import AlignmentSettings
from st_paragram.tools.bitext_mining.settings import MiningSettings
from st_paragram.tools.stages.executors import StageTime
from st_paragram.tools.stages.metadata import read_metadata
from st_paragram.tools.stages.work import Work, prune, work_folder


@dataclass(frozen=True)
class DocumentReport:
    """What was done.

    Attributes:
        documents: Pairs of documents.
        source: Sentences of the source documents, blank lines apart.
        target: Sentences of the target documents.
        pairs: Pairs of sentences that were written, or of joined sentences.
        times: How long it took.
    """

    documents: int
    source: int
    target: int
    pairs: int
    times: tuple[StageTime, ...]


def mine_documents(
    documents: str | Path | Iterable[DocumentPair],
    output: str | Path,
    model: str | Path,
    settings: Settings | None = None,
    overwrite: bool = False,
    work: Work | None = None,
) -> DocumentReport:
    """Find sentences that translate each other within pairs of documents, and write them to one file.

    Args:
        documents: A list, a row `source file TAB target file` for each pair, the files from its own folder; or the
            pairs themselves. A document is plain or compressed text, one sentence per line.
        output: The file to make, `score TAB source TAB target`. Pairs of documents follow each other as in the list;
            aligned sentences are in document order, mined sentences best first. Two sentences of a block are
            joined by a space.
        model: Directory, name or hub id of a model.
        settings: `AlignmentSettings` (the default) for documents that say the same in the same order, `MiningSettings`
            without regard to order, of which `k`, `margin`, `candidates` and `threshold` count here.
        overwrite: Replace an output that exists.
        work: How to go about it.

    Raises:
        TextError, MiningError: The list is not one, or a document is missing, empty, unreadable or too large: all
            are looked at before the first is worked on. Or vectors are not finite.
        SettingsError: Settings are refused.
        ModelDirectoryError: There is no such model.
        ParagramError: The output exists, or another run is writing it or is at work in the folder.
    """
    settings, work, output = settings or AlignmentSettings(), work or Work(), Path(output)
    if isinstance(settings, MiningSettings) and (settings.paraphrase or settings.with_ids):
        raise SettingsError("--documents cannot be combined with --paraphrase or --ids; leave these options out")
    check_output(output, overwrite)
    pairs = list(read_list(str(documents)) if isinstance(documents, str | Path) else documents)
    source, target = check_pairs(pairs, ordered=isinstance(settings, AlignmentSettings))
    found = find(model)
    with work_folder(work, output) as folder:
        check_output(output, overwrite)  # another run may have made it
        stage = _stage(pairs, folder.absolute(), found, settings, work.workers)
        times = work.run([stage])
        results = stage.results()
        _concatenate(results, output)
        count = sum(read_metadata(path)["pairs"] for path in results)
        prune(stage.root, {*stage.folders, stage.plan.parent})
    return DocumentReport(len(pairs), source, target, count, tuple(times))


def _stage(pairs: Sequence[DocumentPair], folder: Path, model: Path, settings: Settings, workers: int) -> DocumentStage:
    from st_paragram.core.encoding.directory import fingerprint

    threads = max(1, usable_cores() // workers)
    plan = write_plan(pairs, folder)
    return DocumentStage(folder, plan, model.absolute(), fingerprint(model), settings, threads)


def _concatenate(results: Iterable[Path], output: Path) -> None:
    with atomic(output) as handle:
        for path in results:
            with path.open("rb") as result:
                shutil.copyfileobj(result, handle)
