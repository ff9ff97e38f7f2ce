"""What web pages may do with the server, and the page that it shows to people."""

from __future__ import annotations

import json
import re
import shlex
from html import unescape
from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st

from st_paragram.cli.main import main
from st_paragram.errors import SettingsError
from st_paragram.tools.search.search_index import SearchIndex

for package in ("httptools", "orjson", "prometheus_client", "uvicorn"):
    pytest.importorskip(package)
testclient = pytest.importorskip("starlette.testclient")
cors_middleware = pytest.importorskip("starlette.middleware.cors")

from st_paragram.tools.serving.cors import METHODS, parse_origin  # noqa: E402
from st_paragram.tools.serving.run import build_app  # noqa: E402
from st_paragram.tools.serving.served_model import ServedModel  # noqa: E402
from st_paragram.tools.serving.settings import ServingSettings  # noqa: E402

ORIGIN, OTHER = "https://app.example.org", "https://evil.example.org"
ALLOWING = "Access-Control-Allow-Origin"


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    folder = tmp_path_factory.mktemp("pages")
    (folder / "lines.txt").write_text("the cat sleeps\nwhere is the station?\n")
    SearchIndex.build(folder / "lines.txt", folder / "index", "p-sp-mini")
    return ServedModel("p-sp-mini", name="it's <b>", index=folder / "index")


def client(served, **given):
    return testclient.TestClient(build_app(served, **given), base_url="http://localhost:8080")


def preflight(client, path="/score", origin=ORIGIN, method="POST", headers="content-type"):
    sent = {"Origin": origin, "Access-Control-Request-Method": method}
    return client.options(path, headers=sent | ({"Access-Control-Request-Headers": headers} if headers else {}))


def sharing(answer):
    """The headers of an answer that are about other origins."""
    return {name: value for name, value in answer.headers.items() if name.startswith("access-control-")}


def test_without_origins_nothing_is_shared(served):
    with client(served) as asked:
        answer = asked.get("/health", headers={"Origin": ORIGIN})
        assert answer.status_code == 200 and not sharing(answer) and "Vary" not in answer.headers
        assert preflight(asked).status_code == 405 and not sharing(preflight(asked))


@pytest.mark.parametrize("origins", [[ORIGIN, "http://localhost:3000"], ["*"]])
@pytest.mark.parametrize("origin", [ORIGIN, "http://localhost:3000", OTHER, ORIGIN + ".evil.org", "null", None])
@pytest.mark.parametrize("method", ["POST", "GET", "DELETE", "patch", None])
@pytest.mark.parametrize("headers", [None, "content-type", "Authorization, X-Stainless-Lang"])
def test_origins_are_treated_as_by_starlette(served, origins, origin, method, headers):
    """Status, origin, methods, headers and Vary are those of its middleware, which most servers in Python use."""
    app = build_app(served, origins=origins)
    theirs = cors_middleware.CORSMiddleware(
        build_app(served), allow_origins=origins, allow_methods=METHODS, allow_headers=["*"]
    )
    sent = {"Origin": origin, "Access-Control-Request-Method": method, "Access-Control-Request-Headers": headers}
    sent = {name: value for name, value in sent.items() if value is not None}
    for call in ("OPTIONS", "GET"):
        with testclient.TestClient(app) as ours, testclient.TestClient(theirs) as reference:
            answer, expected = (
                ours.request(call, "/health", headers=sent),
                reference.request(call, "/health", headers=sent),
            )
        assert answer.status_code == expected.status_code
        if origin is not None:  # with "*", ours says so to everybody
            assert answer.headers.get(ALLOWING) == expected.headers.get(ALLOWING)
        if expected.status_code == 200:
            allowed = ["access-control-allow-methods", "access-control-allow-headers", "access-control-max-age"]
            shared, there = sharing(answer), sharing(expected)
            for name in allowed[:1] + allowed[1:] * bool(headers):
                assert shared.get(name) == there.get(name)
        if "*" not in origins:
            assert answer.headers["Vary"] == "Origin" and "Origin" in expected.headers["Vary"]


def test_a_refused_origin_gets_no_headers_but_vary(served):
    with client(served, origins=[ORIGIN]) as asked:
        for answer in (preflight(asked, origin=OTHER), asked.get("/health", headers={"Origin": OTHER})):
            assert not sharing(answer) and answer.headers["Vary"] == "Origin"
        assert preflight(asked, origin=OTHER).json()["error"]["message"].startswith("pages of this origin may not")
        assert preflight(asked, headers="bad header: x\x7f").status_code == 400


def test_a_preflight_needs_no_key_and_errors_can_be_read(served):
    with client(served, key="sesame", origins=[ORIGIN]) as asked:
        answer = preflight(asked, headers="authorization,content-type")
        assert answer.status_code == 200 and answer.content == b""
        assert answer.headers["Access-Control-Allow-Headers"] == "authorization,content-type"
        refused = asked.post("/score", json={"pairs": []}, headers={"Origin": ORIGIN})
        assert refused.status_code == 401 and refused.headers[ALLOWING] == ORIGIN
        head = {"Origin": ORIGIN, "Authorization": "Bearer sesame"}
        told = asked.post("/score", json={"pairs": []}, headers=head)
        assert told.status_code == 400 and told.headers[ALLOWING] == ORIGIN
        assert asked.options("/score", headers={"Origin": ORIGIN}).status_code == 401  # not a preflight


def test_a_preflight_with_a_large_body_is_refused(served):
    with client(served, settings=ServingSettings(max_body=100), origins=["*"]) as asked:
        sent = {"Origin": ORIGIN, "Access-Control-Request-Method": "POST"}
        assert asked.request("OPTIONS", "/score", headers=sent, content=b"a" * 101).status_code == 413


@pytest.mark.parametrize(
    ("given", "origin"),
    [
        ("https://App.Example.org:443/", "https://app.example.org"),
        ("http://localhost:80", "http://localhost"),
        ("http://localhost:443", "http://localhost:443"),
        ("http://[::1]:3000", "http://[::1]:3000"),
        ("chrome-extension://abc", "chrome-extension://abc"),
        ("*", "*"),
    ],
)
def test_origins_are_written_as_browsers_send_them(given, origin):
    assert parse_origin(given) == origin == parse_origin(origin)


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ("https://a.org/app", "did you mean https://a.org?"),
        ("a.org", "'a.org' is not an origin; --cors takes"),
        ("null", "sandboxed frame"),
        ("https://*.a.org", "is not an origin"),
        ("", "'' is not an origin"),
        ("http://[a", "is not an origin"),
    ],
)
def test_what_is_not_an_origin_is_refused_in_a_line(given, says, capsys):
    assert main(["serve", "--port", "0", "--cors", given]) == 1
    error = capsys.readouterr().err.strip()
    assert says in error and "\n" not in error


@given(st.text(max_size=40))
def test_whatever_is_given_as_an_origin_is_one_or_refused(text):
    try:
        origin = parse_origin(text)
    except SettingsError as error:
        assert "\n" not in str(error)
    else:
        assert origin.isascii() and parse_origin(origin) == origin


@pytest.mark.parametrize(("key", "says"), [(None, "open in your browser"), ("sesame", "that knows the key")])
def test_all_origins_are_allowed_with_a_warning(key, says, capsys, monkeypatch):
    def refuse(*given):
        raise SettingsError(f"origins {given[3]}")

    monkeypatch.setattr("st_paragram.tools.serving.run.build_app", refuse)
    if key:
        monkeypatch.setenv("ST_PARAGRAM_API_KEY", key)
    assert main(["serve", "--port", "0", "--cors", "*", ORIGIN]) == 1
    warning, error = capsys.readouterr().err.strip().split("\n")[-2:]
    assert says in warning and f"origins ('*', '{ORIGIN}')" in error


class Page(HTMLParser):
    """What a page loads, where it leads, and its commands."""

    def __init__(self, text):
        super().__init__()
        self.loaded, self.links, self.tags = [], [], set()
        self.feed(text)
        self.commands = [unescape(each) for each in re.findall("<pre>(.*?)</pre>", text, re.DOTALL)]

    def handle_starttag(self, tag, attributes):
        self.tags.add(tag)
        self.loaded += [value for name, value in attributes if name in ("src", "srcset", "data", "style", "onload")]
        self.links += [value for name, value in attributes if name == "href"]


def test_the_page_loads_nothing_and_says_so(served):
    with client(served) as asked:
        answer = asked.get("/")
        page = Page(answer.text)
        assert asked.get("/docs").content == answer.content and asked.head("/").status_code == 200
        assert not page.loaded and not page.tags & {"script", "link", "img", "iframe", "form", "base"}
        assert "url(" not in answer.text and "@import" not in answer.text
        policy = answer.headers["Content-Security-Policy"]
        assert policy.startswith("default-src 'none'; style-src 'sha256-") and "unsafe" not in policy
        assert all(link.startswith("/") and asked.get(link).status_code == 200 for link in page.links)
        assert "/openapi.json" in page.links and "20,000" in answer.text
        assert "<h1>it&#x27;s &lt;b&gt;</h1>" in answer.text and "256 components" in answer.text


@pytest.mark.parametrize("key", [None, "sesame"])
def test_the_commands_of_the_page_work(served, key):
    """As a shell reads them; and the examples of the description for machines are the same."""
    with client(served, key=key) as asked:
        page = Page(asked.get("/").text)
        assert len(page.commands) == 5
        for command in page.commands:
            words = shlex.split(command.replace("\\\n", " ").replace("$KEY", key or ""))
            curl, address, *options = words
            values = list(zip(options[::2], options[1::2], strict=True))
            headers = dict(value.split(": ") for name, value in values if name == "-H")
            body = dict(values)["-d"]
            path = address.removeprefix("http://localhost:8080")
            answer = asked.post(path, content=body.encode(), headers=headers)
            assert curl == "curl" and answer.status_code == 200, answer.text
            described = asked.get("/openapi.json", headers={"Authorization": f"Bearer {key}"}).json()
            example = described["paths"][path]["post"]["requestBody"]["content"]["application/json"]["example"]
            assert json.loads(body) == example


def test_the_page_shows_no_limits_where_a_key_is_needed(served):
    with client(served, key="sesame") as asked:
        text = asked.get("/").text
        assert "20,000" not in text and "Bearer $KEY" in text and "sesame" not in text
        assert asked.get("/info").status_code == 401


def test_an_index_is_shown_where_there_is_one(served):
    with client(ServedModel("p-sp-mini")) as asked:
        assert "/search" not in asked.get("/").text


@pytest.mark.parametrize("host", ["a<script>", "x/y", "", "a b", "u@v"])
def test_a_strange_host_is_not_repeated(served, host):
    with client(served) as asked:
        text = asked.get("/", headers={"Host": host}).text
        assert "curl http://localhost:8080/score" in text
