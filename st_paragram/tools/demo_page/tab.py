"""What tabs need to be put on the page."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import ModuleType
from typing import Any

from st_paragram.tools.demo_page.answers import answering
from st_paragram.tools.demo_page.models import Models


@dataclass(frozen=True)
class Page:
    """The page that tabs are put on.

    Attributes:
        gradio: The package.
        models: That can be picked.
        picker: The field that names the model.
    """

    gradio: ModuleType
    models: Models
    picker: Any

    def text(self, label: str, value: str, lines: int = 2, **more: Any) -> Any:  # noqa: ANN401 - Gradio's
        """A field for text with its label."""
        return self.gradio.Textbox(label=label, value=value, lines=lines, min_width=260, **more)

    def button(self, label: str, elem_id: str) -> Any:  # noqa: ANN401 - Gradio's
        """The button that starts a tab's work."""
        return self.gradio.Button(label, variant="primary", elem_id=elem_id)

    def result(self, elem_id: str, answer: Callable[..., str], button: Any, fields: Sequence[Any]) -> Any:  # noqa: ANN401
        """Where a tab's answer appears, when its button is pressed.

        Args:
            elem_id: its id in HTML.
            answer: gives HTML of the picked model's label and what the fields hold.
            button: that is pressed.
            fields: in the order of the function's arguments.
        """
        place = self.gradio.HTML(elem_id=elem_id, elem_classes="sp-result")
        self.event(button.click, answering(answer), [self.picker, *fields], place)
        return place

    def event(self, on: Any, function: Callable[..., Any], inputs: Any, outputs: Any) -> Any:  # noqa: ANN401 - Gradio's
        """Call a function on an event: one at a time, by the page alone."""
        return on(
            function,
            inputs,
            outputs,
            concurrency_limit=1,
            concurrency_id="model",
            api_visibility="private",
            show_progress="minimal",
        )
