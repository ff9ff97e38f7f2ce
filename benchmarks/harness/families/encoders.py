"""Encoders of one family on the same texts: what each scores, and what its training costs."""

from __future__ import annotations

import json
import logging
import math
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import pydantic
from sentence_transformers import SentenceTransformer
from st_paragram.families.psp.objective import new_model
from transformers import set_seed

from st_paragram.core.files import cache_folder, digest, write_json
from st_paragram.core.pair_store import PairStore
from st_paragram.core.settings import read_yaml
from st_paragram.core.text.parallel import parse_source
from st_paragram.errors import SettingsError
from st_paragram.families.psp import objective as mega_batch_margin
from st_paragram.learning.training.settings import TOKENS_OF, TrainingSettings
from st_paragram.tools.evaluation.sts.scores import score_sts
from st_paragram.tools.evaluation.sts.sts_files import StsData
from st_paragram.tools.preparation.prepare import prepare_cached
from st_paragram.tools.preparation.settings import PrepareSettings

logger = logging.getLogger(__name__)

#: The mean of STS 2012-2016 over the years, and over all sets as in ACL 2019, SMT left out.
STS, STS_SETS = "average without SMT", "all sets without SMT"


@dataclass(frozen=True)
class EncoderSettings:
    """An encoder as it is trained; `vocab_size` of its vocabulary."""

    training: TrainingSettings
    vocab_size: int | None


@dataclass(frozen=True)
class Text:
    """What encoders are trained on.

    Attributes:
        name: as tables call it.
        language: other than English; "en" for paraphrases.
        files: as `prepare` takes them.
        pairs: the first so many of their shuffled rows; None: all.
    """

    name: str
    language: str
    files: tuple[str, ...]
    pairs: int | None

    @classmethod
    def parse(cls, words: Sequence[str]) -> Text:
        """`NAME LANGUAGE PAIRS FILE...`, PAIRS a number or "all".

        Raises:
            SettingsError: another form.
        """
        if len(words) < 4 or not (words[2] == "all" or words[2].isdecimal()):
            raise SettingsError(f"text {' '.join(words)!r}; give NAME LANGUAGE PAIRS FILE..., PAIRS a number or all")
        name, language, pairs, *files = words
        return cls(name, language, tuple(files), None if pairs == "all" else int(pairs))


@dataclass(frozen=True)
class EncoderRun:
    """One encoder on one text.

    Attributes:
        encoder: its name.
        text: name of the text; "random" where nothing was trained.
        seed: of the run.
        pairs: trained on.
        scores: name of a benchmark -> Pearson; None where it is not defined.
        seconds: of training.
        pairs_per_second: of the steps.
    """

    encoder: str
    text: str
    seed: int
    pairs: int
    scores: dict[str, float | None]
    seconds: float
    pairs_per_second: float


def read_encoders(path: str | Path) -> dict[str, EncoderSettings]:
    """Read `base: {...}` and `encoders: {name: {...}}`.

    Raises:
        SettingsError: the file is not of this form, or a setting is refused.
    """
    values = read_yaml(path)
    base, encoders = values.get("base", {}), values.get("encoders")
    if not isinstance(base, dict) or not isinstance(encoders, dict):
        raise SettingsError(f"{path}: expected `base: {{...}}` and `encoders: {{name: {{...}}}}`")
    found = {}
    for name, own in encoders.items():
        settings = {**base, **own}
        vocab_size = settings.pop("vocab_size", None)
        found[str(name)] = EncoderSettings(TrainingSettings(**settings), vocab_size)
    return found


def run_encoders(
    encoders: Mapping[str, EncoderSettings],
    texts: Sequence[Text],
    seeds: Sequence[int],
    data: StsData,
    folder: Path,
    untrained: bool = False,
) -> Iterator[EncoderRun]:
    """Train every encoder on every text with each seed; what is finished in `folder` is not trained again.

    Args:
        encoders: their settings by their names.
        texts: to train on.
        seeds: of the runs, the outer loop.
        data: what is scored.
        folder: keeps each run's result.
        untrained: score each encoder as it is before training, too, with the vocabulary of the first text.
    """
    folder.mkdir(parents=True, exist_ok=True)
    for seed in seeds:
        for text in texts:
            for name, encoder in encoders.items():
                if untrained and text is texts[0]:
                    yield _kept(folder, name, encoder, text, seed, data, trained=False)
                yield _kept(folder, name, encoder, text, seed, data, trained=True)


def _kept(
    folder: Path, name: str, encoder: EncoderSettings, text: Text, seed: int, data: StsData, trained: bool
) -> EncoderRun:
    """The run that `folder` keeps, or a new one."""
    settings = replace(encoder.training, seed=seed)
    described = [asdict(settings), encoder.vocab_size, asdict(text), trained, sorted(data.sets)]
    path = folder / f"{name.replace(' ', '-')}.{text.name}.{seed}.{digest(described)}.json"
    if path.is_file():
        return pydantic.TypeAdapter(EncoderRun).validate_python(json.loads(path.read_text(encoding="utf-8")))
    store = _store(encoder, text)
    set_seed(seed)
    model = new_model(store, settings)
    seconds, rate = _train(model, store, settings) if trained else (0.0, 0.0)
    label = text.name if trained else "random"
    run = EncoderRun(name, label, seed, len(store) if trained else 0, score(model, data), seconds, rate)
    write_json(path, asdict(run))
    figure = run.scores.get(STS)
    logger.info(
        f"{name}, {label}, seed {seed}: {seconds:.0f} s, STS {math.nan if figure is None else 100 * figure:.1f}"
    )
    return run


def _store(encoder: EncoderSettings, text: Text) -> PairStore:
    languages = ("en", text.language)
    settings = PrepareSettings(
        languages, vocab_size=encoder.vocab_size, tokens=TOKENS_OF[encoder.training.encoder], vocab_threads=1
    )
    sources = [parse_source(spec, languages) for spec in text.files]
    path = prepare_cached(sources, settings, cache_folder() / "stores")
    return PairStore(path, limit=text.pairs)


def _train(model: SentenceTransformer, store: PairStore, settings: TrainingSettings) -> tuple[float, float]:
    """Seconds, and pairs a second."""
    with tempfile.TemporaryDirectory() as folder:
        trainer = mega_batch_margin.trainer(model, store, settings, Path(folder))
        trainer.args.save_strategy = "no"
        started = time.perf_counter()
        trainer.train()
        seconds = time.perf_counter() - started
    return seconds, trainer.pairs_trained / max(trainer.step_seconds, 1e-9)


def score(model: SentenceTransformer, data: StsData) -> dict[str, float | None]:
    """Pearson on STS 2012-2016 and on every single set of 2017 and of the STS Benchmark."""
    found = score_sts(model, data)
    scores = {name: found.papers().get(name) for name in (STS, STS_SETS)}
    scores |= {key: value for key, value in found.pearson.items() if key.startswith(("2017/", "stsb/"))}
    return {key: None if value is None or math.isnan(value) else value for key, value in scores.items()}
