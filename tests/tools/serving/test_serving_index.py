"""An index over HTTP: filters, fields of hits, sentences that are added and deleted, and several processes at once."""

from __future__ import annotations

import http.client
import json
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import numpy as np
import pytest

from st_paragram.cli.main import main
from st_paragram.core.files import output_lock
from st_paragram.errors import SettingsError
from st_paragram.tools.search.search_index import SearchIndex

for package in ("httptools", "orjson", "prometheus_client", "uvicorn"):
    pytest.importorskip(package)
import uvicorn  # noqa: E402

from st_paragram.tools.serving import served_index  # noqa: E402
from st_paragram.tools.serving.listening import listen  # noqa: E402
from st_paragram.tools.serving.run import build_app, configuration  # noqa: E402
from st_paragram.tools.serving.served_model import ServedModel  # noqa: E402
from st_paragram.tools.serving.settings import Job, ServingSettings  # noqa: E402

TEXTS = ["the cat sleeps", "where is the station?", "a dog barks", "the soup is cold"]
FIELDS = [{"lang": "en", "year": 2019}, {"lang": "en", "year": 2021}, {"lang": "es"}, {"year": 2024, "good": True}]
KEY = "sesame"
LIMITS = ServingSettings(max_texts=8, max_characters=60, max_body=5000)


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    folder = tmp_path_factory.mktemp("built") / "index"
    SearchIndex.build(TEXTS, folder, "p-sp-mini", metadata=FIELDS)
    return folder


@pytest.fixture
def folder(built, tmp_path):
    shutil.copytree(built, tmp_path / "index")
    return tmp_path / "index"


class Client:
    """Asks a server at a port of this machine."""

    def __init__(self, port, key=KEY):
        self.port, self.key = port, key

    def ask(self, path, **body):
        """Status and content; POST if there is something to send."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        headers = {"Content-Type": "application/json", "Authorization": f"Bearer {self.key}"}
        connection.request("POST" if body else "GET", path, json.dumps(body) if body else None, headers)
        answer = connection.getresponse()
        content = answer.read()
        connection.close()
        return answer.status, json.loads(content)

    def __call__(self, path, **body):
        status, content = self.ask(path, **body)
        assert status == 200, content
        return content

    def refused(self, path, status=400, **body):
        found, content = self.ask(path, **body)
        assert found == status, content
        assert set(content["error"]) == {"message", "type", "param", "code"} and "\n" not in content["error"]["message"]
        return content["error"]["message"]

    def found(self, query="a sentence", **body):
        (hits,) = self("/search", queries=[query], **body)["results"]
        return [hit["sentence"] for hit in hits]


@contextmanager
def running(folder, writable=True, settings=LIMITS):
    """A server in a thread of this process."""
    app = build_app(ServedModel("p-sp-mini", index=folder, writable=writable), settings, KEY)
    listening = listen("127.0.0.1", 0)
    server = uvicorn.Server(configuration(app, settings))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
    thread.start()
    try:
        yield Client(listening.getsockname()[1])
    finally:
        server.should_exit = True
        thread.join(30)
        assert not thread.is_alive()


@contextmanager
def started(folder, *options, workers=1):
    """A server as a command: the process, and a client of it."""
    command = [sys.executable, "-m", "st_paragram.cli.main", "serve", "p-sp-mini", "--port", "0"]
    command += ["--index", str(folder), "--index-writable", "--workers", str(workers), *options]
    (folder.parent / "key.txt").write_text(f"{KEY}\n")
    command += ["--api-key-file", str(folder.parent / "key.txt")]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        yield process, Client(int(re.search(r":(\d+) until", process.stdout.readline())[1]))
    finally:
        process.terminate()
        process.communicate(timeout=60)


def test_hits_have_fields_and_pass_filters(built):
    with running(built, writable=False) as client:
        (hits,) = client("/search", queries=["the cat sleeps"], k=1)["results"]
        assert hits == [{"score": 1.0, "line": 1, "sentence": TEXTS[0], "metadata": FIELDS[0]}]
        for where, expected in [
            ("lang=es", {2}),
            ("lang=en,es", {0, 1, 2}),
            (["lang=en", "year>=2020"], {1}),
            ({"lang": ["es", "en"], "year": 2019}, {0}),
            ({"good": True}, {3}),
            ("year<1999", set()),
            (None, {0, 1, 2, 3}),
        ]:
            assert set(client.found(where=where)) == {TEXTS[row] for row in expected}
        about = {"sentences": 4, "lines": 4, "fields": {"good": "boolean", "lang": "text", "year": "integer"}}
        assert client("/index") == about | {"changes": 0, "writable": False}


@pytest.mark.parametrize(
    ("where", "says"),
    [
        ("lang", "write FIELD=VALUE"),
        ("language=es", "no field language; did you mean lang?"),
        ("year=old", "year is integer, and 'old' is not"),
        (3, "where must be a filter such as lang=es"),
        (["lang=es"] * 33, "where must be a filter such as lang=es, a list of at most 32"),
        ({"lang": {"es": 1}}, "where must be a filter such as lang=es"),
    ],
)
def test_wrong_filters_are_refused(built, where, says):
    with running(built, writable=False) as client:
        assert says in client.refused("/search", queries=["a"], where=where)


def test_sentences_are_added_and_deleted(folder):
    with running(folder) as client:
        added = client("/index/add", sentences=["the bus is late", "a  dog barks", "!"], metadata={"lang": "xx"})
        assert added == {"added": 1, "tagged": 1, "known": 0, "left_out": 1, "sentences": 5}
        assert client.found("the bus is late", k=1) == ["the bus is late"]
        assert set(client.found(where="lang=xx")) == {"the bus is late", "a dog barks"}
        each = [{"lang": "fr"}, {"year": 1.5}]
        assert client("/index/add", sentences=["one more", "and another"], metadata=each)["added"] == 2
        (hits,) = client("/search", queries=["one more"], k=1)["results"]
        assert (hits[0]["line"], hits[0]["metadata"]) == (8, {"lang": "fr"})
        assert client("/index/delete", lines=[8, 99])["deleted"] == 1
        assert client("/index/delete", where="year>=2020") == {"deleted": 2, "sentences": 4}
        assert client("/index/delete", sentences=["the cat sleeps"])["deleted"] == 1
        assert set(client.found()) == {"the bus is late", "a dog barks", "and another"}
        assert client("/index")["changes"] == 5 and client("/health")["sentences"] == 3
    assert {hit.sentence for hit in SearchIndex(folder).search(["a"])[0]} == {
        "the bus is late",
        "a dog barks",
        "and another",
    }


@pytest.mark.parametrize(
    ("path", "body", "says"),
    [
        ("/index/add", {"sentences": []}, "sentences is empty"),
        ("/index/add", {"sentences": ["a"] * 9}, "9 texts; at most 8"),
        ("/index/add", {"sentences": ["ab" * 31]}, "62 characters; at most 60"),
        ("/index/add", {"sentences": ["?", "a"]}, "none of sentences has two letters or digits"),
        ("/index/add", {"sentences": ["ab"], "metadata": [{}, {}]}, "metadata has 2 objects for 1 sentences"),
        ("/index/add", {"sentences": ["ab"], "metadata": {"lang": ["x"]}}, "metadata must be an object of fields"),
        ("/index/add", {"sentences": ["ab"], "metadata": {"year": "x"}}, "field year is text here and integer in the"),
        ("/index/add", {"sentences": ["ab"], "metadata": {"a b": 1}}, "a name may not be empty or have spaces"),
        ("/index/add", {"sentences": ["ab"], "model": "x"}, "one model, p-sp-mini"),
        ("/index/delete", {"where": []}, "the filter is empty"),
        ("/index/delete", {"lines": [1], "where": "lang=en"}, "by exactly one of lines, sentences and where"),
        ("/index/delete", {"model": "p-sp-mini"}, "by exactly one of lines, sentences and where"),
        ("/index/delete", {"lines": [0]}, "lines[0] must be at least 1"),
        ("/index/delete", {"where": "none=1"}, "no field none"),
    ],
)
def test_wrong_changes_are_refused_and_change_nothing(folder, path, body, says):
    before = (folder / "index.json").read_bytes()
    with running(folder) as client:
        status, content = client.ask(path, **body)
        assert status in (400, 404) and says in content["error"]["message"]
        assert client.refused("/index/add", 413, sentences=["a" * 6000])
    assert (folder / "index.json").read_bytes() == before


def test_nobody_changes_an_index_that_is_not_writable_or_without_the_key(folder):
    with running(folder, writable=False) as client:
        assert "start it with --index-writable" in client.refused("/index/add", 403, sentences=["the bus"])
        assert "start it with --index-writable" in client.refused("/index/delete", 403, lines=[1])
    with running(folder) as client:
        client.key = "wrong"
        client.refused("/index/add", 401, sentences=["the bus"])
    assert len(SearchIndex(folder)) == 4


def test_a_writable_index_needs_a_key_and_a_place_that_can_be_written(folder, monkeypatch, capsys):
    monkeypatch.delenv("ST_PARAGRAM_API_KEY", raising=False)
    assert main(["serve", "--port", "0", "--index", str(folder), "--index-writable"]) == 1
    assert "--index-writable needs a key" in capsys.readouterr().err
    assert main(["serve", "--port", "0", "--index-writable"]) == 1
    assert "give --index" in capsys.readouterr().err
    with pytest.raises(SettingsError, match="needs a key"):
        Job("p-sp-mini", index=folder, writable=True)
    monkeypatch.setattr("os.access", lambda path, mode: False)
    with pytest.raises(SettingsError, match="index cannot be written to"):
        ServedModel("p-sp-mini", index=folder, writable=True)


def test_changes_of_many_clients_are_all_made(folder):
    """One after another, while others search; every search sees a whole index."""
    with running(folder) as client, ThreadPoolExecutor(8) as pool:
        adding = [pool.submit(client, "/index/add", sentences=[f"sentence number {i}"]) for i in range(12)]
        searching = [pool.submit(client.found, k=3) for _ in range(40)]
        assert all(each.result()["added"] == 1 for each in adding)
        assert all(len(each.result()) == 3 for each in searching)
    assert len(SearchIndex(folder)) == 16


def test_a_change_by_another_process_is_seen_by_the_next_search(folder):
    with running(folder) as client:
        assert "the bus is late" not in client.found()
        SearchIndex(folder).add(["the bus is late"])
        assert client.found("the bus is late", k=1) == ["the bus is late"]


def test_an_index_that_cannot_be_read_again_stays_in_use(folder, caplog):
    with running(folder) as client:
        (folder / "index.json").write_text("{}")
        assert len(client.found()) == 4
        assert "reading a changed index failed: MiningError" in caplog.text
        client.refused("/index/add", 500, sentences=["the bus is late"])


def test_a_change_waits_for_another_process_a_while(folder, monkeypatch):
    """The lock is held by this thread, the server changes the index in its own."""
    with running(folder) as client, ThreadPoolExecutor(1) as pool:
        with output_lock(folder):
            change = pool.submit(client, "/index/delete", lines=[1])
            time.sleep(0.3)
            assert not change.done()
        assert change.result()["deleted"] == 1
        monkeypatch.setattr(served_index, "_PATIENCE", 0.1)
        with output_lock(folder):
            assert "another process is changing the index" in client.refused("/index/delete", 503, lines=[2])
        assert client("/health")["sentences"] == 3


def test_the_event_loop_answers_while_the_index_is_changed(folder, monkeypatch):
    entered, leave = threading.Event(), threading.Event()

    def slow(self, *given):
        entered.set()
        assert leave.wait(30)
        return np.int64(0).item()

    monkeypatch.setattr(SearchIndex, "delete", slow)
    with running(folder) as client, ThreadPoolExecutor(1) as pool:
        change = pool.submit(client, "/index/delete", lines=[1])
        assert entered.wait(30)
        assert client("/health")["status"] == "ok" and len(client.found()) == 4
        leave.set()
        assert change.result()["deleted"] == 0


@pytest.mark.slow
def test_workers_see_the_changes_of_each_other(folder):
    """Each search is over a new connection, so that all workers answer some of them."""
    with started(folder, workers=2) as (_, client), ThreadPoolExecutor(4) as pool:
        texts = [f"sentence number {i}" for i in range(20)]
        for answer in pool.map(lambda text: client("/index/add", sentences=[text]), texts):
            assert answer["added"] == 1
        for _ in range(30):
            assert len(client.found(k=50)) == 24
        assert client("/index/delete", lines=list(range(1, 5)))["deleted"] == 4
        for _ in range(30):
            assert len(client.found(k=50)) == 20
    assert len(SearchIndex(folder)) == 20


@pytest.mark.slow
@pytest.mark.parametrize("milliseconds", [0, 3, 10, 30, 80])
def test_a_server_that_is_killed_leaves_a_whole_index(folder, milliseconds):
    """All that was answered is there; what was under way is there as a whole or not at all."""
    with started(folder) as (process, client):
        batches = [[f"batch {batch} has sentence {i}" for i in range(5)] for batch in range(40)]
        done = []
        stop = threading.Timer(0.2 + milliseconds / 1000, process.send_signal, (signal.SIGKILL,))
        stop.start()
        for number, batch in enumerate(batches):
            try:
                client("/index/add", sentences=batch)
            except (TimeoutError, OSError, http.client.HTTPException):
                break
            done.append(number)
        stop.join()
        process.wait(30)
    index = SearchIndex(folder)
    there = {hit.sentence for hit in index.search(["batch"], k=1000)[0]}
    for number, batch in enumerate(batches):
        assert len(there.intersection(batch)) == (5 if number in done else 0) or number == len(done)
    assert len(there.intersection(batches[len(done)])) in (0, 5)
    with started(folder) as (_, client):
        assert client("/index/add", sentences=["once more"])["added"] == 1
