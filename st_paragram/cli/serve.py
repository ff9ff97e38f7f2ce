"""`st-paragram serve`: serve embeddings, scores, rankings and searches over HTTP."""

from __future__ import annotations

import argparse
import os
import re
from pathlib import Path

from st_paragram.cli.options import MODEL
from st_paragram.core.extras import require
from st_paragram.core.model_directory.find import SHIPPED
from st_paragram.core.settings import add_setting_options, check_used, given
from st_paragram.errors import SettingsError, one_line, short

DESCRIPTION = (
    "Serve embeddings (for clients of OpenAI's API and of text-embeddings-inference), rankings (for"
    " clients of Cohere's and Jina's APIs), scores of pairs and, with an index, searches. The"
    " server listens only on this machine unless --host is given. Ctrl-C or SIGTERM stops it after"
    ' pending requests are answered. Needs: pip install "st_paragram[serve]".'
)
EPILOG = """\
  st-paragram serve p-sp-mini --port 8080
  st-paragram serve p-sp-mini --workers 4
  st-paragram serve p-sp-mini --cors https://app.example.org http://localhost:3000
  st-paragram serve p-sp-es --index lines.index --api-key-file key.txt --host 0.0.0.0

The key may also be in the environment variable ST_PARAGRAM_API_KEY. The server uses plain HTTP: put
a TLS proxy in front of it if other machines can reach it.
"""

_ORIGIN = re.compile(r"\*|[a-z][a-z0-9+.-]*://[^/\s*]+")


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    from st_paragram.tools.serving.schemas import Job

    parser.add_argument(
        "model", nargs="?", default=SHIPPED, metavar="MODEL", help=f"{MODEL} (default: %(default)s)"
    )
    parser.add_argument(
        "--api-key-file", type=Path, metavar="FILE", help="file with the key that clients must send"
    )
    parser.add_argument(
        "--cors",
        nargs="+",
        default=[],
        metavar="ORIGIN",
        help="origins of web pages that may use the server, such as https://app.example.org; '*':"
        " all pages",
    )
    add_setting_options(parser, Job)


def run(arguments: argparse.Namespace) -> int:
    """Serve until the process is stopped."""
    from st_paragram.tools.serving.schemas import Job

    origins = tuple(origin.lower().rstrip("/") for origin in arguments.cors)
    for origin in origins:
        if not _ORIGIN.fullmatch(origin):
            raise SettingsError(
                f"{short(origin)} is not an origin; give one such as https://app.example.org, or"
                " '*'"
            )
    key = _key(arguments.api_key_file)
    values = given(arguments, Job)
    job = Job(model=arguments.model, origins=origins, key=key, **values)
    check_used(job, values)
    for package in ("httptools", "orjson", "prometheus_client", "starlette", "uvicorn"):
        require(package, "serve", "the server")

    from st_paragram.tools.serving.server import serve

    serve(job)
    return 0


def _key(path: Path | None) -> str | None:
    """Return the key in a file, or in the environment variable; None if there is none."""
    if path is None:
        return os.environ.get("ST_PARAGRAM_API_KEY") or None
    try:
        key = path.read_text(encoding="utf-8").split("\n")[0].strip()
    except (OSError, UnicodeDecodeError) as error:
        raise SettingsError(
            f"{path}: cannot be read ({one_line(error, about=path)}); name a text file"
        ) from error
    if not key:
        raise SettingsError(f"{path}: its first line is empty; write the key there")
    return key
