"""A small Hugging Face hub on loopback: repositories of models with commits, branches and large files."""

from __future__ import annotations

import base64
import hashlib
import json
import threading
import urllib.parse
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import huggingface_hub
import transformers.utils.hub
from huggingface_hub import constants

TOKEN = "hf_tokenoftests"
OWNER = "me"
LARGE = (".safetensors", ".model")
GIT_ATTRIBUTES = b"*.safetensors filter=lfs diff=lfs merge=lfs -text\n"


@dataclass
class StubRepository:
    """Commits (name -> bytes each) by digest, and branches."""

    private: bool
    commits: dict[str, dict[str, bytes]] = field(default_factory=dict)
    branches: dict[str, str] = field(default_factory=dict)
    messages: list[str] = field(default_factory=list)

    def commit(self, branch, files, message):
        digest = hashlib.sha1(repr((sorted(files.items()), self.branches, message)).encode()).hexdigest()
        self.commits[digest] = files
        self.branches[branch] = digest
        self.messages.append(message)
        return digest

    def resolved(self, revision):
        revision = self.branches.get(revision, revision)
        return revision if revision in self.commits else None

    def head(self, branch="main"):
        return self.commits[self.branches[branch]]


class StubHub(ThreadingHTTPServer):
    """`repositories` by name; `refusals[(method, beginning of the path)]` stand in place of the usual answers."""

    daemon_threads = True

    def __init__(self):
        super().__init__(("127.0.0.1", 0), _Handler)
        self.repositories: dict[str, StubRepository] = {}
        self.large: dict[str, bytes] = {}
        self.refusals: dict[tuple[str, str], tuple[int, dict]] = {}
        self.asked: list[tuple[str, str]] = []
        self.url = f"http://127.0.0.1:{self.server_port}"

    def new(self, name, private=True, **files):
        repository = self.repositories[name] = StubRepository(private)
        repository.commit("main", {".gitattributes": GIT_ATTRIBUTES, **files}, "initial commit")
        return repository


def _blob(content):
    return hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()


def _large(content):
    return {"size": len(content), "sha256": hashlib.sha256(content).hexdigest(), "pointerSize": 130}


class _Handler(BaseHTTPRequestHandler):
    server: StubHub
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        self.route({})

    do_HEAD = do_GET

    def do_PUT(self):
        body = self.body()
        self.server.asked.append(("PUT", self.path))
        digest = self.path.rpartition("/")[2]
        assert hashlib.sha256(body).hexdigest() == digest
        self.server.large[digest] = body
        self.say(200, {})

    def do_POST(self):
        self.route(self.body())

    def body(self):
        if self.headers.get("Transfer-Encoding") == "chunked":
            parts = []
            while size := int(self.rfile.readline(), 16):
                parts.append(self.rfile.read(size))
                self.rfile.readline()
            self.rfile.readline()
            return b"".join(parts)
        return self.rfile.read(int(self.headers.get("Content-Length", 0)))

    def say(self, status, answer, **headers):
        content = answer if isinstance(answer, bytes) else json.dumps(answer).encode()
        self.send_response(status)
        kind = "application/octet-stream" if isinstance(answer, bytes) else "application/json"
        for name, value in ({"Content-Type": kind, "Content-Length": str(len(content))} | headers).items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)

    def route(self, body):
        path = urllib.parse.unquote(self.path.partition("?")[0])
        self.server.asked.append((self.command, path))
        for (method, beginning), (status, answer) in self.server.refusals.items():
            if self.command == method and path.startswith(beginning):
                return self.say(status, answer)
        sent = self.headers.get("Authorization", "")
        if sent and sent != f"Bearer {TOKEN}":
            return self.say(
                401, {"error": "Invalid credentials"}, X_Error_Message="Invalid credentials in Authorization header"
            )
        self.mine = bool(sent)
        if path == "/api/repos/create":
            return self.create(json.loads(body))
        if path == "/api/validate-yaml":
            bad = "license: nonsense" in json.loads(body)["content"]
            return self.say(400 if bad else 200, {"errors": [{"message": '"license" must be one of'}] if bad else []})
        parts = path.strip("/").split("/")
        if parts[:2] == ["api", "models"]:
            return self.model("/".join(parts[2:4]), parts[4:], body)
        if path.endswith("/info/lfs/objects/batch"):
            return self.say(
                200, {"transfer": "basic", "objects": [self.object(one) for one in json.loads(body)["objects"]]}
            )
        if len(parts) > 4 and parts[2] == "resolve":
            return self.resolve("/".join(parts[:2]), parts[3], "/".join(parts[4:]))
        return self.say(404, {"error": "Not found"})

    def create(self, asked):
        owner = asked["organization"] or OWNER
        name = f"{owner}/{asked['name']}"
        if not self.mine:
            return self.say(401, {"error": "Unauthorized"})
        if owner != OWNER:
            return self.say(403, {"error": f"You don't have the rights to create a model under the namespace {owner}"})
        if name in self.server.repositories:
            return self.say(409, {"error": "You already created this model repo", "url": f"{self.server.url}/{name}"})
        told = asked.get("visibility") or ("private" if asked.get("private") else "public")  # as older clients say it
        self.server.new(name, told == "private")
        return self.say(200, {"url": f"{self.server.url}/{name}", "name": name})

    def model(self, name, rest, body):
        repository = self.server.repositories.get(name)
        if repository is None or (repository.private and not (self.mine and name.startswith(f"{OWNER}/"))):
            return self.say(404, {"error": "Repository not found"}, X_Error_Code="RepoNotFound")
        if self.command == "POST" and not name.startswith(f"{OWNER}/"):
            return self.say(403, {"error": "You are not allowed to write here"})
        action, revision = (*rest, "revision", "main")[:2] if rest else ("revision", "main")
        commit = repository.resolved(revision)
        if commit is None:
            return self.say(404, {"error": "Invalid rev id"}, X_Error_Code="RevisionNotFound")
        files = repository.commits[commit]
        if action == "revision":
            return self.say(200, self.info(name, repository, commit))
        if action == "tree":
            return self.say(200, [self.entry(one, content) for one, content in files.items()])
        if action == "preupload":
            return self.say(200, {"files": [self.mode(one, files) for one in json.loads(body)["files"]]})
        return self.commit(name, repository, revision, [json.loads(line) for line in body.splitlines()])

    def info(self, name, repository, commit):
        siblings = [
            {"rfilename": one, "size": len(content), "blobId": _blob(content)}
            | ({"lfs": _large(content)} if one.endswith(LARGE) else {})
            for one, content in repository.commits[commit].items()
        ]
        return {
            "id": name,
            "modelId": name,
            "sha": commit,
            "private": repository.private,
            "tags": [],
            "siblings": siblings,
        }

    def entry(self, name, content):
        large = {"lfs": {**_large(content), "oid": _large(content)["sha256"]}} if name.endswith(LARGE) else {}
        return {"type": "file", "path": name, "size": len(content), "oid": _blob(content), **large}

    def mode(self, asked, files):
        large = asked["path"].endswith(LARGE)
        old = files.get(asked["path"])
        oid = None if old is None else _large(old)["sha256"] if large else _blob(old)
        return {"path": asked["path"], "uploadMode": "lfs" if large else "regular", "shouldIgnore": False, "oid": oid}

    def object(self, asked):
        upload = {"upload": {"href": f"{self.server.url}/large/{asked['oid']}"}}
        return {**asked, **({} if asked["oid"] in self.server.large else {"actions": upload})}

    def commit(self, name, repository, branch, lines):
        files = dict(repository.head(branch))
        header = lines[0]["value"]
        if header.get("parentCommit") not in (None, repository.branches[branch]):
            return self.say(412, {"error": "A commit has happened since. Please refresh and try again."})
        for line in lines[1:]:
            value = line["value"]
            if line["key"] == "file":
                files[value["path"]] = base64.b64decode(value["content"])
            elif line["key"] == "lfsFile":
                files[value["path"]] = self.server.large[value["oid"]]
            else:
                del files[value["path"]]
        digest = repository.commit(branch, files, header["summary"])
        return self.say(200, {"commitUrl": f"{self.server.url}/{name}/commit/{digest}", "commitOid": digest})

    def resolve(self, name, revision, file):
        repository = self.server.repositories.get(name)
        if repository is None or (repository.private and not self.mine):
            return self.say(404, {}, X_Error_Code="RepoNotFound")
        commit = repository.resolved(revision)
        if commit is None:
            return self.say(404, {}, X_Error_Code="RevisionNotFound")
        content = repository.commits[commit].get(file)
        if content is None:
            return self.say(404, {}, X_Error_Code="EntryNotFound", X_Repo_Commit=commit)
        etag = _large(content)["sha256"] if file.endswith(LARGE) else _blob(content)
        return self.say(200, content, X_Repo_Commit=commit, ETag=f'"{etag}"')

    def log_message(self, *args):
        pass


@contextmanager
def stub_hub(monkeypatch, cache):
    """A hub that runs, which huggingface_hub takes for its own, with an empty cache and the token of tests."""
    server = StubHub()
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    monkeypatch.setattr(constants, "HF_HUB_DISABLE_XET", True)
    monkeypatch.setattr(constants, "ENDPOINT", server.url)
    monkeypatch.setattr(
        constants, "HUGGINGFACE_CO_URL_TEMPLATE", server.url + "/{repo_id}/resolve/{revision}/{filename}"
    )
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(cache))
    monkeypatch.setattr(constants, "HF_TOKEN_PATH", str(cache / "token"))
    monkeypatch.setattr(constants, "HF_STORED_TOKENS_PATH", str(cache / "tokens"))
    monkeypatch.setenv("HF_TOKEN", TOKEN)
    # Newer ones keep a client with the address of an earlier server, and ask it again and again.
    monkeypatch.setattr(transformers.utils.hub, "_hf_api", None, raising=False)
    huggingface_hub.close_session()
    try:
        yield server
    finally:
        huggingface_hub.close_session()
        server.shutdown()
        thread.join()
        server.server_close()
