"""The notebook of the docs runs from top to bottom in an empty folder, and its results are good."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

NOTEBOOK = Path(__file__).parents[1] / "docs" / "notebooks" / "from_tsv_to_search.ipynb"


def printed(notebook: Any) -> list[str]:
    """What each cell of code wrote to standard output."""
    outputs = [cell.outputs for cell in notebook.cells if cell.cell_type == "code"]
    return ["".join(part.text for part in each if part.get("name") == "stdout") for each in outputs]


@pytest.mark.slow
def test_the_notebook_runs(tmp_path, monkeypatch):
    client = pytest.importorskip("nbclient")
    pytest.importorskip("ipykernel")
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    notebook = pytest.importorskip("nbformat").read(NOTEBOOK, as_version=4)
    shown = printed(notebook)
    resources = {"metadata": {"path": str(tmp_path)}}
    client.NotebookClient(
        notebook, timeout=300, kernel_name="python3", resources=resources
    ).execute()
    # the text and the pair store are the same on any machine
    assert printed(notebook)[1:3] == shown[1:3]
    text = "\n".join(printed(notebook))
    untrained, trained = map(
        float, re.search(r"untrained: ([\d.]+) %, trained: ([\d.]+) %", text).groups()
    )
    assert untrained < 10 and trained > 95
    mined, right = map(int, re.search(r"(\d+) pairs mined, (\d+) of them", text).groups())
    assert 90 < right <= mined < right + 10 and "libro" in printed(notebook)[-1]
