"""Short trainings of mixtures, each done once: its figures are kept in the work folder."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from tqdm import tqdm

from st_paragram.core.families import family_named
from st_paragram.core.files import digest, read_json, temporary_folder, write_json
from st_paragram.core.pair_store import PairStore
from st_paragram.core.text.parallel import TextSource
from st_paragram.errors import SettingsError
from st_paragram.learning.training.settings import TrainingSettings
from st_paragram.mixing.development import Development, total
from st_paragram.mixing.samples import Sample
from st_paragram.mixing.settings import MixSettings
from st_paragram.mixing.stores import mixed_rows, write_mixed

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

VERSION = 1  # of results: count it up when they change
CONFIG = "small"
Weights = Mapping[str, float]


@dataclass(frozen=True)
class Trained:
    """What a training gave.

    Attributes:
        figures: Percent by name, see `development.total`.
        pairs: Trained on.
        seconds: Of training.
    """

    figures: dict[str, dict[str, float]]
    pairs: int
    seconds: float

    @property
    def score(self) -> float:
        """The one score."""
        return total(self.figures)


@dataclass
class Trainings:
    """Trains mixtures of the texts and scores the models.

    All trainings take as many steps as one on all texts: else a text would help because training on it takes longer.

    Attributes:
        samples: The rows of each text.
        stores: The same, prepared.
        development: What models are scored on.
        settings: Of the search.
        languages: Of all texts.
        folder: For results.
        identity: What else the results depend on: the vocabulary and the filters.
        progress: Counts trainings.
    """

    samples: Sequence[Sample]
    stores: Sequence[PairStore]
    development: Development
    settings: MixSettings
    languages: tuple[str, str]
    folder: Path
    identity: str
    progress: tqdm[Any]

    def groups(self) -> list[str]:
        """What is weighted as one: the groups of texts, in the order in which they were named."""
        return list(dict.fromkeys(sample.source.group for sample in self.samples))

    def of_all_seeds(self, weights: Weights, temperature: float = 1.0) -> list[Trained]:
        """A mixture trained once for each seed; weights of the groups by name, those that are not named are out."""
        return [self._once(weights, temperature, seed) for seed in range(self.settings.seeds)]

    def _once(self, weights: Weights, temperature: float, seed: int) -> Trained:
        chosen = [
            (sample.source.weighted(weights[sample.source.group]).source, sample, store)
            for sample, store in zip(self.samples, self.stores, strict=True)
            if weights.get(sample.source.group)
        ]
        texts = [[sample.identity, source.weight, sample.languages] for source, sample, _ in chosen]
        settings = self._settings(seed)
        how = [temperature, asdict(settings), self.identity, self.development.digest()]
        path = self.folder / f"{digest(VERSION, texts, how)}.json"
        if path.is_file():
            found = _read(path)
        else:
            stores = [store for _, _, store in chosen]
            rows = mixed_rows(stores, [_uncapped(source) for source, _, _ in chosen], temperature)
            epochs = settings.epochs * self._all_pairs / sum(map(len, rows))
            found = self._train(stores, rows, replace(settings, epochs=epochs), path)
            write_json(path, asdict(found) | {"weights": dict(weights), "temperature": temperature, "seed": seed})
        self.progress.update()
        return found

    @cached_property
    def _all_pairs(self) -> int:
        """The pairs of all texts together."""
        sources = [_uncapped(sample.source.weighted(1.0).source) for sample in self.samples]
        return sum(map(len, mixed_rows(self.stores, sources, 1.0)))

    def _settings(self, seed: int) -> TrainingSettings:
        family = family_named(TrainingSettings.family)
        settings: TrainingSettings = family.read_settings(CONFIG, self.settings.training(seed))
        return settings

    def _train(
        self, stores: Sequence[PairStore], rows: Sequence[NDArray[np.int64]], settings: TrainingSettings, path: Path
    ) -> Trained:
        from st_paragram.learning.training.development import built_in_pairs
        from st_paragram.learning.training.train import train

        path.parent.mkdir(parents=True, exist_ok=True)
        with temporary_folder(path) as folder, quiet():
            store = write_mixed(stores, rows, self.languages, folder / "mixture.h5")
            begun = time.perf_counter()
            model = train(store, settings, built_in_pairs("en"), folder / "checkpoints").model
            seconds = time.perf_counter() - begun
            return Trained(_figures(model, self.development), len(store), seconds)


def _uncapped(source: TextSource) -> TextSource:
    return replace(source, cap=None)  # it was applied when rows were drawn


def _figures(model: SentenceTransformer, development: Development) -> dict[str, dict[str, float]]:
    from st_paragram.learning.training.development import translation_accuracy
    from st_paragram.tools.evaluation.correlation import correlate

    return {
        "graded": {each.name: 100 * correlate(model, each).spearman for each in development.graded},
        "translations": {
            pair: 100 * translation_accuracy(model, each) for pair, each in development.translations.items()
        },
    }


def _read(path: Path) -> Trained:
    try:
        values = read_json(path)
        return Trained(values["figures"], int(values["pairs"]), float(values["seconds"]))
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise SettingsError(f"{path}: not the result of a training; remove it and start again") from error


@contextmanager
def quiet() -> Iterator[None]:
    """Log only warnings: what is said of one store or training is too much of many."""
    names = ("st_paragram", "sentence_transformers", "transformers")
    before = [(logging.getLogger(name), logging.getLogger(name).level) for name in names]
    for logger, _ in before:
        logger.setLevel(logging.WARNING)
    try:
        yield
    finally:
        for logger, level in before:
            logger.setLevel(level)
