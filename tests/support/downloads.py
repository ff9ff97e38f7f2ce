"""What tests of downloads share: one archive on a server of tests, and how to fetch it."""

from __future__ import annotations

import hashlib

from st_paragram.tools.corpora.fetching.corpus_file import CorpusFile
from st_paragram.tools.corpora.fetching.download import download
from st_paragram.tools.corpora.fetching.transfer import TransferSettings
from st_paragram.tools.corpora.resolve import corpora_for
from support.http_server import opus_zip

FAST = TransferSettings(timeout=5, tries=3, first_wait=0.001, longest_wait=0.05, least_rate=0, overlap=100)
PATH = "/OPUS-Tanzil/v1/moses/en-es.txt.zip"
NAME = "Tanzil-v1.en-es.txt.zip"


def rows(count, seed=0):
    """Text that does not pack well, so that archives have a size worth cutting."""
    return [tuple(hashlib.sha256(f"{seed} {i} {side}".encode()).hexdigest() for side in "ab") for i in range(count)]


def archive(count=300, seed=0):
    """The archive that is fetched."""
    return opus_zip("Tanzil", "en", "es", rows(count, seed))


def wanted(server, **known):
    """What to fetch; `known` of it besides, such as its size."""
    file = corpora_for(("en", "es"), ["Tanzil"], mirror=server.url)[0]
    return CorpusFile(**{**vars(file), **known})


def fetch(server, folder, settings=FAST, **known):
    """Fetch it."""
    return download([wanted(server, **known)], folder, settings=settings)[0]


def names(folder):
    """The files of a folder."""
    return sorted(path.name for path in folder.iterdir())
