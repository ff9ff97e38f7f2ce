"""Gradio, without what it would do of itself: statistics, histories, links that the whole world can open."""

from __future__ import annotations

import os
from types import ModuleType

from st_paragram.core.extras import require

#: What is set before Gradio is imported; it reads some of these only then.
_ENVIRONMENT = {
    "GRADIO_ANALYTICS_ENABLED": "False",
    "GRADIO_RUN_HISTORY": "False",
    "GRADIO_MCP_SERVER": "False",
    "GRADIO_SHARE": "False",
    "HF_HUB_DISABLE_TELEMETRY": "1",
}


def gradio() -> ModuleType:
    """The package gradio.

    Raises:
        MissingExtraError: it is not installed.
    """
    os.environ.update(_ENVIRONMENT)
    return require("gradio", "demo", "the demo page")
