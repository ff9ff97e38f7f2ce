"""From parallel text to a pair store: read, clean, deduplicate, shuffle, train a vocabulary, encode, write.

Rows go through 64 files, each of which fits into memory whatever the size of the text. Reading and cleaning, by far the
longest part, is resumed where a run was interrupted; the rest is repeated. The stored pairs and their order depend only
on the set of rows, the settings and the seed, not on the number of workers.
"""

from __future__ import annotations

import hashlib
import logging
import shutil
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from tqdm import tqdm

from st_paragram.core.extras import require
from st_paragram.core.files import atomic, digest, folder_for_file, locked, not_writable, output_lock, remove_unfinished
from st_paragram.core.pair_store import FORMAT_VERSION, SIDES, PairStore, PairStoreWriter
from st_paragram.core.text.parallel import TextSource
from st_paragram.core.tokenizers.bilingual import Sharing
from st_paragram.core.tokenizers.characters import CHARACTERS
from st_paragram.core.tokenizers.sentencepiece import SentencePieceTokenizer
from st_paragram.core.tokenizers.stock import convert_tokenizer
from st_paragram.core.tokenizers.words import Splitter
from st_paragram.errors import SettingsError, StoreError, TextError
from st_paragram.tools.preparation import vocabulary as vocabularies
from st_paragram.tools.preparation.buckets import SOURCE, row_as_seen, texts_of
from st_paragram.tools.preparation.clean import clean, identity
from st_paragram.tools.preparation.order import Order, order_rows
from st_paragram.tools.preparation.report import LanguageLengths, PrepareReport
from st_paragram.tools.preparation.settings import PrepareSettings
from st_paragram.tools.work import work_folder

logger = logging.getLogger(__name__)

_MOST_TEXTS = 10_000


def prepare(
    sources: Sequence[TextSource],
    output: str | Path,
    settings: PrepareSettings,
    vocabulary: SentencePieceTokenizer | None = None,
    *,
    overwrite: bool = False,
    work: str | Path | None = None,
    workers: int = 1,
    rejects: str | Path | None = None,
    keep_text: str | Path | None = None,
) -> PrepareReport:
    """Make a pair store from parallel texts.

    The work folder takes about twice the size of the text, and once more for each side by which repeated rows are
    dropped. It is removed at the end, and after errors in the input. After Ctrl-C, a full disk or a killed process, it
    is kept, and the same call resumes from it.

    Args:
        sources: Parallel texts, see `parse_source`.
        output: Output HDF5 file.
        settings: Settings of the preparation.
        vocabulary: Vocabulary to use instead of training one.
        overwrite: Replace an existing output.
        work: Folder for intermediate files; by default a hidden folder next to the output.
        workers: Number of processes for cleaning and of threads for encoding; they do not change the store.
        rejects: Folder for dropped rows, one file per reason.
        keep_text: Folder for the text of the rows, `a.txt` and `b.txt`; the store records their checksums.

    Returns:
        The counts of the preparation, which are also in the store (`PairStore.settings["report"]`).

    Example:
        >>> from st_paragram import PrepareSettings, parse_source, prepare
        >>> languages = ("en", "es")
        >>> sources = [parse_source("en-es.tsv", languages)]
        >>> report = prepare(sources, "en-es.h5", PrepareSettings(languages, vocab_size=300))
    """
    output = Path(output)
    dropped, texts = (Path(folder) if folder else None for folder in (rejects, keep_text))
    _check(sources, output, settings, vocabulary, overwrite, dropped, texts)
    carry = dropped is not None or texts is not None
    with work_folder(output, overwrite, Path(work) if work else None) as folder:
        report = PrepareReport(clean(sources, settings, folder, carry, workers))
        order = order_rows(folder, sources, settings, report, carry)
        described = settings.as_json() | {"vocabulary_given": vocabulary is not None}
        if texts:
            described["texts"] = _write_texts(order, texts)
        content = vocabulary.content if vocabulary else vocabularies.train(order, sources, settings)
        _write_store(output, order, sources, settings, content, described, report, workers)
        if dropped:
            _write_rejects(folder / "rejects", dropped)
    logger.info("%s: %d pairs, vocabulary of %d pieces", output, report.total.kept, report.vocabulary_size)
    return report


def prepare_cached(
    sources: Sequence[TextSource],
    settings: PrepareSettings,
    cache_dir: str | Path,
    vocabulary: SentencePieceTokenizer | None = None,
    workers: int = 1,
) -> Path:
    """Return a store for these texts and settings from a cache folder, after preparing it if it does not exist.

    The texts, and files that filters read, are identified by absolute path, size and modification time. So texts must
    be regular files.
    """
    for text in (text for source in sources for text in source.paths if not Path(text).is_file()):
        raise TextError(f"{text}: not a regular file, so its store cannot be cached; give a regular file")
    given = hashlib.sha256(vocabulary.content).hexdigest() if vocabulary else None
    known = digest(identity(sources, settings), given, FORMAT_VERSION, CHARACTERS)
    path = Path(cache_dir) / f"{'-'.join(settings.languages)}-{known}.h5"
    with locked(Path(cache_dir), wait=True):  # two processes may need the same store at once
        if path.is_file():
            try:
                PairStore(path)
                return path
            except StoreError as error:
                logger.warning("rebuilding the cached store: %s", error)
        prepare(sources, path, settings, vocabulary, overwrite=True, workers=workers)
    return path


def _check(
    sources: Sequence[TextSource],
    output: Path,
    settings: PrepareSettings,
    vocabulary: SentencePieceTokenizer | None,
    overwrite: bool,
    rejects: Path | None,
    texts: Path | None,
) -> None:
    if not 1 <= len(sources) <= _MOST_TEXTS:
        raise SettingsError(f"{len(sources)} texts to prepare; give 1 to {_MOST_TEXTS:,}")
    if wrong := folder_for_file(output):
        raise StoreError(f"{wrong}; name a file")
    for source in sources:
        if source.cap is not None and source.cap < 1:
            raise SettingsError(f"{source.name}: cap is {source.cap}; it must be at least 1")
    for folder, what in ((rejects, "dropped rows"), (texts, "text of the rows")):
        if folder and (wrong := not_writable(folder / "text")):
            raise StoreError(f"{wrong}; name a folder for the {what}")
    for path in (texts / f"{side}.txt" for side in SIDES) if texts and not overwrite else ():
        if path.exists():
            raise StoreError(f"{path} exists; choose another folder for --keep-text or give --overwrite")
    if settings.splitter is Splitter.MOSES:
        require("sacremoses", "moses", 'splitter "moses"')  # before the text is read, not after hours
    if vocabulary is not None:
        if (settings.tokens, settings.sharing) != ("sentencepiece", Sharing.JOINT):
            seen = f"tokens {settings.tokens}, sharing {settings.sharing.value} and a sentencepiece model"
            raise SettingsError(f"{seen}; a given model works only for joint sentencepiece tokens, leave it out")
        convert_tokenizer(vocabulary)  # a model that cannot be converted should fail here, not after hours
        has = (vocabulary.lower_case, vocabulary.segmentation)
        if has != (wanted := (settings.lower_case, settings.segmentation)):
            seen = f"the vocabulary has (lower_case, segmentation) {has}, but the settings have {wanted}"
            raise SettingsError(f"{seen}; make them agree")


def _write_store(
    output: Path,
    order: Order,
    sources: Sequence[TextSource],
    settings: PrepareSettings,
    content: bytes,
    described: dict[str, object],
    report: PrepareReport,
    threads: int,
) -> None:
    """Encode all rows in order, and store the report."""
    tokenizers = vocabularies.tokenizers(content, settings)
    pairs = [source.pair_among(settings.languages) for source in sources]
    different = list(dict.fromkeys(pairs))
    numbers = np.array([different.index(pair) for pair in pairs])
    counts = np.zeros((5, len(sources)), np.int64)  # rows, then pieces and characters of each side
    report.vocabulary_size, report.max_pieces = len(tokenizers[0]), settings.max_tokens
    shared = tokenizers[0] if tokenizers[0] is tokenizers[1] else tokenizers
    with (
        PairStoreWriter(
            output, settings.languages, shared, settings.max_tokens, described, settings.seed, different
        ) as writer,
        tqdm(total=report.total.kept, desc=output.name, unit=" pairs", unit_scale=True, disable=None) as progress,
    ):
        for rows in filter(None, order):
            text_numbers, texts = np.array([int(row[SOURCE]) for row in rows]), texts_of(rows)
            sides, lengths = [], [np.ones(len(rows))]
            for side, tokenizer in enumerate(tokenizers):
                sentences = [text[side] for text in texts]
                sides.append(tokenizer.encode_normalized(sentences, settings.max_tokens, threads))
                lengths += [np.diff(sides[-1].offsets), np.fromiter(map(len, sentences), np.int64)]
                report.cut_sentences += sides[-1].cut
            a, b = sides
            writer.append(a.ids, a.offsets, b.ids, b.offsets, numbers[text_numbers])
            counts += [np.bincount(text_numbers, each, len(sources)).astype(np.int64) for each in lengths]
            progress.update(len(rows))
        report.pieces = int(counts[1].sum()), int(counts[3].sum())
        report.lengths = _lengths([source.pair for source in sources], counts)
        writer.settings["report"] = report.as_json()


def _lengths(pairs: Sequence[tuple[str, str]], counts: NDArray[np.int64]) -> dict[str, LanguageLengths]:
    """Sum the counts of all texts by language."""
    found: defaultdict[str, NDArray[np.int64]] = defaultdict(lambda: np.zeros(3, np.int64))
    for pair, (rows, *sides) in zip(pairs, counts.T, strict=True):
        for language, pieces, characters in zip(pair, sides[::2], sides[1::2], strict=True):
            found[language] += (rows, pieces, characters)
    return {language: LanguageLengths(*each.tolist()) for language, each in sorted(found.items()) if each[0]}


def _write_texts(order: Order, folder: Path) -> dict[str, str]:
    """Write `a.txt` and `b.txt`: line i has row i of the store, as the filters saw it; return their SHA-256."""
    hashes = {side: hashlib.sha256() for side in SIDES}
    with _output_folder(folder), ExitStack() as stack:
        files = {side: stack.enter_context(atomic(folder / f"{side}.txt")) for side in SIDES}
        for bucket in order:
            rows = [row_as_seen(row)[:-1].split(b"\t", 2) for row in bucket]
            for column, side in enumerate(SIDES):
                text = b"".join(row[column] + b"\n" for row in rows)
                files[side].write(text)
                hashes[side].update(text)
    return {side: each.hexdigest() for side, each in hashes.items()}


def _write_rejects(work: Path, folder: Path) -> None:
    """Write the dropped rows to `<folder>/too-short.tsv`, `<folder>/duplicate.tsv`, ..., one file per reason.

    The rows are as the cleaning steps saw them: in their original case, with single spaces, after earlier repairs, and
    with further columns.
    """
    with _output_folder(folder):
        for path in sorted(work.iterdir()):
            if path.stat().st_size:
                with path.open("rb") as source, atomic(folder / path.name) as target:
                    shutil.copyfileobj(source, target)


@contextmanager
def _output_folder(folder: Path) -> Iterator[None]:
    """Create a folder, lock it for this run, and remove leftovers of killed runs."""
    with output_lock(folder):
        folder.mkdir(exist_ok=True)
        remove_unfinished(folder)
        yield
