"""The generative model, its ablations and its baselines on the same pairs: trained by commands, scored side by side."""

from __future__ import annotations

import logging
import math
import re
import shutil
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import pydantic
from harness.families.encoders import score
from harness.processes import watch
from sentence_transformers import SentenceTransformer

from st_paragram.core.encoding.record import read_training_record
from st_paragram.core.files import read_json, write_json
from st_paragram.core.settings import read_yaml
from st_paragram.errors import SettingsError
from st_paragram.learning.models.directory import load
from st_paragram.tools.evaluation.sts.hard import different_pairs, score_hard_sts, split_rows
from st_paragram.tools.evaluation.sts.sts_files import StsData
from st_paragram.tools.evaluation.tatoeba import score_tatoeba
from st_paragram.tools.evaluation.translations import Translations

logger = logging.getLogger(__name__)

_YEARS = ("2012", "2013", "2014", "2015", "2016")
_COST, _LAST = "cost.json", 4  # lines of the log whose rate counts


@dataclass(frozen=True)
class GenerativeModel:
    """A model as it is trained.

    Attributes:
        name: As tables call it.
        kind: Of `st-paragram train`.
        begin_with: The name of a model whose rows it begins with.
        settings: Options of the command by name, the configuration among them.
    """

    name: str
    kind: Literal["bgt", "bitext"] = "bgt"
    begin_with: str = ""
    settings: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Inputs:
    """What all models are trained on and scored with.

    Attributes:
        language: Beside English.
        store: The pairs.
        sts: STS 2012-2017.
        tatoeba: Test sets of translations.
    """

    language: str
    store: Path
    sts: StsData
    tatoeba: Sequence[Translations]


@dataclass(frozen=True)
class GenerativeRun:
    """One model with one seed.

    Attributes:
        name: Of the model; that of a language's encoder has its language behind a slash.
        seed: Of the run.
        scores: Pearson by benchmark, and `tatoeba/LANGUAGE`, the share of translations that is missed by cosine.
        seconds: Of training.
        pairs_per_second: Of its steps.
        pieces_per_second: Of its steps; None where it was not noted.
        peak_mb: Anonymous memory of the training command.
        history: What was logged of the run.
    """

    name: str
    seed: int
    scores: Mapping[str, float | None]
    seconds: float = 0.0
    pairs_per_second: float = 0.0
    pieces_per_second: float | None = None
    peak_mb: float = 0.0
    history: Sequence[Mapping[str, float]] = field(default_factory=list)


def read_models(path: str | Path) -> list[GenerativeModel]:
    """Read `base: {...}` and `models: {name: {...}}`, where `base` is for models of kind bgt.

    Raises:
        SettingsError: the file is not of this form.
    """
    values = read_yaml(path)
    base, models = values.get("base", {}), values.get("models")
    if not isinstance(base, dict) or not isinstance(models, dict):
        raise SettingsError(f"{path}: expected `base: {{...}}` and `models: {{name: {{...}}}}`")
    found = []
    for name, own in models.items():
        kind, begin_with = own.pop("kind", "bgt"), own.pop("begin_with", "")
        found.append(GenerativeModel(name, kind, begin_with, {**(base if kind == "bgt" else {}), **own}))
    return found


def run_models(
    models: Sequence[GenerativeModel], seeds: Sequence[int], inputs: Inputs, folder: Path
) -> Iterator[GenerativeRun]:
    """Train and score every model with each seed; what is finished in `folder` is not done again.

    Args:
        models: to be trained; one that begins with another comes after it.
        seeds: of the runs, the outer loop.
        inputs: what they are trained on and scored with.
        folder: keeps model directories and scores.
    """
    folder.mkdir(parents=True, exist_ok=True)
    for seed in seeds:
        for model in models:
            directory = _train(model, seed, inputs, folder)
            yield _scored(model.name, seed, directory, directory, inputs)
            for language in sorted(directory.glob("language-*")):
                name = f"{model.name} / {language.name.partition('-')[2]}"
                yield _scored(name, seed, language, directory, inputs)


def _train(model: GenerativeModel, seed: int, inputs: Inputs, folder: Path) -> Path:
    """The model's directory, trained if it is not there yet; what its training took stands beside it."""
    directory = _directory(folder, model.name, seed)
    cost = directory.with_name(f"{directory.name}.{_COST}")
    if cost.is_file():
        return directory
    command = [sys.executable, "-m", "st_paragram.cli.main", "train", model.kind]
    command += ["--lang", inputs.language, "--data", str(inputs.store), "--seed", str(seed), "--overwrite"]
    command += ["--output", str(directory)]
    for name, value in model.settings.items():
        command += [f"--{name.replace('_', '-')}", str(value)]
    if model.begin_with:
        command += ["--init", str(_directory(folder, model.begin_with, seed))]
    shutil.rmtree(directory.with_name(f"{directory.name}.checkpoints"), ignore_errors=True)
    logger.info(f"{model.name}, seed {seed}: training")
    run = watch(command)
    write_json(cost, {"seconds": run.seconds, "peak_mb": run.peak_anonymous_mb})
    return directory


def _directory(folder: Path, name: str, seed: int) -> Path:
    return folder / f"{re.sub('[^a-z0-9]+', '-', name.lower())}.{seed}"


def _scored(name: str, seed: int, directory: Path, trained: Path, inputs: Inputs) -> GenerativeRun:
    """The run with its scores, which are kept next to the model's directory."""
    part = "" if directory == trained else f".{directory.name}"
    path = trained.with_name(f"{trained.name}{part}.scores.json")
    if path.is_file():
        return pydantic.TypeAdapter(GenerativeRun).validate_python(read_json(path))
    scores = _scores(load(directory, device="cpu"), inputs)
    record, cost = read_training_record(trained), read_json(trained.with_name(f"{trained.name}.{_COST}"))
    assert record is not None
    rates = [line["pieces_per_second"] for line in record.history if "pieces_per_second" in line][-_LAST:]
    run = GenerativeRun(
        name,
        seed,
        scores,
        record.seconds,
        record.pairs_per_second,
        sum(rates) / len(rates) if rates else None,
        cost["peak_mb"],
        [] if part else record.history,
    )
    write_json(path, pydantic.TypeAdapter(GenerativeRun).dump_python(run))
    means = (f"{key} {100 * value:.1f}" for key, value in scores.items() if value is not None)
    logger.info(f"{name}, seed {seed}: {', '.join(means)}")
    return run


def _scores(model: SentenceTransformer, inputs: Inputs) -> dict[str, float | None]:
    found = score(model, inputs.sts)
    pairs = different_pairs(of for name, of in inputs.sts.sets.items() if name.split("/")[0] in _YEARS)
    hard = score_hard_sts(model, pairs, split_rows(pairs))
    for name in ("Hard+", "Hard-"):
        value = hard.splits[name].pearson
        found[name] = None if value is None or math.isnan(value) else value
    for name, scores in score_tatoeba(model, inputs.tatoeba).languages.items():
        found[f"tatoeba/{name}"] = scores.cosine.mean
    return found
