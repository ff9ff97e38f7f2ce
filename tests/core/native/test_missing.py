"""The message when compiled kernels are missing, or not used."""

import logging
import sys
from types import ModuleType

import pytest

from st_paragram.core import native


@pytest.fixture(autouse=True)
def asked_anew(monkeypatch):
    monkeypatch.delenv(native.SWITCH, raising=False)
    monkeypatch.setattr(native, "kernels", native.kernels.__wrapped__)


def test_one_warning_names_reason_and_remedy(monkeypatch, caplog):
    monkeypatch.setitem(sys.modules, "st_paragram.core.native._kernels", None)
    with caplog.at_level(logging.WARNING):
        assert native.kernels() is None
    (record,) = caplog.records
    assert (
        "kernels are missing: they were not built when st_paragram was installed; "
        in record.message
    )
    assert "pip install --force-reinstall" in record.message
    assert (
        native.obstacle()
        == "the compiled kernels are missing: they were not built when st_paragram was installed"
    )


def test_kernels_of_another_version_are_not_used(monkeypatch):
    monkeypatch.setattr(native.importlib, "import_module", ModuleType)
    assert (
        f"unusable: built from a different version (interface None, not {native.INTERFACE})"
        in native.obstacle()
    )
