"""`st-paragram serve`: embeddings, scores, rankings and searches over HTTP."""

from __future__ import annotations

import argparse
import os
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from st_paragram.core.encoding.find import SHIPPED, find
from st_paragram.core.extras import require
from st_paragram.core.files import folder_for_file
from st_paragram.core.settings import add_setting_options, given
from st_paragram.errors import SettingsError, one_line

if TYPE_CHECKING:
    from st_paragram.tools.serving.served_model import ServedModel
    from st_paragram.tools.serving.workers import Started

DESCRIPTION = (
    "Answer requests for embeddings (in the form of OpenAI's API and of text-embeddings-inference, so that their "
    "clients work), for rankings (in the form of Cohere's and Jina's APIs), for scores of pairs and, with an index, "
    "for searches. The server listens only on this machine unless --host is given. Ctrl-C or SIGTERM stops it after "
    'pending requests are answered. Needs: pip install "st_paragram[serve]".'
)
EPILOG = """\
  st-paragram serve p-sp-mini --port 8080
  st-paragram serve p-sp-mini --workers 4
  st-paragram serve p-sp-mini --cors https://app.example.org http://localhost:3000
  st-paragram serve p-sp-es --index lines.index --api-key-file key.txt --host 0.0.0.0

The key may also be in the environment variable ST_PARAGRAM_API_KEY. The server speaks HTTP: put a TLS proxy in front of
it if others can reach it.
"""

KEY_VARIABLE = "ST_PARAGRAM_API_KEY"
_PACKAGES = ("uvicorn", "httptools", "orjson", "prometheus_client")


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    from st_paragram.tools.serving.settings import ServingSettings

    add = parser.add_argument
    add(
        "model",
        nargs="?",
        default=SHIPPED,
        metavar="MODEL",
        help="model directory, name or hub id (default: %(default)s)",
    )
    add(
        "--host",
        default="127.0.0.1",
        help="address to listen on (default: %(default)s, this machine only)",
    )
    add("--port", type=int, default=8080, help="port to listen on; 0: any free port (default: %(default)s)")
    add("--workers", type=int, default=1, metavar="N", help="server processes (default: %(default)s)")
    add("--name", metavar="NAME", help="model name in requests (default: the last part of MODEL)")
    add("--index", type=Path, metavar="FOLDER", help="index from st-paragram index, built with this model")
    add(
        "--index-writable",
        action="store_true",
        help="let clients that send the key add and delete sentences of the index",
    )
    add("--api-key-file", type=Path, metavar="FILE", help="a file with a key that clients must send")
    add(
        "--cors",
        nargs="+",
        metavar="ORIGIN",
        help="origins of web pages that may use the server from a browser, such as https://app.example.org; "
        "'*': all pages",
    )
    add_setting_options(parser, ServingSettings)


def run(arguments: argparse.Namespace) -> int:
    """Serve until the process is stopped.

    Raises:
        ParagramError: model, index, settings, host or port are refused, or a package is missing.
    """
    from st_paragram.tools.serving.settings import Job, ServingSettings

    settings = ServingSettings(**given(arguments, ServingSettings))
    if not 0 <= arguments.port <= 65_535:
        raise SettingsError(f"port is {arguments.port}; it must be from 0 to 65535")
    if arguments.workers < 1:
        raise SettingsError(f"workers is {arguments.workers}; it must be at least 1")
    for package in _PACKAGES:  # before anything is imported
        if find_spec(package) is None:
            require(package, "serve")
    find(arguments.model)

    from st_paragram.tools.serving.listening import address, listen_together

    key = _read_key(arguments.api_key_file) if arguments.api_key_file else os.environ.get(KEY_VARIABLE) or None
    origins = _origins(arguments.cors or [], key)
    job = Job(arguments.model, arguments.name, arguments.index, settings, key, origins, arguments.index_writable)
    sockets = listen_together(arguments.host, arguments.port, arguments.workers)
    where = address(sockets[0])

    def announce(started: ServedModel | Started) -> None:
        about = f"{started.name} ({started.dimension} components)"
        print(f"{about} answers at {where} until Ctrl-C.", flush=True)

    if arguments.workers > 1:
        from st_paragram.tools.serving.workers import Workers

        Workers(job, sockets).serve(announce)
    else:
        from st_paragram.tools.serving.run import serve

        serve(job, sockets[0], announce)
    return 0


def _origins(given: list[str], key: str | None) -> tuple[str, ...]:
    """The origins whose pages may use the server; a warning says what all of them may do."""
    if not given:
        return ()
    from st_paragram.tools.options.common import say
    from st_paragram.tools.serving.cors import ANY, parse_origin

    origins = tuple(dict.fromkeys(map(parse_origin, given)))
    if ANY in origins:
        may = "that knows the key can use this server" if key else "that is open in your browser can use this server"
        say(f"--cors '*': any web page {may}; name the origins of your pages in place of '*'")
    return origins


def _read_key(path: Path) -> str:
    """The key in the first line of a file.

    Raises:
        SettingsError: the file cannot be read, or has no key.
    """
    if wrong := folder_for_file(path):
        raise SettingsError(f"{wrong}; give a text file with the key")
    try:
        key = path.read_text(encoding="utf-8").split("\n")[0].strip()
    except (OSError, UnicodeDecodeError) as error:
        reason = one_line(error, about=path)
        raise SettingsError(f"{path}: cannot be read ({reason}); give a text file with the key") from error
    if not key:
        raise SettingsError(f"{path}: its first line is empty; write the key into it")
    return key
