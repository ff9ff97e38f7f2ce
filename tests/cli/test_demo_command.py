"""`st-paragram demo`: what it is given reaches the page, and what can be refused is refused at once."""

from __future__ import annotations

from contextlib import contextmanager

import pytest

from st_paragram.cli.main import main
from st_paragram.tools.demo_page import server


@pytest.fixture
def calls(monkeypatch):
    """Pages that would have been served."""
    calls = []

    @contextmanager
    def served(*arguments):
        calls.append(arguments)
        yield "http://127.0.0.1:7860/"

    monkeypatch.setattr(server, "served", served)
    monkeypatch.setattr(server, "serve_until_stopped", lambda: None)
    return calls


def test_the_shipped_model_is_shown_on_this_machine_by_default(calls, capsys):
    assert main(["demo"]) == 0
    assert calls == [(["p-sp-mini"], "127.0.0.1", None, False)]
    assert capsys.readouterr().out == "The page is at http://127.0.0.1:7860/ until you press Ctrl-C.\n"


def test_models_host_and_port_can_be_named(calls, capsys):
    arguments = ["demo", "p-sp-mini", "p-sp-mini", "--host", "0.0.0.0", "--port", "8080", "--open"]
    assert main(arguments) == 0
    assert calls == [(["p-sp-mini", "p-sp-mini"], "0.0.0.0", 8080, True)]
    assert "Others can reach it at" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--port", "0"], "port is 0; it must be from 1 to 65535"),
        (["--port", "65536"], "port is 65536"),
        (["nobody"], "no model 'nobody'"),
    ],
)
def test_what_is_wrong_is_told_in_a_line(calls, capsys, arguments, said):
    assert main(["demo", *arguments]) == 1
    error = capsys.readouterr().err
    assert error.startswith("st-paragram demo: ") and said in error and error.count("\n") == 1
    assert not calls


def test_waiting_ends_with_an_interrupt(monkeypatch):
    def interrupted(self, timeout=None):
        raise KeyboardInterrupt

    monkeypatch.setattr("threading.Event.wait", interrupted)
    assert server.serve_until_stopped() is None
