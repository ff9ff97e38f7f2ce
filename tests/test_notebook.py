"""The notebook of the docs runs from top to bottom in an empty folder, and its results are good."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

NOTEBOOK = Path(__file__).parents[1] / "docs" / "notebooks" / "from_tsv_to_search.ipynb"


def read() -> Any:
    return pytest.importorskip("nbformat").read(NOTEBOOK, as_version=4)


def printed(notebook: Any) -> list[str]:
    """What each cell of code wrote to standard output."""
    cells = (cell for cell in notebook.cells if cell.cell_type == "code")
    return [
        "".join(part.text for part in cell.outputs if part.output_type == "stream" and part.name == "stdout")
        for cell in cells
    ]


def numbers(text: str, pattern: str) -> list[float]:
    """The groups of the one place that the pattern fits."""
    (found,) = re.findall(pattern, text)
    return [float(number) for number in found]


def check(outputs: list[str]) -> None:
    """The results that the notebook is about."""
    text = "\n".join(outputs)
    untrained, trained = numbers(text, r"untrained: ([\d.]+) %, trained: ([\d.]+) %")
    assert untrained < 10
    assert trained > 95
    mined, right = numbers(text, r"(\d+) pairs mined, (\d+) of them")
    assert right > 90
    assert mined < right + 10
    assert "stored             7,996" in text
    assert "libro" in outputs[-1]


def test_the_outputs_in_the_notebook_are_text_of_a_whole_run():
    notebook = read()
    pytest.importorskip("nbformat").validate(notebook)
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert [cell.execution_count for cell in code] == list(range(1, len(code) + 1))
    assert {part.output_type for cell in code for part in cell.outputs} == {"stream"}
    check(printed(notebook))


@pytest.mark.slow
def test_the_notebook_runs(tmp_path, monkeypatch):
    client = pytest.importorskip("nbclient")
    pytest.importorskip("ipykernel")
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    notebook, shown = read(), printed(read())
    resources = {"metadata": {"path": str(tmp_path)}}
    client.NotebookClient(notebook, timeout=300, kernel_name="python3", resources=resources).execute()
    check(printed(notebook))
    assert [bool(text) for text in printed(notebook)] == [bool(text) for text in shown]
    assert printed(notebook)[1:3] == shown[1:3]  # the text and the pair store are the same on any machine
