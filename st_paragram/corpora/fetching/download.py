"""Fetch files into a folder: several at a time, each whole or not at all, recorded in its manifest."""

from __future__ import annotations

import logging
import queue
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

from st_paragram.corpora.fetching.already_downloaded import is_there, record
from st_paragram.corpora.fetching.corpus_file import CorpusFile
from st_paragram.corpora.fetching.disk_space import check_space
from st_paragram.corpora.fetching.http import NotThere
from st_paragram.corpora.fetching.manifest import Manifest
from st_paragram.corpora.fetching.transfer import HostNotFound, Received, Stopped, Transfer, host_not_found
from st_paragram.corpora.fetching.transfer_settings import TransferSettings
from st_paragram.errors import DownloadError, ParagramError, SettingsError

logger = logging.getLogger(__name__)

_GRACE = 2.0  # seconds for threads to end; one that waits for a byte is left behind and writes nothing more


@dataclass(frozen=True)
class Fetched:
    """A file that is there.

    Attributes:
        file: What was asked for.
        path: Where it is.
        fresh: It was fetched just now, not before.
        sha256: Hexadecimal.
    """

    file: CorpusFile
    path: Path
    fresh: bool
    sha256: str


@dataclass
class _Outcome:
    """What has come of it so far; files are named by their place in the list."""

    received: dict[int, Received] = field(default_factory=dict)
    absent: dict[int, NotThere] = field(default_factory=dict)
    failures: dict[int, str] = field(default_factory=dict)
    unknown_hosts: dict[str | None, str] = field(default_factory=dict)  # with the reason


def download(
    files: Sequence[CorpusFile], folder: str | Path, parallel: int = 4, settings: TransferSettings | None = None
) -> list[Fetched]:
    """Fetch what is not there yet. One file that fails does not keep the others from coming.

    A file is there if the manifest has it and it is unchanged; one that is not in the manifest is taken as it is
    after its size, checksum and first bytes are checked, as far as they are known. Ctrl-C keeps the parts.

    Args:
        files: What to fetch.
        folder: Made if missing.
        parallel: Files at a time.
        settings: How patient to be.

    Returns:
        What is there, in the order of `files`; files that may be missing and are, are left out.

    Raises:
        DownloadError: Some files could not be fetched; the message names each, with the reason and what to do.
        HostNotFound: The same, and no address is known for the servers of these files.
        SettingsError: Two files would have one name, or `parallel` is below 1.
    """
    folder, settings = Path(folder), settings or TransferSettings()
    _check(files, parallel)
    folder.mkdir(parents=True, exist_ok=True)
    manifest = Manifest(folder)
    outcome = _Outcome()
    missing = [index for index, file in enumerate(files) if not is_there(file, folder / file.filename, manifest)]
    if missing:
        check_space([files[index] for index in missing], folder, settings.timeout)
        _fetch_all(files, missing, folder, parallel, settings, manifest, outcome)
    _judge_absent(files, outcome)
    if outcome.failures:
        reasons = "; ".join(outcome.failures[index] for index in sorted(outcome.failures))
        only = {urlsplit(files[index].url).hostname for index in outcome.failures} <= outcome.unknown_hosts.keys()
        kind = HostNotFound if only else DownloadError
        raise kind(f"{len(outcome.failures)} of {len(files)} files not fetched: {reasons}")
    return [
        Fetched(file, folder / file.filename, index in outcome.received, manifest.entries[file.filename].sha256)
        for index, file in enumerate(files)
        if index not in outcome.absent
    ]


def _check(files: Sequence[CorpusFile], parallel: int) -> None:
    if parallel < 1:
        raise SettingsError(f"{parallel} files at a time; give at least 1")
    names: dict[str, str] = {}
    for file in files:
        if names.setdefault(file.filename, file.url) != file.url or Path(file.filename).name != file.filename:
            raise SettingsError(f"{file.label}: cannot be stored as {file.filename}; fetch it into a folder of its own")
    if len(names) < len(files):
        raise SettingsError("a file is named twice; name each corpus once")


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
        host = urlsplit(file.url).hostname
        if host in outcome.unknown_hosts:
            raise HostNotFound(host_not_found(file, outcome.unknown_hosts[host]))
        received = Transfer(file, path, settings, stop).run()
        record(file, path, received.size, received.sha256, manifest, received)
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
    """Whatever goes wrong with one file is noted; nothing must end the thread."""
    try:
        fetch(index)
    except Stopped:
        pass
    except NotThere as error:
        outcome.absent[index] = error
    except HostNotFound as error:
        outcome.unknown_hosts.setdefault(urlsplit(file.url).hostname, str(error.__cause__))
        outcome.failures[index] = str(error)
    except ParagramError as error:
        outcome.failures[index] = f"{error}{_note(file)}"
    except OSError as error:  # a full disk, a missing permission
        outcome.failures[index] = f"{file.label}: cannot be stored ({error.strerror or error}); its part is kept"
    except Exception as error:  # a mistake of ours must not look like success
        outcome.failures[index] = f"{file.label}: {type(error).__name__}: {error}"
        logger.exception(file.label)


def _run_threads(work: Callable[[], None], count: int, stop: threading.Event) -> None:
    """Run `work` in threads, which must not outlive the program: Ctrl-C waits for none that hangs."""
    threads = [threading.Thread(target=work, name=f"download-{number}", daemon=True) for number in range(count)]
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            while thread.is_alive():
                thread.join(0.1)  # a join without end would not see Ctrl-C on every system
    except BaseException:
        stop.set()
        for thread in threads:
            if thread.ident is not None:
                thread.join(_GRACE / count)
        raise


def _judge_absent(files: Sequence[CorpusFile], outcome: _Outcome) -> None:
    """A file that may be missing is excused if another text of its pair is there."""
    bad = outcome.absent.keys() | outcome.failures.keys()
    there = {files[index].pair for index in range(len(files)) if index not in bad}
    for index in sorted(outcome.absent):
        if files[index].optional and files[index].pair in there:
            logger.warning(f"{files[index].label}: not there for this pair; left out")
        else:
            outcome.failures[index] = f"{outcome.absent.pop(index)}{_note(files[index])}"


def _note(file: CorpusFile) -> str:
    return f". Note: {file.note}" if file.note else ""
