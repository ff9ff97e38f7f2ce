"""The page is built with every kind of model, and served by this machine alone."""

from __future__ import annotations

import os
import re
import socket
import urllib.request
from pathlib import Path

import pytest

pytest.importorskip("gradio")

import torch
from support.generative import new_generator

from st_paragram.errors import ModelDirectoryError, SettingsError
from st_paragram.families.bgt.sentence_transformers_encoder import GenerativeEncoder
from st_paragram.learning.models import directory
from st_paragram.tools.demo_page.models import Models
from st_paragram.tools.demo_page.server import _picked, build_page, served
from st_paragram.tools.demo_page.tabs import Page
from st_paragram.tools.demo_page.texts import LIST_BYTES, read_upload

MINI = "p-sp-mini (average of pieces)"


@pytest.fixture(scope="module")
def bgt(tmp_path_factory, vocabulary):
    torch.manual_seed(5)
    generator = new_generator(vocabulary, "bgt")
    model = GenerativeEncoder.of(generator.semantic.pipeline, ("en", "xx"), vocabulary, generator)
    return str(directory.save(model, tmp_path_factory.mktemp("page") / "bgt"))


def components(blocks):
    return {block["props"].get("elem_id"): block for block in blocks.get_config_file()["components"]}


def test_every_field_has_a_label_and_no_endpoint_is_public(bgt):
    blocks = build_page(Models(["p-sp-mini", bgt]))
    config = blocks.get_config_file()
    fields = [one for one in config["components"] if one["type"] in ("textbox", "dropdown", "radio")]
    assert len(fields) == 8
    assert all(one["props"]["label"] and one["props"].get("show_label") is not False for one in fields)
    assert {one["api_visibility"] for one in config["dependencies"]} == {"private"}
    assert components(blocks)["model"]["props"]["value"] == MINI


def test_picking_a_model_shows_what_it_is_or_says_why_not(bgt):
    models = Models(["p-sp-mini", bgt])
    page = Page(pytest.importorskip("gradio"), models, None)
    assert "components" in _picked(page, models.labels[1])
    assert 'role="alert"' in _picked(page, "none of these")


def test_the_page_is_served_with_headers_and_leaves_nothing_behind(monkeypatch):
    monkeypatch.setenv("GRADIO_TEMP_DIR", "before")
    with served(["p-sp-mini"]) as address:
        uploads = Path(os.environ["GRADIO_TEMP_DIR"])
        assert address.startswith("http://127.0.0.1:") and uploads.is_dir()
        with urllib.request.urlopen(address) as answer:
            page, policy = answer.read().decode(), answer.headers["content-security-policy"]
        assert "default-src 'self'" in policy and "http" not in policy
        loaded = re.findall(r"<(?:script|link|img|iframe)[^>]*?(?:src|href)=[\"'](https?:)?//", page)
        assert not loaded and "fonts.googleapis" not in page
        with urllib.request.urlopen(f"{address}theme.css") as answer:
            assert not re.search(r"(@import|url\()\s*[\"']?https?:", answer.read().decode())
        taken = pytest.raises(SettingsError, match=r"\(Address already in use\); choose another --port")
        with taken, served(["p-sp-mini"], port=_port(address)):
            pass
    assert os.environ["GRADIO_TEMP_DIR"] == "before" and not uploads.exists()
    with pytest.raises(OSError):
        socket.create_connection(("127.0.0.1", _port(address)), timeout=2)


def test_an_upload_above_the_limit_is_refused_and_one_below_is_gone_when_it_is_read():
    import httpx

    with served(["p-sp-mini"]) as address:
        answer = httpx.post(f"{address}gradio_api/upload", files={"files": ("list.txt", b"a" * (LIST_BYTES + 1))})
        assert answer.status_code == 413
        answer = httpx.post(f"{address}gradio_api/upload", files={"files": ("list.txt", b"one\ntwo")})
        (path,) = answer.json()
        assert read_upload(path) == "one\ntwo" and not Path(path).exists()


def test_a_missing_model_is_told_before_the_page_is_built():
    with pytest.raises(ModelDirectoryError, match="no model 'nobody'"), served(["nobody"]):
        pass


def _port(address):
    return int(address.rstrip("/").rpartition(":")[2])
