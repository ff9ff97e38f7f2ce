"""The stages of a preparation, each knowing those that its work rests on."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from st_paragram.cleaning.duplicates import Copies, Key
from st_paragram.data.text import TextSource
from st_paragram.files import atomic
from st_paragram.preparation.clean_stage import CleanStage, filters_digest
from st_paragram.preparation.deduplicate_stage import TASK_BYTES, DistinctStage
from st_paragram.preparation.encode_stage import EncodeStage, VocabularyStage
from st_paragram.preparation.plan_stage import PlanStage
from st_paragram.preparation.read_stage import SHARD_ROWS, ReadStage, text_digest
from st_paragram.preparation.settings import PrepareSettings
from st_paragram.preparation.store_stage import StoreStage
from st_paragram.stages.stage import Stage
from st_paragram.stages.work import prune
from st_paragram.tokenizers.sentencepiece import SentencePieceTokenizer


@dataclass(frozen=True)
class Sizes:
    """How large tasks are; the order of the store does not depend on it.

    Attributes:
        shard_rows: Rows that one task reads and cleans.
        task_bytes: Rows, in bytes, that one task makes distinct and encodes.
    """

    shard_rows: int = SHARD_ROWS
    task_bytes: int = TASK_BYTES


@dataclass(frozen=True)
class Pipeline:
    """The stages, first to last."""

    read: ReadStage
    clean: CleanStage
    distinct: tuple[DistinctStage, ...]
    plan: PlanStage
    vocabulary: VocabularyStage
    encode: EncodeStage
    store: StoreStage

    @property
    def stages(self) -> list[Stage]:
        """All of them, in order."""
        return [self.read, self.clean, *self.distinct, self.plan, self.vocabulary, self.encode, self.store]

    def forget_others(self) -> None:
        """Remove what was done for other texts and settings in the same work folder."""
        kept = {results for stage in self.stages for results in stage.folders}
        prune(self.read.folder, lambda results: results in kept)


def build(
    sources: Sequence[TextSource],
    output: Path,
    settings: PrepareSettings,
    folder: Path,
    vocabulary: SentencePieceTokenizer | None = None,
    rejects: bool = False,
    sizes: Sizes | None = None,
) -> Pipeline:
    """Put the stages together.

    Args:
        sources: The texts.
        output: The store.
        settings: Of the preparation.
        folder: For the results of stages.
        vocabulary: Use this one instead of training one.
        rejects: Leave the rows dropped in files, too.
        sizes: Of tasks.

    Raises:
        TextError: A text is missing.
        SettingsError: A filter's options are refused.
    """
    sizes = sizes or Sizes()
    digests = tuple(text_digest(source, settings.drop_invalid, sizes.shard_rows) for source in sources)
    read = ReadStage(folder, tuple(sources), digests, settings.drop_invalid, sizes.shard_rows)
    duplicates, seed = settings.cleaning.duplicates, settings.seed
    steps: list[tuple[Key, Copies | None]] = [(key, duplicates.copies) for key in duplicates.on]
    if not steps or steps[-1][0] is not Key.PAIR:
        steps.append((Key.PAIR, None))  # the order of the store
    cleaning, how = settings.cleaning, (settings.lower_case, settings.segmentation)
    identities = {pair: filters_digest(cleaning, pair) for pair in {source.pair for source in sources}}
    identity = tuple(identities[source.pair] for source in sources)
    clean = CleanStage(read, cleaning, identity, *how, steps[0][0], seed, rejects)
    distinct: list[DistinctStage] = []
    for number, (key, copies) in enumerate(steps):
        before = distinct[-1] if distinct else clean
        then = steps[number + 1][0] if number + 1 < len(steps) else Key.PAIR
        distinct.append(DistinctStage(before, folder, key, copies, then, seed, rejects, sizes.task_bytes))
    plan = PlanStage(distinct[-1], read.sources, settings.temperature)
    given = _write_vocabulary(vocabulary, folder) if vocabulary else None
    trained = VocabularyStage(plan, settings, given)
    encode = EncodeStage(plan, trained, settings.lower_case, settings.segmentation, settings.max_pieces)
    return Pipeline(read, clean, tuple(distinct), plan, trained, encode, StoreStage(encode, settings, output))


def _write_vocabulary(vocabulary: SentencePieceTokenizer, folder: Path) -> Path:
    """Put a vocabulary where all processes find it, under a name that tells it from others."""
    path = folder / "given" / f"{hashlib.sha256(vocabulary.model_proto).hexdigest()[:16]}.model"
    if not path.is_file():
        with atomic(path) as handle:
            handle.write(vocabulary.model_proto)
    return path
