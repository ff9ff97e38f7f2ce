"""From parallel text to a pair store: read, clean, deduplicate, shuffle, train a vocabulary,
encode, write.

Rows go through 64 files, each of which fits into memory whatever the size of the text. Reading and
cleaning, by far the longest part, is resumed where a run was interrupted; the rest is repeated. The
stored pairs and their order depend only on the set of rows, the settings and the seed, not on the
number of workers.
"""

from __future__ import annotations

import hashlib
import logging
import shutil
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path
from typing import IO

import numpy as np
from numpy.typing import NDArray
from tqdm import tqdm

from st_paragram.core.extras import require
from st_paragram.core.files import (
    atomic,
    content_digest,
    digest,
    folder_for_file,
    not_writable,
    read_json,
    write_json,
)
from st_paragram.core.folders import is_own_folder, remove_unfinished
from st_paragram.core.outputs import check_output, output_lock
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
from st_paragram.tools.preparation.clean import clean, identity, rejects_name
from st_paragram.tools.preparation.order import REASONS, Order, order_rows
from st_paragram.tools.preparation.report import LanguageLengths, PrepareReport
from st_paragram.tools.preparation.settings import PrepareSettings
from st_paragram.tools.work import work_folder, work_place

logger = logging.getLogger(__name__)

_MOST_TEXTS = 10_000
# in the work folder: paths of all outputs but the store, and SHA-256 of their contents
_OUTPUTS = "outputs.json"


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

    The work folder takes about twice the size of the text, and once more for each side by which
    repeated rows are dropped. It is removed at the end, and after errors in the input. After
    Ctrl-C, a full disk, a killed process or an error of a setting, it is kept. The same call
    resumes from it, also with other settings of later steps, such as the vocabulary size.

    Args:
        sources: Parallel texts, see `parse_source`.
        output: Output HDF5 file.
        settings: Settings of the preparation.
        vocabulary: Vocabulary to use instead of training one.
        overwrite: Replace existing outputs.
        work: Folder in which a folder for intermediate files is made; by default it is hidden, next
            to the output.
        workers: Number of processes for cleaning and of threads for encoding; they do not change
            the store.
        rejects: Folder for dropped rows, one file per reason.
        keep_text: Folder for the text of the rows, `a.txt` and `b.txt`; the store records their
            checksums.

    Returns:
        The counts of the preparation, which are also in the store (`PairStore.settings["report"]`).

    Example:
        >>> from st_paragram import PrepareSettings, parse_source, prepare
        >>> languages = ("en", "es")
        >>> sources = [parse_source("en-es.tsv", languages)]
        >>> report = prepare(sources, "en-es.h5", PrepareSettings(languages, vocab_size=300))
    """
    output = Path(output)
    dropped = Path(rejects) if rejects else None
    texts = Path(keep_text) if keep_text else None
    place = Path(work) if work else None
    _check(sources, output, settings, vocabulary, workers, dropped, texts)
    if not overwrite:
        check_output(output, overwrite)
        outputs = work_place(output, place) / _OUTPUTS
        _check_free(sources, settings, rejects=dropped, texts=texts, outputs=outputs)
    carry = dropped is not None or texts is not None
    with work_folder(output, overwrite, place) as folder:
        report = PrepareReport(clean(sources, settings, folder, carry, workers))
        order = order_rows(folder, sources, settings, report, carry)
        described = settings.as_json() | {"vocabulary_given": vocabulary is not None}
        digests = dict[str, str]()
        with ExitStack() as unfinished:
            if dropped:
                digests |= _write_rejects(folder / "rejects", dropped, unfinished)
            if texts:
                described["texts"] = _write_texts(order, texts, unfinished)
                digests |= {
                    str(_text_file(texts, side).absolute()): sha
                    for side, sha in described["texts"].items()
                }
            # before they take their names, so that a killed run knows them
            write_json(folder / _OUTPUTS, digests)
        content = vocabulary.content if vocabulary else vocabularies.train(order, sources, settings)
        # The store takes its name last: without it, the same call resumes, and with it, all other
        # outputs are complete.
        _write_store(output, order, sources, settings, content, described, report, workers)
    logger.info(
        "%s: %d pairs, vocabulary of %d pieces", output, report.total.kept, report.vocabulary_size
    )
    return report


def prepare_cached(
    sources: Sequence[TextSource],
    settings: PrepareSettings,
    cache_dir: str | Path,
    vocabulary: SentencePieceTokenizer | None = None,
    workers: int = 1,
) -> Path:
    """Return a store for these texts and settings from a cache folder, after preparing it if it
    does not exist.

    The texts, and files that filters read, are identified by absolute path, size and modification
    time. So texts must be regular files.
    """
    for text in (text for source in sources for text in source.paths if not Path(text).is_file()):
        raise TextError(
            f"{text}: not a regular file, so its store cannot be cached; give a regular file"
        )
    given = hashlib.sha256(vocabulary.content).hexdigest() if vocabulary else None
    known = digest(identity(sources, settings), given, FORMAT_VERSION, CHARACTERS)
    path = Path(cache_dir) / f"{'-'.join(settings.languages)}-{known}.h5"
    with output_lock(path, wait=True):  # two processes may need the same store at once
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
    workers: int,
    rejects: Path | None,
    texts: Path | None,
) -> None:
    if workers < 1:
        raise SettingsError(f"workers is {workers}; it must be at least 1")
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
    if settings.splitter is Splitter.MOSES:
        # before the text is read, not after hours
        require("sacremoses", "moses", 'splitter "moses"')
    if vocabulary is not None:
        if (settings.tokens, settings.sharing) != ("sentencepiece", Sharing.JOINT):
            seen = (
                f"tokens {settings.tokens}, sharing {settings.sharing.value} and a sentencepiece"
                " model"
            )
            raise SettingsError(
                f"{seen}; a given model works only for joint sentencepiece tokens, leave it out"
            )
        # a model that cannot be converted should fail here, not after hours
        convert_tokenizer(vocabulary)
        has = (vocabulary.lower_case, vocabulary.segmentation)
        if has != (wanted := (settings.lower_case, settings.segmentation)):
            seen = (
                f"the vocabulary has (lower_case, segmentation) {has}, but the settings have"
                f" {wanted}"
            )
            raise SettingsError(f"{seen}; make them agree")


def _check_free(
    sources: Sequence[TextSource],
    settings: PrepareSettings,
    *,
    rejects: Path | None,
    texts: Path | None,
    outputs: Path,
) -> None:
    """Refuse to replace files of text and of dropped rows, except those that a killed run of this
    output has written.

    `outputs` is the file in the work folder in which that run recorded them.
    """
    files: list[tuple[Path, str]] = []
    if texts:
        files += [(_text_file(texts, side), "--keep-text") for side in SIDES]
    if rejects:
        reasons = [REASONS[key] for key in settings.cleaning.duplicates.on]
        for pair in {source.pair for source in sources}:
            reasons += [
                reason for step in settings.cleaning.make_steps(pair) for reason in step.reasons
            ]
        files += [(rejects / rejects_name(reason), "--rejects") for reason in reasons]
    recorded = read_json(outputs) if outputs.is_file() and is_own_folder(outputs.parent) else {}
    for path, option in files:
        known = recorded.get(str(path.absolute()))
        if path.exists() and not (known and path.is_file() and content_digest(path) == known):
            raise StoreError(
                f"{path} exists; choose another folder for {option} or give --overwrite"
            )


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
            output,
            settings.languages,
            shared,
            settings.max_tokens,
            described,
            settings.seed,
            different,
        ) as writer,
        tqdm(
            total=report.total.kept, desc=output.name, unit=" pairs", unit_scale=True, disable=None
        ) as progress,
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
            counts += [
                np.bincount(text_numbers, each, len(sources)).astype(np.int64) for each in lengths
            ]
            progress.update(len(rows))
        report.pieces = int(counts[1].sum()), int(counts[3].sum())
        report.lengths = _lengths([source.pair for source in sources], counts)
        writer.settings["report"] = report.as_json()


def _lengths(
    pairs: Sequence[tuple[str, str]], counts: NDArray[np.int64]
) -> dict[str, LanguageLengths]:
    """Sum the counts of all texts by language."""
    found: defaultdict[str, NDArray[np.int64]] = defaultdict(lambda: np.zeros(3, np.int64))
    for pair, (rows, *sides) in zip(pairs, counts.T, strict=True):
        for language, pieces, characters in zip(pair, sides[::2], sides[1::2], strict=True):
            found[language] += (rows, pieces, characters)
    return {
        language: LanguageLengths(*each.tolist())
        for language, each in sorted(found.items())
        if each[0]
    }


def _text_file(folder: Path, side: str) -> Path:
    return folder / f"{side}.txt"


def _write_texts(order: Order, folder: Path, unfinished: ExitStack) -> dict[str, str]:
    """Write `a.txt` and `b.txt`, which take their names when `unfinished` is closed; return their
    SHA-256.

    Line i has row i of the store, as the filters saw it.
    """
    hashes = {side: hashlib.sha256() for side in SIDES}
    unfinished.enter_context(_output_folder(folder))
    files = {
        side: unfinished.enter_context(_output_file(_text_file(folder, side))) for side in SIDES
    }
    for bucket in order:
        rows = [row_as_seen(row)[:-1].split(b"\t", 2) for row in bucket]
        for column, side in enumerate(SIDES):
            text = b"".join(row[column] + b"\n" for row in rows)
            files[side].write(text)
            hashes[side].update(text)
    return {side: each.hexdigest() for side, each in hashes.items()}


def _write_rejects(work: Path, folder: Path, unfinished: ExitStack) -> dict[str, str]:
    """Write the dropped rows to `<folder>/too-short.tsv`, `<folder>/duplicate.tsv`, ..., one file
    per reason.

    The rows are as the cleaning steps saw them: in their original case, with single spaces, after
    earlier repairs, and with further columns. The files take their names when `unfinished` is
    closed. Return their paths and SHA-256.
    """
    digests = {}
    unfinished.enter_context(_output_folder(folder))
    for path in sorted(work.iterdir()):
        if path.stat().st_size:
            target = unfinished.enter_context(_output_file(folder / path.name))
            with path.open("rb") as source:
                shutil.copyfileobj(source, target)
            digests[str((folder / path.name).absolute())] = content_digest(path)
    return digests


@contextmanager
def _output_folder(folder: Path) -> Iterator[None]:
    """Create a folder, and lock it for this run."""
    with output_lock(folder):
        folder.mkdir(exist_ok=True)
        yield


def _output_file(path: Path) -> AbstractContextManager[IO[bytes]]:
    """Open a file of a locked folder like `atomic`, after removing what killed runs left of it."""
    remove_unfinished(path.parent, path.name)  # not of other files: other runs may be writing them
    return atomic(path)
