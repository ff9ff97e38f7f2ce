"""Put shards that are done into the folder that was asked for."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from st_paragram.core.files import atomic_folder
from st_paragram.tools.embed_files.description import (
    FORMAT_VERSION,
    Description,
    InputText,
    ModelName,
    Shard,
    meaning_of_scales,
    write_description,
)
from st_paragram.tools.embed_files.shard_files import shard_files
from st_paragram.tools.embed_files.shard_stage import ShardStage
from st_paragram.tools.stages.metadata import read_metadata


def describe(stage: ShardStage, model: str) -> Description:
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


def assemble(stage: ShardStage, output: Path, description: Description) -> None:
    """Put the shards into their folder under their names, and what they are beside them."""
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
