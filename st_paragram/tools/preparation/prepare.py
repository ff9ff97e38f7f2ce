"""From parallel text to a pair store: read, clean, deduplicate, shuffle, train a vocabulary, encode, write.

Each stage leaves its results in a work folder, task by task, so a run that was interrupted, by whatever, is resumed
where it stopped, and one with other settings does only what they change. Memory stays bounded whatever the size. The
pairs stored, and their order, depend on the set of rows, the settings and the seed, not on who worked on them.
"""

from __future__ import annotations

import hashlib
import logging
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

from st_paragram.core.extras import require
from st_paragram.core.files import (
    atomic,
    digest,
    folder_for_file,
    locked,
    not_writable,
    output_lock,
    remove_unfinished,
)
from st_paragram.core.pair_store import FORMAT_VERSION, PairStore
from st_paragram.core.text.parallel import TextSource
from st_paragram.core.tokenizers.bilingual import Sharing
from st_paragram.core.tokenizers.sentencepiece import SentencePieceTokenizer
from st_paragram.core.tokenizers.stock import convert_tokenizer
from st_paragram.core.tokenizers.words import Splitter
from st_paragram.errors import SettingsError, StoreError, TextError
from st_paragram.tools.preparation.pipeline import Pipeline, Sizes, build
from st_paragram.tools.preparation.plan_stage import MOST_COPIES
from st_paragram.tools.preparation.read_stage import text_digest
from st_paragram.tools.preparation.report import PrepareReport
from st_paragram.tools.preparation.row_files import MAX_SOURCES, RowStage, rejects_file
from st_paragram.tools.preparation.settings import PrepareSettings
from st_paragram.tools.stages.executors import Executor, StageTime
from st_paragram.tools.stages.work import Work, work_folder

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class PrepareWork(Work):
    """How a preparation goes about its work; nothing here changes the pairs of the store or their order.

    Attributes:
        rejects: A folder for the rows dropped, one file for each reason.
        keep_text: A folder for the text of the rows, `a.txt` and `b.txt`; the store says which text that is.
        sizes: Of tasks.
    """

    rejects: Path | None = None
    sizes: Sizes | None = None
    keep_text: Path | None = field(default=None, kw_only=True)


@dataclass(frozen=True)
class Prepared:
    """What came of a preparation."""

    report: PrepareReport
    times: list[StageTime]


def prepare(
    sources: Sequence[TextSource],
    output: str | Path,
    settings: PrepareSettings,
    vocabulary: SentencePieceTokenizer | None = None,
    overwrite: bool = False,
    work: PrepareWork | None = None,
) -> Prepared:
    """Make a pair store of parallel texts.

    The work folder takes about four times the size of the text, and once more for each band of near duplicates. It is
    removed at the end, and if something is refused; after Ctrl-C, a full disk or a killed process it stays, and the
    same call resumes from it.

    Args:
        sources: The texts, see `parallel.parse_source`.
        output: The HDF5 file to make.
        settings: What to do.
        vocabulary: Use this vocabulary instead of training one.
        overwrite: Replace an output that exists. One that was made in this very work folder, of the same texts and
            with the same settings, stays in any case.
        work: How to go about it.

    Returns:
        The numbers of the preparation, which the store keeps as well (`PairStore.settings["report"]`), and its times.

    Raises:
        TextError: If a text cannot be read, or fewer than two pairs are left.
        StoreError: If the output exists, or cannot be written.
        SettingsError: If settings are refused, or the vocabulary does not go with them.
        ParagramError: Another run is at work in the folder.

    Example:
        >>> from st_paragram import PrepareSettings, parse_source, prepare
        >>> languages = ("en", "es")
        >>> sources = [parse_source("en-es.tsv", languages)]
        >>> made = prepare(sources, "en-es.h5", PrepareSettings(languages, vocab_size=300))
    """
    output, work = Path(output), work or PrepareWork()
    _check_arguments(sources, output, settings, vocabulary)
    if work.rejects and (wrong := not_writable(work.rejects / "text")):
        raise StoreError(f"{wrong}; name a folder for the rows that are dropped")
    if work.keep_text and (wrong := not_writable(work.keep_text / "text")):
        raise StoreError(f"{wrong}; name a folder for the text of the rows")
    with work_folder(work, output):
        pipeline = _pipeline(sources, output, settings, vocabulary, overwrite, work)
        if vocabulary:
            pipeline.write_given(vocabulary)
        times = work.run(pipeline.stages)
        report = pipeline.store.report()
        if work.rejects:
            gather_rejects((pipeline.clean, *pipeline.deduplicate), work.rejects)
        pipeline.forget_others()
    logger.info("%s: %d pairs, vocabulary of %d pieces", output, report.total.kept, report.vocabulary_size)
    return Prepared(report, times)


def _pipeline(
    sources: Sequence[TextSource],
    output: Path,
    settings: PrepareSettings,
    vocabulary: SentencePieceTokenizer | None,
    overwrite: bool,
    work: PrepareWork,
) -> Pipeline:
    """The stages; refuses an output that exists, unless it is what this very work folder has made."""
    folder = work.folder_for(output)
    pipeline = build(
        sources, output, settings, folder, vocabulary, work.rejects is not None, work.sizes, work.keep_text
    )
    if output.exists() and not overwrite and pipeline.store.pending():
        raise StoreError(f"{output} exists; choose another name or give --overwrite")
    if pipeline.text and not overwrite and pipeline.text.pending():
        for path in filter(Path.exists, pipeline.text.files.values()):
            raise StoreError(f"{path} exists; choose another folder for --keep-text or give --overwrite")
    return pipeline


def prepare_cached(
    sources: Sequence[TextSource],
    settings: PrepareSettings,
    cache_dir: str | Path,
    vocabulary: SentencePieceTokenizer | None = None,
    executor: Executor | None = None,
) -> Path:
    """Return a store of these texts and settings from a cache folder, made first if it is not there yet.

    The texts are identified by absolute path, size and time of change.

    Raises:
        TextError: If a text is missing or is not a regular file (standard input cannot be cached).
        StoreError: As in `prepare`.
        SettingsError: As in `prepare`.
    """
    for text in (text for source in sources for text in source.paths if not Path(text).is_file()):
        raise TextError(f"{text}: not a regular file; a text must be one for its store to be cached")
    texts = [
        [text_digest(source, settings.drop_invalid), source.cap, *([source.weight] if source.weight != 1 else [])]
        for source in sources
    ]
    identity = digest(texts, settings.as_json(), _digest(vocabulary), FORMAT_VERSION)
    path = Path(cache_dir) / f"{'-'.join(settings.languages)}-{identity}.h5"
    with locked(Path(cache_dir), wait=True):  # two processes may want the same store at once
        if path.is_file():
            try:
                PairStore(path)
                return path
            except StoreError as error:
                logger.warning("cached store is made again: %s", error)
        prepare(sources, path, settings, vocabulary, overwrite=True, work=PrepareWork(executor=executor))
    return path


def _check_arguments(
    sources: Sequence[TextSource], output: Path, settings: PrepareSettings, vocabulary: SentencePieceTokenizer | None
) -> None:
    if not 1 <= len(sources) <= MAX_SOURCES:
        raise SettingsError(f"{len(sources)} texts to prepare; give 1 to {MAX_SOURCES:,}")
    if wrong := folder_for_file(output):
        raise StoreError(f"{wrong}; name a file")
    for source in sources:
        if source.cap is not None and source.cap < 1:
            raise SettingsError(f"{source.name}: a cap of {source.cap} pairs; it must be at least 1")
        if not 0 < source.weight <= MOST_COPIES:
            raise SettingsError(
                f"{source.name}: a weight of {source.weight:g}; give one above 0, at most {MOST_COPIES}"
            )
    if settings.splitter is Splitter.MOSES:
        require("sacremoses", "moses", 'splitter "moses"')  # before the text is read, not after hours
    if vocabulary is None:
        return
    if (settings.tokens, settings.sharing) != ("sentencepiece", Sharing.JOINT):
        seen = f"tokens is {settings.tokens} and sharing {settings.sharing.value}, and a sentencepiece model is given"
        raise SettingsError(f"{seen}; one serves for joint sentencepiece alone, leave it out")
    convert_tokenizer(vocabulary)  # a model that no directory can hold should fail here, not after hours
    given = (vocabulary.lower_case, vocabulary.segmentation.value)
    wanted = (settings.lower_case, settings.segmentation.value)
    if given != wanted:
        seen = f"the vocabulary has (lower_case, segmentation) {given}, the settings have {wanted}"
        raise SettingsError(f"{seen}; make them agree")


def _digest(vocabulary: SentencePieceTokenizer | None) -> str | None:
    return hashlib.sha256(vocabulary.content).hexdigest() if vocabulary else None


def gather_rejects(stages: Iterable[RowStage], folder: Path) -> list[Path]:
    """Write the dropped rows to `<folder>/too-short.tsv`, `<folder>/duplicate.tsv`, ..., one file for each reason.

    The rows are as the steps of the cleaning saw them: in their original case, with single spaces, and repaired where
    a repair came first; further columns are there, too. For this, rows carry their original columns along between
    stages: the work folder is half as large again, the store is the same.

    Args:
        stages: The stages that drop rows, all of them done; they have left these rows in files.
        folder: The folder to write to; it is made if it does not exist.

    Returns:
        The files written, one for each reason that occurred.

    Raises:
        ParagramError: A file cannot be written, or another run is writing into the folder.
    """
    handles: dict[bytes, IO[bytes]] = {}
    with output_lock(folder), ExitStack() as stack:
        folder.mkdir(exist_ok=True)
        remove_unfinished(folder)
        for reason, row in _rejects(stages):
            if reason not in handles:
                handles[reason] = stack.enter_context(atomic(_file(folder, reason)))
            handles[reason].write(row)
    return [_file(folder, reason) for reason in handles]


def _rejects(stages: Iterable[RowStage]) -> Iterator[tuple[bytes, bytes]]:
    for stage in stages:
        for result in stage.results():
            with rejects_file(result).open("rb") as handle:
                for line in handle:
                    reason, _, row = line.partition(b"\t")
                    yield reason, row


def _file(folder: Path, reason: bytes) -> Path:
    return folder / f"{re.sub('[^a-z0-9]+', '-', reason.decode().lower())}.tsv"
