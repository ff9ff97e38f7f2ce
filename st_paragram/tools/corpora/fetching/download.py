"""Fetch files into a folder: several at a time, each whole or not at all, recorded in the manifest."""

from __future__ import annotations

import logging
import queue
import shutil
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import repeat
from pathlib import Path

from st_paragram.core.files import check_output
from st_paragram.errors import DownloadError, ParagramError, SettingsError
from st_paragram.tools.corpora.fetching.corpus_file import CorpusFile
from st_paragram.tools.corpora.fetching.http import NotThere, StartAnew, TryAgain, open_url
from st_paragram.tools.corpora.fetching.manifest import NAME, Manifest
from st_paragram.tools.corpora.fetching.part import Part
from st_paragram.tools.corpora.fetching.transfer import (
    HostNotFound,
    Received,
    Stopped,
    Transfer,
    TransferSettings,
    host_not_found,
)

logger = logging.getLogger(__name__)

_GRACE = 2.0  # seconds for threads to end; one that waits for a byte is left behind, and writes nothing more


@dataclass(frozen=True)
class Fetched:
    """A file that has been fetched, now or earlier.

    Attributes:
        file: The file that was asked for.
        path: Where it is stored.
        fresh: Whether it has been fetched just now.
        sha256: Its SHA-256, in hexadecimal digits.
    """

    file: CorpusFile
    path: Path
    fresh: bool
    sha256: str


@dataclass
class _Outcome:
    """What has become of the files so far, by their place in the list."""

    received: dict[int, Received] = field(default_factory=dict)
    absent: dict[int, NotThere] = field(default_factory=dict)
    failures: dict[int, str] = field(default_factory=dict)
    unknown_hosts: dict[str | None, str] = field(default_factory=dict)  # with the reason


def download(
    files: Sequence[CorpusFile], folder: str | Path, parallel: int = 4, settings: TransferSettings | None = None
) -> list[Fetched]:
    """Fetch the files that have not been downloaded yet. If one fails, the others are still fetched.

    A file counts as downloaded if it is in the manifest and unchanged. One that is there but not in the manifest is
    taken as it is, once its first bytes and, where they are known, its size and checksum have been checked. After
    Ctrl-C the parts stay, and the next call resumes them.

    Args:
        files: The files to fetch.
        folder: The folder to store them in; it is made if it does not exist.
        parallel: How many files to fetch at a time.
        settings: Limits of each transfer.

    Returns:
        The files in the order of `files`, without optional ones that the server lacks.

    Raises:
        DownloadError: Some files could not be fetched; the message names each, with the reason and what to do.
        HostNotFound: The same, and no address is known for the servers of these files.
        SettingsError: Two files would have the same name, or `parallel` is below 1.
    """
    folder, settings = Path(folder), settings or TransferSettings()
    _check(files, parallel)
    check_output(folder / NAME, overwrite=True)
    manifest = Manifest(folder)
    absent = [file for file in files if not (folder / file.filename).is_file()]
    _check_free(sum(map(_to_come, absent, repeat(folder))), len(absent), folder)
    folder.mkdir(parents=True, exist_ok=True)
    outcome = _Outcome()
    paths = [folder / file.filename for file in files]
    missing = [i for i, file in enumerate(files) if not manifest.has(file, paths[i])]
    if missing:
        check_disk_space([files[index] for index in missing], folder, settings.timeout)
        _fetch_all(files, missing, folder, parallel, settings, manifest, outcome)
    for index in set(range(len(files))) - set(missing):
        Part(paths[index]).remove_leftovers()
    _judge_absent(files, outcome)
    if outcome.failures:
        reasons = "; ".join(outcome.failures[index] for index in sorted(outcome.failures))
        only = {files[index].host for index in outcome.failures} <= outcome.unknown_hosts.keys()
        kind = HostNotFound if only else DownloadError
        several = f"{len(outcome.failures)} of {len(files)} files not fetched: " if len(files) > 1 else ""
        raise kind(several + reasons)
    return [
        Fetched(file, paths[index], index in outcome.received, manifest.entries[file.filename].sha256)
        for index, file in enumerate(files)
        if index not in outcome.absent
    ]


def _to_come(file: CorpusFile, folder: Path) -> int:
    """Bytes that are still to be fetched, as far as the size is known."""
    return max(0, (file.size or file.about or 0) - Part(folder / file.filename).size())


def _check(files: Sequence[CorpusFile], parallel: int) -> None:
    if parallel < 1:
        raise SettingsError(f"parallel is {parallel}; it must be at least 1")
    names: dict[str, str] = {}
    for file in files:
        if names.setdefault(file.filename, file.url) != file.url or Path(file.filename).name != file.filename:
            raise SettingsError(f"{file.label}: cannot be stored as {file.filename}; fetch it into a separate folder")
    if len(names) < len(files):
        raise SettingsError("a file is asked for twice; name each corpus once")


def check_disk_space(files: Sequence[CorpusFile], folder: Path, timeout: float) -> None:
    """Compare the size of files with the free space; the server is asked for sizes that are not known.

    Args:
        files: The files to fetch.
        folder: The folder to store them in; it exists.
        timeout: The longest wait for all answers together, in seconds.

    Raises:
        DownloadError: There is not enough space.
    """
    needed, end = 0, time.monotonic() + timeout
    for file in files:
        size = file.size or file.about
        if size is None and (left := end - time.monotonic()) > 0:
            try:
                size = _ask_size(file.url, left)
            except TryAgain:
                end = 0.0  # the server is out of reach: each further question might take as long
        needed += max(0, (size or 0) - Part(folder / file.filename).size())
    _check_free(needed, len(files), folder)


def _check_free(needed: int, count: int, folder: Path) -> None:
    free = shutil.disk_usage(next(place for place in (folder, *folder.absolute().parents) if place.exists())).free
    if needed > free:
        raise DownloadError(
            f"{folder}: {count} files of {needed / 2**30:.2f} GiB are to come, but only {free / 2**30:.2f} GiB "
            "are free; free disk space, choose another folder, or ask for fewer files"
        )


def _ask_size(url: str, timeout: float) -> int | None:
    try:
        with open_url(url, timeout=timeout, method="HEAD") as answer:
            return answer.length
    except (DownloadError, StartAnew):
        return None  # the download itself will say what is wrong


def _fetch_all(
    files: Sequence[CorpusFile],
    missing: Sequence[int],
    folder: Path,
    parallel: int,
    settings: TransferSettings,
    manifest: Manifest,
    outcome: _Outcome,
) -> None:
    stop = threading.Event()
    waiting: queue.SimpleQueue[int] = queue.SimpleQueue()
    for index in missing:
        waiting.put(index)

    def fetch(index: int) -> None:
        file, path = files[index], folder / files[index].filename
        host = file.host
        if host in outcome.unknown_hosts:
            raise HostNotFound(host_not_found(file, outcome.unknown_hosts[host]))
        received = Transfer(file, path, settings, stop).run()
        manifest.record(file, path, received.size, received.sha256, received.origin)
        outcome.received[index] = received
        logger.info(f"{path}: {received.size:,} bytes. Licence: {file.licence}")

    def work() -> None:
        while not stop.is_set():
            try:
                index = waiting.get_nowait()
            except queue.Empty:
                return
            _guarded(fetch, files[index], index, outcome)

    _run_threads(work, min(parallel, len(missing)), stop)


def _guarded(fetch: Callable[[int], None], file: CorpusFile, index: int, outcome: _Outcome) -> None:
    """Fetch a file and note whatever goes wrong with it; nothing must end the thread."""
    try:
        fetch(index)
    except Stopped:
        pass
    except NotThere as error:
        outcome.absent[index] = error
    except HostNotFound as error:
        outcome.unknown_hosts.setdefault(file.host, str(error.__cause__))
        outcome.failures[index] = str(error)
    except ParagramError as error:
        outcome.failures[index] = f"{error}{_note(file)}"
    except OSError as error:  # a full disk, a missing permission
        reason = error.strerror or error
        outcome.failures[index] = (
            f"{file.label}: cannot be stored ({reason}); its part is kept for a later run if it can be resumed"
        )
    except Exception as error:  # a bug must not look like success
        outcome.failures[index] = f"{file.label}: {type(error).__name__}: {error}"
        logger.exception(file.label)


def _run_threads(work: Callable[[], None], count: int, stop: threading.Event) -> None:
    """Run `work` in threads that do not outlive the program: Ctrl-C does not wait for one that hangs."""
    threads = [threading.Thread(target=work, name=f"download-{number}", daemon=True) for number in range(count)]
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            while thread.is_alive():
                thread.join(0.1)  # on some systems, a join without a time limit would not see Ctrl-C
    except BaseException:
        stop.set()
        for thread in threads:
            if thread.ident is not None:
                thread.join(_GRACE / count)
        raise


def _judge_absent(files: Sequence[CorpusFile], outcome: _Outcome) -> None:
    """Excuse an optional file that the server lacks if another text of the same languages was fetched."""
    bad = outcome.absent.keys() | outcome.failures.keys()
    there = {files[index].pair for index in range(len(files)) if index not in bad}
    for index in sorted(outcome.absent):
        if files[index].optional and files[index].pair in there:
            logger.warning(f"{files[index].label}: the corpus does not have these languages; left out")
        else:
            outcome.failures[index] = f"{outcome.absent.pop(index)}{_note(files[index])}"


def _note(file: CorpusFile) -> str:
    return f". Note: {file.note}" if file.note else ""
