"""`st-paragram demo`: a web page that shows what a model does."""

from __future__ import annotations

import argparse

from st_paragram.cli.options import MODEL
from st_paragram.core.model_directory.find import SHIPPED
from st_paragram.errors import SettingsError

DESCRIPTION = (
    "Serve a web page that shows what models do: the cosine of two sentences and what each token"
    " contributes to it, the nearest sentences in a list, and the alignment of two short texts. All"
    ' work is done on this machine. Press Ctrl-C to stop. Needs: pip install "st_paragram[demo]".'
)
EPILOG = """\
  st-paragram demo
  st-paragram demo p-sp-mini p-sp-es bgt-es --port 8080 --open
"""


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    parser.add_argument(
        "models",
        nargs="*",
        metavar="MODEL",
        help=f"{MODEL}; several can be offered (default: {SHIPPED})",
    )
    parser.add_argument(
        "--host",
        default="127.0.0.1",
        help="address to listen on (default: %(default)s, this machine only)",
    )
    parser.add_argument(
        "--port", type=int, help="port to listen on (default: the first free port from 7860 up)"
    )
    parser.add_argument("--open", action="store_true", help="open the page in a browser")


def run(arguments: argparse.Namespace) -> int:
    """Serve the page until Ctrl-C."""
    if arguments.port is not None and not 1 <= arguments.port <= 65_535:
        raise SettingsError(f"port is {arguments.port}; it must be from 1 to 65535")
    from st_paragram.tools.demo import launch

    page = launch(arguments.models or [SHIPPED], arguments.host, arguments.port, arguments.open)
    print(f"The page is at {page.local_url} until you press Ctrl-C.", flush=True)
    if arguments.host not in ("127.0.0.1", "localhost", "::1"):
        print(f"Other machines can reach it at {arguments.host}; it has no password.", flush=True)
    page.block_thread()
    return 0
