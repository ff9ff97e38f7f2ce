"""Downloads and listings from a server that misbehaves in every phase.

What is fetched has the checksum that is known, or is one of the versions that the server gave out; everything else is
refused in time, in one line that can be shown. Then the server behaves, and the next run gets the file.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import logging
import tarfile
import time
import zipfile
from pathlib import Path

import numpy as np

from hostile.bad_server import Plan, one_of, started
from hostile.damage import damaged, edited_json, json_bytes
from st_paragram.errors import ParagramError
from st_paragram.tools.corpora.fetching.corpus_file import CorpusFile, is_web_address
from st_paragram.tools.corpora.fetching.download import download
from st_paragram.tools.corpora.fetching.transfer import TransferSettings
from st_paragram.tools.corpora.opus import find_in_opus
from st_paragram.tools.evaluation.sts.archives import graded_rows, read_members
from st_paragram.tools.evaluation.sts.catalogue import BENCHMARKS

TRIES, QUICK = 1_000, 6

_HASTY = TransferSettings(
    timeout=0.15,
    tries=2,
    first_wait=0.001,
    longest_wait=0.01,
    least_rate=30_000,
    rate_window=0.2,
    overlap=64,
    most_bytes=1 << 20,
)
_PATIENT = TransferSettings(timeout=20, tries=4, first_wait=0.01, overlap=64)
_LIMIT = 6.0  # seconds; far above all deadlines of a try together, for a busy machine
_ROW = {"id": 1, "corpus": "NLLB", "version": "v1", "source": "en", "target": "es", "size": 7, "latest": "True"}


class _Log(logging.Handler):
    """What is logged while a try runs."""

    def __init__(self) -> None:
        super().__init__()
        self.lines: list[str] = []
        self.tracebacks: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(record.getMessage())
        if record.exc_info:
            self.tracebacks.append(logging.Formatter().formatException(record.exc_info))

    def __enter__(self) -> _Log:
        logging.getLogger("st_paragram").addHandler(self)
        return self

    def __exit__(self, *_: object) -> None:
        logging.getLogger("st_paragram").removeHandler(self)


def prepare(folder: Path) -> dict[str, object]:
    """A server, and files of several kinds."""
    rng = np.random.default_rng(1)
    text = "".join(f"{rng.bytes(20).hex()}\n" for _ in range(400)).encode()
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for code in ("en", "es"):
            archive.writestr(f"A.en-es.{code}", text)
    return {"server": started(), "files": {"a.txt": text, "a.zip": packed.getvalue()}, "sts": _sts()}


def attempt(shared: dict[str, object], rng: np.random.Generator, folder: Path) -> str:
    """One download, one question to the index of OPUS, or one archive of the STS tasks."""
    kind = rng.random()
    with _Log() as log:
        if kind < 0.7:
            outcome = _download(shared, rng, folder)
        elif kind < 0.85:
            outcome = _listing(shared, rng)
        else:
            outcome = _archive(shared, rng)
    if log.tracebacks:
        return f"wrong: a traceback in the log\n{log.tracebacks[0]}"
    if bad := next((line for line in log.lines if not line.isprintable()), None):
        return f"wrong: a warning that cannot be shown\n{bad!r}"
    return outcome


def _download(shared: dict[str, object], rng: np.random.Generator, folder: Path) -> str:
    name = one_of(list(shared["files"]), rng)
    data, number = shared["files"][name], f"/{rng.integers(1 << 60)}"
    plan = Plan(data, np.random.default_rng(rng.integers(1 << 60)), faults=one_of([0.5, 0.9], rng))
    shared["server"].plans[f"{number}/{name}"] = plan
    digest = hashlib.sha256(data).hexdigest()
    known = {"sha256": digest if rng.random() < 0.3 else None, "about": 7 if rng.random() < 0.5 else None}
    file = CorpusFile("A", "v1", f"{shared['server'].url}{number}/{name}", name, **known)
    plan.versions.append(_leave(folder, file, data, rng))
    start = time.monotonic()
    try:
        got = download([file], folder, settings=_HASTY)[0].path.read_bytes()
        outcome = _judged(got, plan, known["sha256"] is not None)
    except ParagramError as error:
        outcome = "refused" if str(error).isprintable() else f"wrong: a message that cannot be shown\n{str(error)!r}"
    if (elapsed := time.monotonic() - start) > _LIMIT:
        return f"wrong: {elapsed:.1f} s\n"
    if outcome.startswith("wrong"):
        return outcome
    return _second_run(file, plan, digest, folder) or outcome


def _second_run(file: CorpusFile, plan: Plan, digest: str, folder: Path) -> str:
    """What is wrong after a run in which the server behaves."""
    plan.faults = 0.0
    again = CorpusFile(**{**vars(file), "sha256": digest})
    if download([again], folder, settings=_PATIENT)[0].path.read_bytes() != plan.data:
        return "wrong: another file after a good run"
    left = sorted(path.name for path in folder.iterdir())
    return "" if left == [file.filename, "manifest.json"] else f"wrong: leftovers\n{left}"


def _leave(folder: Path, file: CorpusFile, data: bytes, rng: np.random.Generator) -> bytes:
    """What a run that was killed may have left: a part, well or damaged."""
    if rng.random() < 0.7:
        return b""
    origin = {"url": file.url, "etag": f'"{hashlib.md5(data).hexdigest()}"', "last_modified": None, "total": len(data)}
    part = data[: int(rng.integers(len(data) + 1))]
    if part and rng.random() < 0.4:
        part = damaged(part, rng)
    note = json_bytes(edited_json(origin, rng)) if rng.random() < 0.4 else json.dumps(origin).encode()
    (folder / f"{file.filename}.part").write_bytes(part)
    (folder / f"{file.filename}.part.json").write_bytes(note)
    (folder / f"{file.filename}.part.lock").touch()
    return part


def _judged(got: bytes, plan: Plan, digest_known: bool) -> str:
    if got == plan.data:
        return "unharmed"
    if digest_known:
        return "wrong: another file than the checksum says"
    if got in plan.versions:
        return "other content"
    if _joined(got, plan.versions, plan.loose):
        return "other content (several versions, or one without a length)"
    return f"wrong: no version that the server gave out\n{len(got)} bytes"


def _joined(got: bytes, versions: list[bytes], loose: bool) -> bool:
    """Whether it is a beginning of one version, gone on with by another that agrees in the bytes before, and so on."""
    runs, size = [], len(got)
    for version in versions:
        both = min(size, len(version))
        same = np.frombuffer(got, np.uint8, both) == np.frombuffer(version, np.uint8, both)
        edges = np.flatnonzero(np.diff(np.concatenate([[False], same, [False]]).astype(np.int8)))
        runs += [(int(a), int(b), loose or len(version) == size) for a, b in edges.reshape(-1, 2)]
    reach, ends = 0, False
    for begin, end, may_end in sorted(runs):
        if begin == 0 or begin + _HASTY.overlap <= reach:
            reach, ends = max(reach, end), ends or (end == size and may_end)
    return ends


def _listing(shared: dict[str, object], rng: np.random.Generator) -> str:
    rows = [_ROW | {"url": f"https://h/{code}.txt.zip", "target": code} for code in ("es", "de", "")]
    value = {"corpora": rows}
    if rng.random() < 0.7:
        data = json_bytes(edited_json(value, rng))
        faults = 0.0
    else:
        data = json.dumps(value).encode()
        data, faults = (damaged(data, rng), 0.0) if rng.random() < 0.5 else (data, 0.9)
    number = f"/{rng.integers(1 << 60)}/"
    shared["server"].plans[number] = Plan(data, np.random.default_rng(rng.integers(1 << 60)), faults)
    start = time.monotonic()
    try:
        file = find_in_opus("NLLB", None, ("en", "es"), f"{shared['server'].url}{number}", timeout=0.3)
    except ParagramError as error:
        outcome = (
            "index refused" if str(error).isprintable() else f"wrong: a message that cannot be shown\n{str(error)!r}"
        )
    else:
        outcome = (
            "index unharmed" if file.url == rows[0]["url"] and file.about == 7 * 1024 else "index with other content"
        )
        shown = f"{file.name}{file.version}{file.url}{file.filename}{file.licence}"
        if not shown.isprintable() or not is_web_address(file.url) or Path(file.filename).name != file.filename:
            outcome = f"wrong: a file that cannot be\n{file!r}"
    return outcome if time.monotonic() - start < _LIMIT else "wrong: too late"


def _sts() -> tuple[str, bytes, str, bytes]:
    """Archives of the two kinds in which the STS tasks were published."""
    zipped, tarred = io.BytesIO(), io.BytesIO()
    stem = BENCHMARKS["2013"].sets[0].stems[0]
    with zipfile.ZipFile(zipped, "w") as archive:  # not packed, so that damage reaches deep
        archive.writestr(f"a/STS.input.{stem}.txt", "".join(f"one {i}\tother {i}\n" for i in range(40)))
        archive.writestr(f"a/STS.gs.{stem}.txt", "".join(f"{i % 5}\n" for i in range(40)))
    with tarfile.open(fileobj=tarred, mode="w") as archive:
        for info in BENCHMARKS["stsb"].sets:
            text = "".join(f"news\tfile\t2012\t{i}\t{i % 5}\tone {i}\tother {i}\n" for i in range(20)).encode()
            member = tarfile.TarInfo(f"stsbenchmark/{info.stems[-1]}.csv")
            member.size = len(text)
            archive.addfile(member, io.BytesIO(text))
    return zipped.getvalue(), tarred.getvalue()


def _archive(shared: dict[str, object], rng: np.random.Generator) -> str:
    zipped, tarred = shared["sts"]
    name, whole, pack = ("x.zip", zipped, bytes) if rng.random() < 0.5 else ("x.tar.gz", tarred, gzip.compress)
    benchmark = BENCHMARKS["2013" if name == "x.zip" else "stsb"]
    try:
        members = read_members(pack(damaged(whole, rng)), name)
        rows = graded_rows(benchmark.sets[0], members, name)
    except ParagramError as error:
        return (
            "archive refused" if str(error).isprintable() else f"wrong: a message that cannot be shown\n{str(error)!r}"
        )
    same = rows == graded_rows(benchmark.sets[0], read_members(pack(whole), name), name)
    return "archive unharmed" if same else "archive with other content"
