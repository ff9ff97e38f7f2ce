"""`st-paragram demo`: what it is given reaches the page, and what can be refused is refused at once."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from st_paragram.cli.main import main
from st_paragram.tools import demo

CASES = [
    ("", (["p-sp-mini"], "127.0.0.1", None, False)),
    ("p-sp-mini a --host 0.0.0.0 --port 8080 --open", (["p-sp-mini", "a"], "0.0.0.0", 8080, True)),
]


@pytest.fixture
def calls(monkeypatch):
    """Arguments of pages that would have been served."""
    calls = []
    page = SimpleNamespace(local_url="http://127.0.0.1:7860/", block_thread=lambda: None)
    monkeypatch.setattr(demo, "launch", lambda *arguments: calls.append(arguments) or page)
    return calls


@pytest.mark.parametrize(("options", "expected"), CASES)
def test_options_reach_the_page(calls, capsys, options, expected):
    assert main(["demo", *options.split()]) == 0
    assert calls == [expected]
    shown = capsys.readouterr().out
    assert shown.startswith("The page is at http://127.0.0.1:7860/ until you press Ctrl-C.\n")
    assert ("Others can reach it" in shown) == ("0.0.0.0" in options)


@pytest.mark.parametrize(
    ("options", "message"), [("--port 0", "port is 0; it must be from 1 to 65535"), ("nobody", "no model 'nobody'")]
)
def test_what_is_wrong_is_refused_in_one_line(capsys, options, message):
    assert main(["demo", *options.split()]) == 1
    error = capsys.readouterr().err
    assert error.startswith("st-paragram demo: ") and message in error and error.count("\n") == 1
