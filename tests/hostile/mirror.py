"""A server of small corpora in OPUS's layout, slow enough for a download to be killed."""

from __future__ import annotations

import os
import time
from pathlib import Path

from support.data import make_pairs
from support.http_server import Answer, opus_zip, serving

_VERSIONS = {"OpenSubtitles": "v2018", "Tanzil": "v1", "GlobalVoices": "v2018q4"}
_ADDRESS = "address"


def serve(folder: Path, rows: int) -> None:
    """Serve until the process that started this one has ended; the address stands in a file of the folder."""
    parent = os.getppid()
    with serving() as server:
        for seed, (corpus, version) in enumerate(_VERSIONS.items()):
            path = f"/OPUS-{corpus}/{version}/moses/en-tr.txt.zip"
            server.files[path] = archive = opus_zip(corpus, "en", "tr", make_pairs(rows, seed))
            server.always[path] = Answer(pause=0.01, piece=len(archive) // 20)
        (folder / "unfinished").write_text(server.url)
        (folder / "unfinished").rename(folder / _ADDRESS)
        while os.getppid() == parent:
            time.sleep(0.2)


def address(folder: Path) -> str:
    """Of the server; nothing if it does not run yet."""
    path = folder / _ADDRESS
    return path.read_text() if path.exists() else ""
