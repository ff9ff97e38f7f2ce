"""Find the pairs to train on: a pair store, text files, or the built-in bitext."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from st_paragram.data.pair_store import PairStore
from st_paragram.data.sample.grammar import LANGUAGES, sample_pairs, sample_paraphrases
from st_paragram.data.text import TextSource, parse_source
from st_paragram.errors import SettingsError
from st_paragram.files import cache_folder, write_text
from st_paragram.preparation.prepare import prepare_cached
from st_paragram.preparation.settings import PrepareSettings
from st_paragram.stages.executors import LocalExecutor

logger = logging.getLogger(__name__)

_NO_DATA = (
    "WARNING: no data/en-%s.h5, so this trains on the small built-in bitext: a demonstration, not a usable model. For "
    "real data, run `st-paragram bitext --lang %s`, which gets public parallel text and makes data/en-%s.h5 (or "
    "`st-paragram prepare` with text of your own), and start again."
)
_LANGUAGE = re.compile(r"[A-Za-z]{2,3}([_-][A-Za-z0-9]+)*")
BUILT_IN = "built-in"
BUILT_IN_PAIRS = 40_000


@dataclass(frozen=True)
class TrainingData:
    """A store, and one line that says where its pairs come from."""

    store: PairStore
    description: str
    built_in: bool = False


def find_training_data(
    language: str, data: Sequence[str] = (), vocab_size: int | None = None, workers: int = 1
) -> TrainingData:
    """The pairs to train `language` on.

    Args:
        language: the language beside English; "en" for English paraphrases.
        data: one pair store (`.h5`), or specifications of texts (`text.parse_source`), which are prepared into a cached
            store; or "built-in". If empty, `data/en-<language>.h5` under the current folder; if that is missing, the
            built-in bitext.
        vocab_size: pieces of a vocabulary to train; ignored for a store, which has one.
        workers: processes of a preparation.

    Raises:
        SettingsError: no data, and no built-in bitext for this language.
        StoreError: the store is refused.
        TextError: the text is refused.
    """
    if not _LANGUAGE.fullmatch(language):
        raise SettingsError(f"{language!r} is no language code; give one such as es or zh_cn")
    standard = Path("data") / f"en-{language}.h5"
    if not data and standard.exists():
        data = [str(standard)]
    if not data:
        logger.warning(_NO_DATA, *[language] * 3)
    if not data or list(data) == [BUILT_IN]:
        return _built_in(language, vocab_size, workers)
    if any(path.endswith((".h5", ".hdf5")) for path in data):
        if len(data) > 1:
            raise SettingsError(f"{len(data)} data files with a pair store among them; give one store, or texts only")
        store = PairStore(data[0])
        if store.languages[1] != language:
            seen = f"pairs of {store.languages[0]} and {store.languages[1]}, not of {language}"
            raise SettingsError(f"{data[0]}: {seen}; choose the language or the data")
        return TrainingData(store, Path(data[0]).name)
    sources = [parse_source(spec, ("en", language)) for spec in data]
    return TrainingData(
        _prepare(language, sources, vocab_size, workers), " + ".join(Path(s.name).name for s in sources)
    )


def _built_in(language: str, vocab_size: int | None, workers: int) -> TrainingData:
    if language not in LANGUAGES:
        raise SettingsError(
            f"no data/en-{language}.h5 and no built-in bitext for {language!r} (only {', '.join(LANGUAGES)}); "
            f"make a store with `st-paragram prepare --lang {language} --text FILE --output data/en-{language}.h5`"
        )
    path = cache_folder() / f"built-in-{BUILT_IN_PAIRS}.en-{language}.tsv"
    pairs = sample_paraphrases(BUILT_IN_PAIRS) if language == "en" else sample_pairs(language, BUILT_IN_PAIRS)
    _write_if_changed(path, pairs)
    store = _prepare(language, [TextSource((str(path),), ("en", language))], vocab_size, workers)
    return TrainingData(store, "the built-in bitext of st_paragram, made by a phrase grammar (a demonstration)", True)


def _write_if_changed(path: Path, pairs: Iterable[tuple[str, str]]) -> None:
    text = "".join(f"{english}\t{other}\n" for english, other in pairs)
    if path.is_file() and path.read_text(encoding="utf-8") == text:
        return
    write_text(path, text)


def _prepare(language: str, sources: Sequence[TextSource], vocab_size: int | None, workers: int) -> PairStore:
    settings = PrepareSettings(languages=("en", language), vocab_size=50_000 if vocab_size is None else vocab_size)
    return PairStore(prepare_cached(sources, settings, cache_folder() / "stores", executor=LocalExecutor(workers)))
