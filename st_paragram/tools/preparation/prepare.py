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
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from itertools import chain
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
    missing_folder,
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
from st_paragram.core.tokenizers.stock import check_convertible
from st_paragram.core.tokenizers.words import Splitter
from st_paragram.errors import SettingsError, StoreError, TextError, short
from st_paragram.tools.preparation.buckets import columns_of, sources_of, texts_of
from st_paragram.tools.preparation.clean import clean, identity, rejects_name
from st_paragram.tools.preparation.order import REASONS, Order, order_rows
from st_paragram.tools.preparation.report import LanguageLengths, PrepareReport
from st_paragram.tools.preparation.settings import PrepareSettings
from st_paragram.tools.preparation.vocabulary import load_tokenizers, train
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

    Examples:
        >>> from st_paragram import PrepareSettings, parse_source, prepare
        >>> languages = ("en", "es")
        >>> sources = [parse_source("en-es.tsv", languages)]
        >>> report = prepare(sources, "en-es.h5", PrepareSettings(languages, vocab_size=300))
    """
    output = Path(output)
    dropped = Path(rejects) if rejects else None
    texts = Path(keep_text) if keep_text else None
    place = Path(work) if work else None
    if workers < 1:
        raise SettingsError(f"workers is {workers}; it must be at least 1")
    _check_texts(sources)
    _check_outputs(output, rejects=dropped, texts=texts)
    _check_settings(settings, vocabulary)
    if not overwrite:
        check_output(output, overwrite)
        outputs = work_place(output, place) / _OUTPUTS
        _check_free(sources, settings, rejects=dropped, texts=texts, outputs=outputs)
    carry = dropped is not None or texts is not None
    with work_folder(output, overwrite, place) as folder:
        report = PrepareReport(clean(sources, settings, folder, carry=carry, workers=workers))
        order = order_rows(folder, sources, settings, report=report, carry=carry)
        described = settings.as_json() | {"vocabulary_given": vocabulary is not None}
        digests = dict[str, str]()
        with ExitStack() as unfinished:
            if dropped:
                digests |= _write_rejects(folder / "rejects", dropped, unfinished)
            if texts:
                described["texts"] = _write_texts(order, texts, unfinished)
                for side, text_digest in described["texts"].items():
                    digests[str(_text_file(texts, side).absolute())] = text_digest
            # before they take their names, so that a killed run knows them
            write_json(folder / _OUTPUTS, digests)
        content = vocabulary.content if vocabulary else train(order, sources, settings)
        # The store takes its name last: without it, the same call resumes, and with it, all other
        # outputs are complete.
        _write_store(
            output,
            order,
            sources,
            settings=settings,
            vocabulary=content,
            description=described,
            report=report,
            threads=workers,
        )
    logger.info(
        f"{output}: {report.total.kept:,} pairs, vocabulary of {report.vocabulary_size:,} tokens"
    )
    return report


def prepare_cached(
    sources: Sequence[TextSource],
    settings: PrepareSettings,
    cache_dir: str | Path,
    vocabulary: SentencePieceTokenizer | None = None,
    workers: int = 1,
) -> Path:
    """Return a store for these texts and settings from a cache folder, prepared if necessary.

    The texts, and files that filters read, are identified by absolute path, size and modification
    time. So texts must be regular files.
    """
    for text in chain.from_iterable(source.paths for source in sources):
        if not Path(text).is_file():
            raise TextError(
                f"{text}: not a regular file, so its store cannot be cached; give a regular file"
            )
    vocabulary_digest = hashlib.sha256(vocabulary.content).hexdigest() if vocabulary else None
    key = digest(identity(sources, settings), vocabulary_digest, FORMAT_VERSION, CHARACTERS)
    path = Path(cache_dir) / f"{'-'.join(settings.languages)}-{key}.h5"
    with output_lock(path, wait=True):  # two processes may need the same store at once
        if path.is_file():
            try:
                PairStore(path)
                return path
            except StoreError as error:
                logger.warning("rebuilding the cached store: %s", error)
        prepare(sources, path, settings, vocabulary=vocabulary, overwrite=True, workers=workers)
    return path


def _check_texts(sources: Sequence[TextSource]) -> None:
    if not 1 <= len(sources) <= _MOST_TEXTS:
        raise SettingsError(f"{len(sources)} texts to prepare; give 1 to {_MOST_TEXTS:,}")
    for source in sources:
        if not isinstance(source, TextSource):
            raise SettingsError(f"a text is {short(source)}; make a TextSource with parse_source")
        if source.cap is not None and source.cap < 1:
            raise SettingsError(f"{source.name}: cap is {source.cap}; it must be at least 1")


def _check_outputs(output: Path, *, rejects: Path | None, texts: Path | None) -> None:
    problem = folder_for_file(output)
    if problem:
        raise StoreError(f"{problem}; name a file")
    for folder, contents in ((rejects, "dropped rows"), (texts, "text of the rows")):
        if folder is None:
            continue
        problem = not_writable(folder / "text") or missing_folder(folder)
        if problem:
            raise StoreError(f"{problem}; name a folder for the {contents}")


def _check_settings(settings: PrepareSettings, vocabulary: SentencePieceTokenizer | None) -> None:
    if settings.splitter is Splitter.MOSES:
        # before the text is read, not after hours
        require("sacremoses", "moses", 'splitter "moses"')
    if vocabulary is not None:
        _check_vocabulary(vocabulary, settings)


def _check_vocabulary(vocabulary: SentencePieceTokenizer, settings: PrepareSettings) -> None:
    if settings.tokens != "sentencepiece" or settings.sharing is not Sharing.JOINT:
        raise SettingsError(
            f"tokens {settings.tokens}, sharing {settings.sharing.value} and a sentencepiece model;"
            " a given model works only for joint sentencepiece tokens, leave it out"
        )
    # a model that cannot be converted should fail here, not after hours
    check_convertible(vocabulary)
    actual = (vocabulary.lower_case, vocabulary.segmentation)
    wanted = (settings.lower_case, settings.segmentation)
    if actual != wanted:
        raise SettingsError(
            f"the vocabulary has (lower_case, segmentation) {actual}, but the settings have"
            f" {wanted}; make them agree"
        )


def _check_free(
    sources: Sequence[TextSource],
    settings: PrepareSettings,
    *,
    rejects: Path | None,
    texts: Path | None,
    outputs: Path,
) -> None:
    """Refuse to replace files of text and of dropped rows.

    Files that a killed run of this output has written may be replaced. It recorded them in the file
    `outputs` in its work folder.
    """
    files: list[tuple[Path, str]] = []
    if texts:
        files += [(_text_file(texts, side), "--keep-text") for side in SIDES]
    if rejects:
        reasons = [REASONS[key] for key in settings.cleaning.duplicates.on]
        for pair in {source.pair for source in sources}:
            for step in settings.cleaning.make_steps(pair):
                reasons += step.reasons
        files += [(rejects / rejects_name(reason), "--rejects") for reason in reasons]
    recorded = read_json(outputs) if outputs.is_file() and is_own_folder(outputs.parent) else {}
    for path, option in files:
        if not path.exists():
            continue
        recorded_digest = recorded.get(str(path.absolute()))
        if not (recorded_digest and path.is_file() and content_digest(path) == recorded_digest):
            raise StoreError(
                f"{path} exists; choose another folder for {option} or give --overwrite"
            )


def _write_store(
    output: Path,
    order: Order,
    sources: Sequence[TextSource],
    settings: PrepareSettings,
    vocabulary: bytes,
    description: dict[str, object],
    report: PrepareReport,
    threads: int,
) -> None:
    """Encode all rows in order, and store the report."""
    tokenizers = load_tokenizers(vocabulary, settings)
    pairs = [source.pair_among(settings.languages) for source in sources]
    distinct_pairs = list(dict.fromkeys(pairs))
    pair_numbers = np.array([distinct_pairs.index(pair) for pair in pairs])
    counts = np.zeros((5, len(sources)), np.int64)  # rows, then pieces and characters of each side
    report.vocabulary_size = len(tokenizers[0])
    report.max_pieces = settings.max_tokens
    writer = PairStoreWriter(
        output,
        settings.languages,
        tokenizers[0] if tokenizers[0] is tokenizers[1] else tokenizers,
        max_length=settings.max_tokens,
        settings=description,
        seed=settings.seed,
        row_languages=distinct_pairs,
    )
    progress = tqdm(
        total=report.total.kept, desc=output.name, unit=" pairs", unit_scale=True, disable=None
    )
    with writer, progress:
        for rows in filter(None, order):
            row_sources = np.array(sources_of(rows))
            texts = texts_of(rows)
            sides = []
            lengths = [np.ones(len(rows))]
            for side, tokenizer in enumerate(tokenizers):
                sentences = [text[side] for text in texts]
                ids = tokenizer.encode_normalized(sentences, settings.max_tokens, threads)
                lengths.append(np.diff(ids.offsets))
                lengths.append(np.array([len(sentence) for sentence in sentences]))
                report.cut_sentences += ids.cut
                sides.append(ids)
            a, b = sides
            writer.append(a.ids, a.offsets, b.ids, b.offsets, pair_numbers[row_sources])
            for number, values in enumerate(lengths):
                sums = np.bincount(row_sources, values, len(sources))
                counts[number] += sums.astype(np.int64)
            progress.update(len(rows))
        report.pieces = (int(counts[1].sum()), int(counts[3].sum()))
        report.lengths = _lengths([source.pair for source in sources], counts)
        writer.settings["report"] = report.as_json()


def _lengths(
    pairs: Sequence[tuple[str, str]], counts: NDArray[np.int64]
) -> dict[str, LanguageLengths]:
    """Sum the counts of all texts by language."""
    lengths: dict[str, LanguageLengths] = {}
    for pair, (rows, *sides) in zip(pairs, counts.T.tolist(), strict=True):
        if not rows:
            continue
        for side, language in enumerate(pair):
            total = lengths.setdefault(language, LanguageLengths())
            total.sentences += rows
            total.pieces += sides[2 * side]
            total.characters += sides[2 * side + 1]
    return dict(sorted(lengths.items()))


def _text_file(folder: Path, side: str) -> Path:
    return folder / f"{side}.txt"


def _write_texts(order: Order, folder: Path, unfinished: ExitStack) -> dict[str, str]:
    """Write `a.txt` and `b.txt`, and return their SHA-256.

    Line i has row i of the store, as the filters saw it. The files take their names when
    `unfinished` is closed.
    """
    unfinished.enter_context(_output_folder(folder))
    hashes = {}
    files = {}
    for side in SIDES:
        hashes[side] = hashlib.sha256()
        files[side] = unfinished.enter_context(_output_file(_text_file(folder, side)))
    for rows in order:
        columns = [columns_of(row)[:-1].split(b"\t", 2) for row in rows]
        for number, side in enumerate(SIDES):
            text = b"".join([row_columns[number] + b"\n" for row_columns in columns])
            files[side].write(text)
            hashes[side].update(text)
    return {side: text_hash.hexdigest() for side, text_hash in hashes.items()}


def _write_rejects(work: Path, folder: Path, unfinished: ExitStack) -> dict[str, str]:
    """Write the dropped rows to `<folder>/too-short.tsv`, ..., one file per reason.

    The rows are as the cleaning steps saw them: in their original case, with single spaces, after
    earlier repairs, and with further columns. The files take their names when `unfinished` is
    closed. Return their paths and SHA-256.
    """
    digests = dict[str, str]()
    unfinished.enter_context(_output_folder(folder))
    for path in sorted(work.iterdir()):
        if path.stat().st_size:
            output = folder / path.name
            output_file = unfinished.enter_context(_output_file(output))
            with path.open("rb") as file:
                shutil.copyfileobj(file, output_file)
            digests[str(output.absolute())] = content_digest(path)
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
