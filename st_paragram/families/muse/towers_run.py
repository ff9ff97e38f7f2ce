"""From a finished encoder and folders of rows to a model directory with towers."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path

import torch

from st_paragram.core.encoding.find import find
from st_paragram.core.files import output_lock
from st_paragram.families.muse.sentence_transformers_encoder import EncoderWithTowers
from st_paragram.families.muse.task_vectors import read_rows, vectors_of
from st_paragram.families.muse.towers_card import towers_card
from st_paragram.families.muse.towers_settings import TowersSettings
from st_paragram.families.muse.towers_training import Curve, train_towers
from st_paragram.learning.models import directory
from st_paragram.tools.stages.work import Work


def make_towers(
    model: str | Path,
    folders: Mapping[str, Path],
    output: str | Path,
    settings: TowersSettings | None = None,
    name: str | None = None,
    overwrite: bool = False,
) -> list[Curve]:
    """Train towers and a classifier over a finished encoder, and save it with them.

    Vectors are kept in `.<output>.work` until all is done; the same call resumes an interrupted
    run there.

    Args:
        model: Directory, name or hub id of the encoder, any model that `st_paragram.load` opens.
        folders: Folders of `LANG.tsv` (see `task_files`) by their tasks: "qa", "response", "nli".
        output: The model directory to make.
        settings: Of the training.
        name: The encoder's name on the card; by default that of its directory.
        overwrite: Replace a model directory that exists.

    Returns:
        Learning curves on rows that were held out.

    Raises:
        ModelDirectoryError: There is no such model, or the output is refused.
        TextError: A folder has no file, or a file is refused.
        SettingsError: The model has towers already.
        ParagramError: Another run is writing the output.
    """
    settings, output, found = settings or TowersSettings(), Path(output), find(model)
    encoder = directory.load(found)
    torch.manual_seed(settings.seed)
    made = EncoderWithTowers.over(encoder)
    work = Work().folder_for(output)
    with output_lock(output):
        work.mkdir(parents=True, exist_ok=True)
        rows = read_rows(folders, work / "texts.txt")
        curves = train_towers(made, rows, vectors_of(work / "texts.txt", found, work), settings)
        card = towers_card(output.name, name or found.name, made, rows, curves)
        directory.save(made, output, card, overwrite)
        shutil.rmtree(work)
    return curves
