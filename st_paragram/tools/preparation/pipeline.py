"""The stages of a preparation, each knowing those whose results it takes."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from st_paragram.core.files import atomic
from st_paragram.core.text.parallel import TextSource
from st_paragram.core.tokenizers.sentencepiece import SentencePieceTokenizer
from st_paragram.tools.cleaning.config import Cleaning
from st_paragram.tools.cleaning.duplicates import Copies, Key
from st_paragram.tools.cleaning.near_duplicates import Band
from st_paragram.tools.preparation.clean_stage import CleanStage, filters_digest
from st_paragram.tools.preparation.deduplicate_stage import TASK_BYTES, DeduplicateStage
from st_paragram.tools.preparation.encode_stage import EncodeStage
from st_paragram.tools.preparation.plan_stage import PlanStage
from st_paragram.tools.preparation.read_stage import SHARD_ROWS, ReadStage, text_digest
from st_paragram.tools.preparation.row_files import RowStage
from st_paragram.tools.preparation.settings import PrepareSettings
from st_paragram.tools.preparation.store_stage import StoreStage
from st_paragram.tools.preparation.text_stage import TextStage
from st_paragram.tools.preparation.vocabulary_stage import VocabularyStage
from st_paragram.tools.stages.stage import Stage
from st_paragram.tools.stages.work import prune


@dataclass(frozen=True)
class Sizes:
    """How large tasks are; the order of the store does not depend on it.

    Attributes:
        shard_rows: Rows that one task reads and cleans.
        task_bytes: Rows, in bytes, that one task deduplicates and encodes.
    """

    shard_rows: int = SHARD_ROWS
    task_bytes: int = TASK_BYTES


@dataclass(frozen=True)
class Pipeline:
    """The stages, first to last."""

    read: ReadStage
    clean: CleanStage
    deduplicate: tuple[DeduplicateStage, ...]
    plan: PlanStage
    text: TextStage | None
    vocabulary: VocabularyStage
    encode: EncodeStage
    store: StoreStage

    @property
    def stages(self) -> list[Stage]:
        """All of them, in order."""
        text = [self.text] if self.text else []
        return [self.read, self.clean, *self.deduplicate, self.plan, *text, self.vocabulary, self.encode, self.store]

    def write_given(self, vocabulary: SentencePieceTokenizer) -> None:
        """Put a vocabulary that takes the place of a trained one where all processes find it."""
        path = self.vocabulary.given
        if path is not None and not path.is_file():
            with atomic(path) as handle:
                handle.write(vocabulary.content)

    def forget_others(self) -> None:
        """Remove what was done for other texts and settings in the same work folder."""
        prune(self.read.root, {results for stage in self.stages for results in stage.folders})


def build(
    sources: Sequence[TextSource],
    output: Path,
    settings: PrepareSettings,
    folder: Path,
    vocabulary: SentencePieceTokenizer | None = None,
    rejects: bool = False,
    sizes: Sizes | None = None,
    keep_text: Path | None = None,
) -> Pipeline:
    """Put the stages together; nothing is written.

    Args:
        sources: The texts.
        output: The store.
        settings: Of the preparation.
        folder: For the results of stages.
        vocabulary: Use this one instead of training one.
        rejects: Leave the rows dropped in files, too.
        sizes: Of tasks.
        keep_text: A folder for the text of the rows.

    Raises:
        TextError: A text is missing.
        SettingsError: A filter's options are refused.
    """
    sizes, rejects = sizes or Sizes(), rejects or keep_text is not None
    steps = _steps(settings.cleaning)
    read, clean = _read_and_clean(sources, settings, folder, steps[0][0], rejects, sizes)
    rows: RowStage = clean
    deduplicate: list[DeduplicateStage] = []
    for number, (key, copies) in enumerate(steps):
        then = steps[number + 1][0] if number + 1 < len(steps) else Key.PAIR
        rows = DeduplicateStage(folder, rows, key, copies, then, settings.seed, rejects, sizes.task_bytes)
        deduplicate.append(rows)
    plan = PlanStage(folder, rows, read.sources, settings.temperature)
    text = None if keep_text is None else TextStage(folder, plan, keep_text)
    given = _given_file(vocabulary, folder) if vocabulary else None
    trained = VocabularyStage(folder, plan, settings, given)
    encode = EncodeStage(folder, plan, trained, settings.max_tokens)
    store = StoreStage(folder, encode, read.sources, settings, given is not None, output, text)
    return Pipeline(read, clean, tuple(deduplicate), plan, text, trained, encode, store)


def _steps(cleaning: Cleaning) -> list[tuple[Key | Band, Copies | None]]:
    """What makes rows equal or near and how many stay, step by step; the last step brings the order of the store."""
    duplicates, near = cleaning.duplicates, cleaning.near_duplicates
    steps: list[tuple[Key | Band, Copies | None]] = [(key, duplicates.copies) for key in duplicates.on]
    steps += [(Band(near, number), Copies.ONE) for number in range(near.bands)] if near else []
    if not steps or steps[-1][0] is not Key.PAIR:
        steps.append((Key.PAIR, None))
    return steps


def _read_and_clean(
    sources: Sequence[TextSource], settings: PrepareSettings, folder: Path, by: Key | Band, rejects: bool, sizes: Sizes
) -> tuple[ReadStage, CleanStage]:
    texts = tuple(text_digest(source, settings.drop_invalid, sizes.shard_rows) for source in sources)
    read = ReadStage(folder, tuple(sources), texts, settings.drop_invalid, sizes.shard_rows)
    filters = {pair: filters_digest(settings.cleaning, pair) for pair in {source.pair for source in sources}}
    identities = tuple(filters[source.pair] for source in sources)
    how = settings.lower_case, settings.segmentation
    return read, CleanStage(folder, read, settings.cleaning, identities, *how, by, settings.seed, rejects)


def _given_file(vocabulary: SentencePieceTokenizer, folder: Path) -> Path:
    """The place of a vocabulary that is not trained; the name distinguishes it from others."""
    return folder / "given" / f"{hashlib.sha256(vocabulary.content).hexdigest()[:16]}.model"
