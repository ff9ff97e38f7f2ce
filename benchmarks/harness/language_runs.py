"""Which language teaches English sentences best: the same English with its translations into several languages."""

from __future__ import annotations

import hashlib
import json
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import permutations
from pathlib import Path

import numpy as np
import pydantic
from scipy.stats import rankdata
from transformers import set_seed

from harness.encoder_runs import STS, score
from st_paragram.core.data.pair_store import PairStore
from st_paragram.core.data.text import TextSource, parse_source, read_pairs
from st_paragram.core.extras import require
from st_paragram.core.files import digest, write_json, write_text
from st_paragram.core.tokenizers.bilingual import BilingualTokenizer, Sharing
from st_paragram.errors import SettingsError, TextError
from st_paragram.families.psp import objective as mega_batch_margin
from st_paragram.families.psp.objective import new_model
from st_paragram.learning.training.settings import TrainingSettings
from st_paragram.tools.evaluation.sts.sts_files import StsData
from st_paragram.tools.preparation.prepare import prepare_cached
from st_paragram.tools.preparation.settings import PrepareSettings

#: Languages as URIEL+ names them, where ISO 639-3 has a macrolanguage of which it describes members.
_URIEL = {"ar": "arb", "zh": "cmn", "de": "deu", "es": "spa", "fr": "fra", "ru": "rus", "tr": "tur"}
DISTANCES = ("featural", "syntactic", "genetic", "geographic")
_EXACT = 9  # languages whose permutations are all gone through; of more some are drawn
_DRAWN = 100_000


@dataclass(frozen=True)
class LanguageRun:
    """A training on English and one language.

    Attributes:
        language: its code.
        sharing: of the vocabularies.
        seed: of the run.
        pairs: trained on.
        overlap: share of the English pieces that are pieces of the language.
        sts: mean of STS 2012-2016 of the English side, Pearson.
    """

    language: str
    sharing: str
    seed: int
    pairs: int
    overlap: float
    sts: float


def same_english(texts: Mapping[str, str], folder: Path) -> dict[str, Path]:
    """Files of the rows whose English all languages have, in one order, one translation of each.

    Raises:
        TextError: fewer than a hundred such rows.
    """
    rows: dict[str, dict[str, str]] = {}
    for language, spec in texts.items():
        rows[language] = {first: second for first, second in read_pairs(parse_source(spec, ("en", language)))}
    common = sorted(set.intersection(*(set(own) for own in rows.values())))
    if len(common) < 100:
        raise TextError(
            f"{len(common)} English sentences that all of {', '.join(texts)} have; give texts with the same"
        )
    files = {}
    for language, own in rows.items():
        files[language] = folder / f"en-{language}.tsv"
        write_text(files[language], "".join(f"{english}\t{own[english]}\n" for english in common))
    return files


def run_languages(
    files: Mapping[str, Path],
    settings: TrainingSettings,
    vocab_size: int,
    sharings: Sequence[Sharing],
    seeds: Sequence[int],
    data: StsData,
    folder: Path,
) -> Iterator[LanguageRun]:
    """Train on each language in each way of sharing; what is finished in `folder` is not trained again."""
    for seed in seeds:
        for language, file in files.items():
            for sharing in sharings:
                text = hashlib.sha256(file.read_bytes()).hexdigest()
                described = [asdict(replace(settings, seed=seed)), vocab_size, text, sorted(data.sets)]
                path = folder / f"{language}.{sharing.value}.{seed}.{digest(described)}.json"
                if not path.is_file():
                    run = _run(language, file, replace(settings, seed=seed), vocab_size, sharing, data, folder)
                    write_json(path, asdict(run))
                yield pydantic.TypeAdapter(LanguageRun).validate_python(json.loads(path.read_text(encoding="utf-8")))


def _run(
    language: str,
    file: Path,
    settings: TrainingSettings,
    vocab_size: int,
    sharing: Sharing,
    data: StsData,
    folder: Path,
) -> LanguageRun:
    prepared = PrepareSettings(
        ("en", language), sharing=sharing, vocab_size=vocab_size, character_coverage=0.9995, vocab_threads=1
    )
    source = TextSource((str(file),), ("en", language))
    store = PairStore(prepare_cached([source], prepared, folder / "stores"), check_ids=False)
    set_seed(settings.seed)
    model = new_model(store, settings)
    with tempfile.TemporaryDirectory() as checkpoints:
        trainer = mega_batch_margin.trainer(model, store, settings, Path(checkpoints))
        trainer.args.save_strategy = "no"
        trainer.train()
    sts = score(model, data)[STS]
    if sts is None:
        raise SettingsError(f"{language}: STS 2012-2016 has no mean; give the folder of all its sets")
    tokenizer = store.tokenizer()
    overlap = tokenizer.overlap if isinstance(tokenizer, BilingualTokenizer) else 1.0
    return LanguageRun(language, sharing.value, settings.seed, len(store), overlap, sts)


def uriel_distances(languages: Sequence[str]) -> dict[str, dict[str, float]]:
    """Kind of distance -> language -> its distance from English, by URIEL+ (Khan et al., 2025).

    Raises:
        MissingExtraError: urielplus is not installed.
        SettingsError: a language that it does not know.
    """
    uriel = require("urielplus.urielplus", "languages", "the distances of languages").URIELPlus()
    found: dict[str, dict[str, float]] = {}
    for kind in DISTANCES:
        for language in languages:
            try:
                distance = float(uriel.new_distance(kind, ["eng", _URIEL.get(language, language)]))
            except ValueError as error:
                reason = str(error).split("\n")[0]
                raise SettingsError(f"{language}: URIEL+ has no {kind} distance ({reason})") from error
            found.setdefault(kind, {})[language] = distance
    return found


@dataclass(frozen=True)
class RankCorrelation:
    """Spearman's correlation of n pairs, and the share of permutations that are as far from 0, two-sided."""

    rho: float
    n: int
    p: float


def rank_correlation(x: Sequence[float], y: Sequence[float], seed: int = 0) -> RankCorrelation:
    """Spearman's correlation with a permutation test: all permutations of up to 9 items, 100,000 drawn ones of more."""
    first, second = (rank - rank.mean() for rank in (rankdata(x), rankdata(y)))
    n = len(first)
    if n <= _EXACT:
        orders = np.array(list(permutations(range(n))), dtype=np.int64)
    else:
        rng = np.random.default_rng(seed)
        orders = np.array([np.arange(n), *(rng.permutation(n) for _ in range(_DRAWN))])
    covariances = first[orders] @ second  # the first order is the one that was seen
    p = (np.abs(covariances) >= abs(covariances[0]) - 1e-9).mean()
    rho = covariances[0] / np.sqrt((first @ first) * (second @ second))
    return RankCorrelation(float(rho), n, float(p))
