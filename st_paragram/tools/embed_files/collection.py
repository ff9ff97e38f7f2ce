"""Embed a collection of texts into a folder of shards, by any number of processes or machines.

Every shard is a separate task, whose lines follow from the texts and the settings alone, so that the bytes do not
depend on who does the work. Shards that are done stay in a work folder until all are; a run that was interrupted, by
whatever, is resumed there by the same call.
"""

from __future__ import annotations

import logging
import os
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from st_paragram.core.extras import require
from st_paragram.core.files import (
    STDIN,
    atomic_folder,
    check_output_folder,
    file_digest,
    locked,
    output_lock,
    size,
)
from st_paragram.errors import ParagramError, SettingsError, TextError
from st_paragram.tools.embed_files.description import (
    DESCRIPTION_FILE,
    FORMAT_VERSION,
    Description,
    InputText,
    ModelName,
    Shard,
    meaning_of_scales,
    write_description,
)
from st_paragram.tools.embed_files.line_stage import LineStage
from st_paragram.tools.embed_files.settings import CollectionSettings, ShardFormat
from st_paragram.tools.embed_files.shard_stage import ShardStage
from st_paragram.tools.embed_files.shards import shard_files
from st_paragram.tools.stages.distributed import Cluster, ClusterExecutor
from st_paragram.tools.stages.metadata import read_metadata
from st_paragram.tools.stages.work import Work, prune

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class CollectionReport:
    """What was embedded.

    Attributes:
        lines: Of all texts.
        blank: How many of them have only white space.
        shards: Files of embeddings.
        resumed: How many of the shards an earlier run had made.
        dimension: Components of an embedding.
        bytes: Of the folder.
        seconds: Of the run.
    """

    lines: int
    blank: int
    shards: int
    resumed: int
    dimension: int
    bytes: int
    seconds: float


def embed_collection(
    texts: str | Path | Sequence[str | Path],
    output: str | Path,
    model: str | Path,
    settings: CollectionSettings | None = None,
    overwrite: bool = False,
    work: Work | None = None,
    columns: Sequence[str | None] = (),
) -> CollectionReport:
    """Encode each line of some texts into a row of a folder of shards; read it with `read_embeddings`.

    The folder has `shard-00000.npy` (or `.parquet`), ... and `embeddings.json`, and takes its name when all is done. A
    shard never has lines of two texts. A text whose size and time of change are the same is not embedded again by a
    run that is resumed, or that has the same work folder.

    Args:
        texts: Files (or one), plain or compressed, or `-`, with one text per line.
        output: The folder to make.
        model: Directory, name or hub id of a model.
        settings: What the shards are like.
        overwrite: Replace a folder of embeddings that exists.
        work: How to go about it; changes nothing in the embeddings.
        columns: Of each text its column, if it is a table (`tables.read_columns`); None, or nothing at all, for plain
            text.

    Raises:
        TextError: A text cannot be read or is not UTF-8, or no text has a line.
        SettingsError: Settings are refused, or do not go with the model.
        ModelDirectoryError: There is no such model.
        MissingExtraError: pyarrow is not installed, which Parquet needs.
        ParagramError: The output exists or cannot be made, or another run is at work on it.

    Example:
        >>> from st_paragram import embed_collection, read_embeddings
        >>> embed_collection(["wiki.en", "wiki.es"], "vectors", "p-sp-mini").lines
        24
        >>> read_embeddings("vectors").rows(0, 2).shape
        (2, 256)
    """
    settings, work, output = settings or CollectionSettings(), work or Work(), Path(output)
    names, model = tuple(map(str, [texts] if isinstance(texts, str | Path) else texts)), str(model)
    check_collection(names, output, settings, overwrite)
    named, identities = one_for_each(columns, names), tuple(map(file_digest, names))
    from st_paragram.core.encoding.find import find

    found = find(model)
    from st_paragram.core.encoding.directory import fingerprint

    with _work_folder(work, output, overwrite) as folder:
        lines = LineStage(folder, names, identities, settings.shard_lines, named)
        shards = ShardStage(folder, lines, found, fingerprint(found), settings, _processes(work))
        _check_dimension(shards)
        times = work.run([lines])
        if not any(text.lines for text in lines.scanned()):
            raise TextError(f"{', '.join(names)}: empty; give a text with at least one line")
        times += work.run([shards])
        description = _describe(shards, model)
        _assemble(shards, output, description)
        prune(folder, lines.folders | shards.folders)
    blank, done = sum(text.blank for text in description.inputs), len(shards.results()) - times[-1].tasks
    totals = (description.rows, blank, len(description.shards), done, description.dimension, size(output))
    return CollectionReport(*totals, sum(each.seconds for each in times))


def one_for_each(columns: Sequence[str | None], texts: Sequence[str]) -> tuple[str | None, ...]:
    """The column of each text, None for plain text, which all texts are if nothing is named."""
    if columns and len(columns) != len(texts):
        seen = f"{len(columns)} columns for {len(texts)} texts"
        raise SettingsError(f"{seen}; name one column per text, or None for plain text")
    return tuple(columns) or (None,) * len(texts)


def check_collection(texts: Sequence[str], output: Path, settings: CollectionSettings, overwrite: bool) -> None:
    """Refuse what can be refused before anything heavy is imported.

    Raises:
        SettingsError: No text is given, or standard input twice.
        MissingExtraError: pyarrow is not installed, which Parquet needs.
        ParagramError: The output exists or cannot be made.
    """
    if not texts or list(texts).count(STDIN) > 1:
        raise SettingsError(f"{'standard input twice' if texts else 'no text'} to embed; give each text once")
    _check_output(output, overwrite)
    if settings.format is ShardFormat.PARQUET:
        require("pyarrow.parquet", "parquet", "format 'parquet'")


def _check_output(output: Path, overwrite: bool) -> None:
    check_output_folder(output, overwrite, DESCRIPTION_FILE, "folder of embeddings")


def _processes(work: Work) -> int:
    """Processes of one machine that share its cores; Ray and Slurm give each of theirs its own."""
    if isinstance(work.executor, ClusterExecutor) and work.executor.cluster is not Cluster.LOCAL:
        return 1
    return work.workers


def _check_dimension(shards: ShardStage) -> None:
    """Refuse more components than the model has before the texts are read."""
    if shards.settings.dim is not None:
        shards.encoder()


@contextmanager
def _work_folder(work: Work, output: Path, overwrite: bool) -> Iterator[Path]:
    """The folder to work in; it and the output are kept to one run at a time.

    It stays where shards are done that another run can use, unless all are done and it is not to be kept.
    """
    folder = work.folder_for(output)
    with output_lock(output, partial(_check_output, output, overwrite)), locked(folder):
        try:
            yield folder
        except (ParagramError, KeyboardInterrupt) as error:
            if isinstance(error, KeyboardInterrupt) or any((folder / ShardStage.name).glob("*/*.json")):
                logger.warning("what is done stays in %s; the same command resumes from there", folder)
            elif not work.keep:
                shutil.rmtree(folder, ignore_errors=True)
            raise
        if not work.keep:
            shutil.rmtree(folder)


def _describe(stage: ShardStage, model: str) -> Description:
    """What the folder will hold; all shards are done."""
    settings, scanned = stage.settings, stage.lines.scanned()
    shards: list[Shard] = []
    inputs: list[InputText] = []
    done = [[read_metadata(path) for path in paths] for paths in stage.shards()]
    for number, (path, text, made) in enumerate(zip(stage.lines.texts, scanned, done, strict=True)):
        inputs.append(InputText(path, text.sha256, text.lines, sum(each["blank"] for each in made)))
        for span, each in zip(text.spans, made, strict=True):
            name = f"shard-{len(shards):05d}.{settings.format.value}"
            files = (file.name for file in shard_files(Path(name), settings.dtype))
            sha256 = dict(zip(files, each["sha256"], strict=True))
            shards.append(Shard(name, number, span.first, span.lines, sha256))
    dimension = next(each["dimension"] for made in done for each in made)
    return Description(
        format_version=FORMAT_VERSION,
        rows=sum(shard.rows for shard in shards),
        dimension=dimension,
        dtype=settings.dtype,
        scale=meaning_of_scales(settings.dtype),
        normalized=settings.normalize,
        format=settings.format,
        with_text=settings.with_text,
        model=ModelName(model, stage.fingerprint),
        inputs=tuple(inputs),
        shards=tuple(shards),
    )


def _assemble(stage: ShardStage, output: Path, description: Description) -> None:
    """Put the shards into their folder under their names, and their description next to them."""
    paths = [path for paths in stage.shards() for path in paths]
    with atomic_folder(output) as folder:
        folder.mkdir()
        for path, shard in zip(paths, description.shards, strict=True):
            pairs = (shard_files(place, stage.settings.dtype) for place in (path, folder / shard.file))
            for source, target in zip(*pairs, strict=True):
                _link(source, target)
        write_description(folder, description)


def _link(source: Path, target: Path) -> None:
    """Give a file a second name, so that nothing is lost whenever this process is killed; copy it where that fails."""
    try:
        os.link(source, target)
    except OSError:
        shutil.copy2(source, target)
