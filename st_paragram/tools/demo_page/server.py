"""The page, a picker of models above four tabs, and its server on this machine."""

from __future__ import annotations

import inspect
import os
import socket
import tempfile
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from types import ModuleType
from typing import Any

from st_paragram.core.encoding.models import TextEncoder
from st_paragram.core.extras import require
from st_paragram.errors import SettingsError
from st_paragram.tools.demo_page import tabs
from st_paragram.tools.demo_page.appearance import STYLE, paragraph, theme
from st_paragram.tools.demo_page.comparison import languages_of
from st_paragram.tools.demo_page.models import Models
from st_paragram.tools.demo_page.texts import LIST_BYTES

LOOPBACK = "127.0.0.1"
_UPLOADS = "GRADIO_TEMP_DIR"
#: What is set before Gradio is imported; it reads some of these only then.
_ENVIRONMENT = {
    "GRADIO_ANALYTICS_ENABLED": "False",
    "GRADIO_RUN_HISTORY": "False",
    "GRADIO_MCP_SERVER": "False",
    "GRADIO_SHARE": "False",
    "HF_HUB_DISABLE_TELEMETRY": "1",
}
#: Gradio's own scripts are written into its page, and make functions of templates.
_POLICY = (
    "default-src 'self'; script-src 'self' 'unsafe-inline' 'unsafe-eval' blob:; style-src 'self' 'unsafe-inline'; "
    "img-src 'self' data: blob:; font-src 'self' data:; connect-src 'self'; worker-src 'self' blob:; "
    "object-src 'none'; base-uri 'self'; form-action 'self'"
)
HEADERS = {
    "content-security-policy": _POLICY,
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
}
TITLE = "Sentence embeddings"
_INTRODUCTION = (
    "A model turns every sentence into a vector, and the cosine of two vectors says how alike the sentences are in "
    "meaning: 1 for the same, about 0 for sentences that have nothing to do with each other. All work is done on the "
    "machine that this page comes from."
)


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
    package = gradio()
    from starlette.middleware import Middleware

    models = Models(names)
    with _own_uploads():
        blocks = build_page(models)
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
                app_kwargs={"middleware": [Middleware(_SecurityHeaders)]},
            )
        except (OSError, ValueError) as error:
            where = f"{host}, port {port}" if port else host
            seen = f"the page cannot listen on {where}{_reason(host, port)}"
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
        except (OSError, OverflowError, ValueError) as error:
            return f" ({getattr(error, 'strerror', None) or error})"
    return ""


def serve_until_stopped() -> None:
    """Wait until the process is interrupted."""
    try:
        threading.Event().wait()
    except KeyboardInterrupt:
        return


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


def gradio() -> ModuleType:
    """The package gradio.

    Raises:
        MissingExtraError: it is not installed.
    """
    os.environ.update(_ENVIRONMENT)
    return require("gradio", "demo", "the demo page")


def build_page(models: Models) -> Any:  # noqa: ANN401 - Gradio's Blocks
    """The page as Gradio's `Blocks`; the first model is read at once.

    Raises:
        MissingExtraError: Gradio is not installed.
        ModelDirectoryError: the first model cannot be read.
    """
    package = gradio()
    label = models.labels[0]
    with package.Blocks(title=TITLE, analytics_enabled=False, delete_cache=(60, 60)) as blocks:
        package.Markdown(f"# {TITLE}\n\n{_INTRODUCTION}")
        picker = package.Dropdown(models.labels, value=label, label="Model", filterable=False, elem_id="model")
        note = package.HTML(_note(models.model(label)), elem_id="model-note", elem_classes="sp-result")
        page = tabs.Page(package, models, picker)
        with package.Tabs(**_wrapped(package.Tabs)):
            tabs.build(page)
        page.event(picker.change, lambda picked: _picked(page, picked), picker, [note])
    blocks.queue(api_open=False, max_size=32)
    return blocks


def _wrapped(tabs: type) -> dict[str, str]:
    """On a narrow screen tabs go on in a second row, where this Gradio can do that, and not into a menu."""
    return {"overflow_behavior": "wrap"} if "overflow_behavior" in inspect.signature(tabs).parameters else {}


def _picked(page: tabs.Page, label: str) -> str:
    """The note when a model is picked."""
    try:
        return _note(page.models.model(label))
    except Exception as error:
        return tabs.as_message(error)


def _note(model: TextEncoder) -> str:
    """What should be known of a model: its size, and how it reads texts."""
    size = f"Embeddings of {model.get_embedding_dimension():,} components."
    if languages := languages_of(model):
        size += (
            " The model has a vocabulary of each of its languages: the first field of a tab is read as "
            f"{languages[0]}, the second as {languages[1]}."
        )
    return paragraph(size)


class _SecurityHeaders:
    """An ASGI application that adds `HEADERS` to every answer of another: browsers fetch nothing from elsewhere."""

    def __init__(self, app: Any) -> None:  # noqa: ANN401 - starlette's
        self.app = app

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:  # noqa: ANN401 - starlette's
        from starlette.datastructures import MutableHeaders

        async def send_with_headers(message: Any) -> None:  # noqa: ANN401 - starlette's
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).update(HEADERS)
            await send(message)

        await self.app(scope, receive, send_with_headers)
