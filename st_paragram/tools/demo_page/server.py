"""The page as a server on this machine."""

from __future__ import annotations

import os
import socket
import tempfile
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from st_paragram.errors import SettingsError
from st_paragram.tools.demo_page.appearance import STYLE, theme
from st_paragram.tools.demo_page.gradio_package import gradio
from st_paragram.tools.demo_page.limits import LIST_BYTES
from st_paragram.tools.demo_page.models import Models
from st_paragram.tools.demo_page.page import build_page
from st_paragram.tools.demo_page.security_headers import SecurityHeaders

LOOPBACK = "127.0.0.1"
_UPLOADS = "GRADIO_TEMP_DIR"


@contextmanager
def served(names: Sequence[str], host: str = LOOPBACK, port: int | None = None, show: bool = False) -> Iterator[str]:
    """Serve the page while the context lasts; gives its address.

    Args:
        names: of models: paths, names or hub ids.
        host: the address to listen at; the default is reached from this machine alone.
        port: the port to listen at; if not given, the first free one from 7860 on.
        show: open the page in a browser.

    Raises:
        MissingExtraError: Gradio is not installed.
        ModelDirectoryError: a model is not there, or the first one cannot be read.
        SettingsError: the host or the port cannot be listened at.
    """
    gradio()  # its absence is told before a model is read
    models = Models(names)
    with _own_uploads():
        package, blocks = gradio(), build_page(models)
        try:
            _, local, _ = blocks.launch(
                server_name=host,
                server_port=port,
                inbrowser=show,
                prevent_thread_lock=True,
                quiet=True,
                share=False,
                ssr_mode=False,
                show_error=False,
                footer_links=[],
                enable_monitoring=False,
                max_file_size=LIST_BYTES,
                theme=theme(package),
                css=STYLE,
                app_kwargs={"middleware": [_middleware()]},
            )
        except (OSError, ValueError) as error:
            where = f"{host}, port {port}" if port else host
            seen = f"the page cannot listen at {where}{_reason(host, port)}"
            raise SettingsError(f"{seen}; choose another --port or --host") from error
        try:
            yield str(local)
        finally:
            blocks.close(verbose=False)


def _reason(host: str, port: int | None) -> str:
    """Why a place cannot be listened at, in brackets; Gradio says only that it cannot."""
    with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET) as tried:
        try:
            tried.bind((host, port or 0))
        except (OSError, OverflowError) as error:
            return f" ({getattr(error, 'strerror', None) or error})"
    return ""


def serve_until_stopped() -> None:
    """Wait until the process is interrupted."""
    try:
        threading.Event().wait()
    except KeyboardInterrupt:
        return


def _middleware() -> object:
    from starlette.middleware import Middleware

    return Middleware(SecurityHeaders)


@contextmanager
def _own_uploads() -> Iterator[None]:
    """Uploads go into a folder that is removed at the end."""
    before = os.environ.get(_UPLOADS)
    with tempfile.TemporaryDirectory(prefix="st-paragram-demo-") as folder:
        os.environ[_UPLOADS] = folder
        try:
            yield
        finally:
            os.environ.pop(_UPLOADS)
            if before is not None:
                os.environ[_UPLOADS] = before
