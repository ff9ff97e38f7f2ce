"""From parallel text to a pair store: filter, drop repeated pairs, shuffle, train a vocabulary, encode.

Memory stays bounded whatever the size: rows go through one external sort on a keyed hash
(`external_shuffle`), the first rows of which, a uniform sample, train the vocabulary. The pairs stored depend
on the set of rows, the settings and the seed, not on the order of the input nor on the number of workers.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from st_paragram.data.external_shuffle import MAX_SOURCES
from st_paragram.data.pair_store import FORMAT_VERSION, PairStore
from st_paragram.data.prepare_encode import encode_buckets, train_on_first_rows
from st_paragram.data.prepare_report import PrepareReport, SourceReport
from st_paragram.data.prepare_rows import scatter_sources
from st_paragram.data.prepare_settings import PrepareSettings
from st_paragram.data.text import TextSource
from st_paragram.data.vocabulary import Vocabulary
from st_paragram.errors import SettingsError, StoreError, TextError
from st_paragram.tokenizer_conversion import convert_tokenizer

logger = logging.getLogger(__name__)


def prepare(
    sources: Sequence[TextSource],
    output: str | Path,
    settings: PrepareSettings,
    vocabulary: Vocabulary | None = None,
    overwrite: bool = False,
) -> PrepareReport:
    """Make a pair store of parallel texts.

    Temporary files (about the size of the text, uncompressed) stand in a hidden folder beside the output and
    go at the end, after an error and on Ctrl-C. The output takes its name only when it is complete.

    Args:
        sources: The texts, see `text.parse_source` and `text.moses_source`.
        output: The HDF5 file to make.
        settings: What to do; with more than one worker, call this under ``if __name__ == "__main__":``.
        vocabulary: Use this vocabulary instead of training one.
        overwrite: Replace an output that exists.

    Returns:
        The numbers of the preparation, which the store keeps as well (`PairStore.settings["report"]`).

    Raises:
        TextError: If a text cannot be read, or fewer than two pairs are left.
        StoreError: If the output exists, or cannot be written.
        SettingsError: If the vocabulary does not go with the settings.
    """
    output = Path(output)
    _check_arguments(sources, output, settings, vocabulary, overwrite)
    try:
        output.parent.mkdir(parents=True, exist_ok=True)
        with TemporaryDirectory(prefix=f".{output.name}.", dir=output.parent) as folder:
            reports = [SourceReport(source.name) for source in sources]
            report = PrepareReport(reports, max_pieces=settings.max_pieces)
            buckets = scatter_sources(sources, Path(folder) / "buckets", settings, report)
            given = vocabulary is not None
            vocabulary = vocabulary or train_on_first_rows(buckets, settings)
            report.vocabulary_size = len(vocabulary)
            described = settings.as_json() | {"vocabulary_given": given}
            encode_buckets(buckets, output, settings, described, vocabulary, report)
    except OSError as error:
        message = f"{output}: could not be made ({error}); free space, or choose another folder"
        raise StoreError(message) from error
    logger.info("%s: %d pairs, vocabulary of %d pieces", output, report.total.kept, report.vocabulary_size)
    return report


def prepare_cached(
    sources: Sequence[TextSource],
    settings: PrepareSettings,
    cache_dir: str | Path,
    vocabulary: Vocabulary | None = None,
) -> Path:
    """Return a store of these texts and settings from a cache folder, made first if it is not there yet.

    The texts are told apart by absolute path, size and time of change.

    Raises:
        TextError: If a text is missing or is no regular file (standard input cannot be cached).
        StoreError: As in `prepare`.
        SettingsError: As in `prepare`.
    """
    identity = {
        "texts": [[*map(_identity, source.paths), source.languages, source.swapped] for source in sources],
        "settings": settings.as_json(),
        "vocabulary": _digest(vocabulary),
        "format": FORMAT_VERSION,
    }
    digest = hashlib.sha256(json.dumps(identity, sort_keys=True).encode()).hexdigest()[:16]
    path = Path(cache_dir) / f"{'-'.join(settings.languages)}-{digest}.h5"
    if path.is_file():
        try:
            PairStore(path, check_ids=False)
            return path
        except StoreError as error:
            logger.warning("cached store is made again: %s", error)
    own = path.with_name(f"{path.stem}.{os.getpid()}.h5")  # two processes may prepare the same store at once
    prepare(sources, own, settings, vocabulary, overwrite=True)
    own.replace(path)
    return path


def _check_arguments(
    sources: Sequence[TextSource],
    output: Path,
    settings: PrepareSettings,
    vocabulary: Vocabulary | None,
    overwrite: bool,
) -> None:
    if not 1 <= len(sources) <= MAX_SOURCES:
        raise SettingsError(f"{len(sources)} texts to prepare; give 1 to {MAX_SOURCES:,}")
    if output.is_dir():
        raise StoreError(f"{output}: is a folder; name a file")
    if output.exists() and not overwrite:
        raise StoreError(f"{output}: exists already; choose another name or allow to overwrite it")
    if vocabulary is None:
        return
    convert_tokenizer(vocabulary.model_proto)  # a model that no directory can hold should fail here, not after hours
    given = (vocabulary.lower_case, vocabulary.segmentation.value)
    wanted = (settings.lower_case, settings.segmentation.value)
    if given != wanted:
        seen = f"the vocabulary has (lower_case, segmentation) {given}, the settings have {wanted}"
        raise SettingsError(f"{seen}; make them agree")


def _identity(path: str) -> tuple[str, int, int]:
    file = Path(path)
    if not file.is_file():
        raise TextError(f"{path}: not a regular file; a text must be one for its store to be cached")
    status = file.stat()
    return str(file.resolve()), status.st_size, status.st_mtime_ns


def _digest(vocabulary: Vocabulary | None) -> str | None:
    return hashlib.sha256(vocabulary.model_proto).hexdigest() if vocabulary else None
