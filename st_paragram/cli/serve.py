"""`st-paragram serve`: embeddings, scores and searches over HTTP."""

from __future__ import annotations

import argparse
import os
from pathlib import Path

from st_paragram.core.find import SHIPPED, find
from st_paragram.errors import SettingsError
from st_paragram.settings import add_setting_options, given

DESCRIPTION = (
    "Answer requests for embeddings (in the form of OpenAI's API, so that its clients work), for scores of pairs and, "
    "with an index, for searches. The server listens on this machine alone unless --host says otherwise. Ctrl-C or "
    'SIGTERM ends it when the requests under way are answered. Needs: pip install "st_paragram[serve]".'
)
EPILOG = """\
  st-paragram serve p-sp-mini --port 8080
  st-paragram serve p-sp-es --index lines.index --api-key-file key.txt --host 0.0.0.0

A key can also stand in the environment variable ST_PARAGRAM_API_KEY. The server speaks HTTP: put a proxy with TLS
before it where others can reach it.
"""

KEY_VARIABLE = "ST_PARAGRAM_API_KEY"


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    from st_paragram.serving.settings import ServingSettings

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
        help="address to listen at; the default is for this machine only (default: %(default)s)",
    )
    add("--port", type=int, default=8080, help="port to listen at; 0 takes a free one (default: %(default)s)")
    add("--name", metavar="NAME", help="what requests call the model (default: the last part of MODEL)")
    add("--index", type=Path, metavar="FOLDER", help="an index of st-paragram index, built with this model")
    add("--api-key-file", type=Path, metavar="FILE", help="a file with a key that clients must send")
    add_setting_options(parser, ServingSettings)


def run(arguments: argparse.Namespace) -> int:
    """Serve until the process is stopped.

    Raises:
        ParagramError: model, index, settings, host or port are refused, or a package is missing.
    """
    from st_paragram.serving.packages import check_packages
    from st_paragram.serving.settings import ServingSettings

    settings = ServingSettings(**given(arguments, ServingSettings))
    if not 0 <= arguments.port <= 65_535:
        raise SettingsError(f"port is {arguments.port}; it must be from 0 to 65535")
    check_packages()
    find(arguments.model)

    from st_paragram.serving.run import listen, read_key, serve
    from st_paragram.serving.served_model import ServedModel

    key = read_key(arguments.api_key_file) if arguments.api_key_file else os.environ.get(KEY_VARIABLE) or None
    listening = listen(arguments.host, arguments.port)
    served = ServedModel(arguments.model, arguments.name, arguments.index)
    host, port = listening.getsockname()[:2]
    where = f"[{host}]" if ":" in host else host
    answers = f"{served.name} ({served.dimension} components) answers at http://{where}:{port} until Ctrl-C."
    serve(listening, served, settings, key, ready=lambda: print(answers, flush=True))
    return 0
