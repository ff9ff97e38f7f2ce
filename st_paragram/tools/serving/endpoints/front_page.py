"""`GET /` and `GET /docs`: a page for people, with commands to copy. It loads nothing and runs no script."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from st_paragram.tools.serving.endpoints.service import Service
from st_paragram.tools.serving.guard import FRONT_PAGES
from st_paragram.tools.serving.messages import JSON, Answer, Request
from st_paragram.tools.serving.routing import Endpoint, Page

_STYLE = """
:root { color-scheme: light dark; --text: #1c1c1c; --faint: #595959; --back: #fff; --code: #f3f3f1; --line: #d5d5d0;
  --link: #0b57a4 }
@media (prefers-color-scheme: dark) {
  :root { --text: #e8e8e6; --faint: #a9a9a5; --back: #17181a; --code: #232528; --line: #3c3e42; --link: #8ab8f0 }
}
body { max-width: 46rem; margin: 0 auto; padding: 1.5rem 1rem 3rem; background: var(--back); color: var(--text);
  font: 1rem/1.5 system-ui, sans-serif; overflow-wrap: break-word }
h1 { font-size: 1.6rem; line-height: 1.2; margin: 0 }
h2 { font-size: 1.15rem; margin: 2rem 0 .5rem }
h3 { font-size: 1rem; margin: 1.25rem 0 .25rem }
p { margin: .25rem 0 }
.faint { color: var(--faint) }
a { color: var(--link) }
code, pre { font: .875rem/1.45 ui-monospace, monospace }
pre { background: var(--code); border: 1px solid var(--line); border-radius: 4px; padding: .6rem .75rem;
  margin: .4rem 0; white-space: pre-wrap }
table { border-collapse: collapse }
td { border-bottom: 1px solid var(--line); padding: .25rem 1rem .25rem 0; vertical-align: top }
td:last-child { padding-right: 0 }
"""
_DIGEST = base64.b64encode(hashlib.sha256(_STYLE.encode()).digest()).decode()
_HEADERS = {
    "Content-Security-Policy": f"default-src 'none'; style-src 'sha256-{_DIGEST}'; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",  # it shows the address that was asked for
}
_HOST = re.compile(r"[A-Za-z0-9._-]{1,253}(:\d{1,5})?|\[[0-9A-Fa-f:.]{2,45}\](:\d{1,5})?")


@dataclass(frozen=True)
class FrontPage:
    """The page at one of its addresses.

    Attributes:
        path: Its address.
        service: What is served.
        posted: The endpoints that it shows.
        pages: The pages that it names.
        has_key: Clients must send a key. The page itself needs none: a browser cannot send one. It then shows no more
            of the model than `/health`, and no limits.
    """

    path: str
    service: Service
    posted: Sequence[Endpoint]
    pages: Sequence[Page]
    has_key: bool

    summary = "A page for people."
    allowed = "GET, HEAD"

    async def respond(self, request: Request) -> Answer:
        """The page, whose commands have the address under which the client reached this server."""
        host = request.headers.get(b"host", b"").decode("latin-1")
        address = f"{request.scheme}://{host}" if _HOST.fullmatch(host) else "http://localhost:8080"
        content = f"""<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>{escape(self.service.served.name)} - st_paragram</title><style>{_STYLE}</style></head><body>
<header>{self._about()}</header>
<main><h2>Requests</h2>
{"".join(self._example(address, *each) for each in self._examples())}
<h2>Pages</h2>
<table>{"".join(_row(f'<a href="{escape(page.path)}">{escape(page.path)}</a>', page.summary) for page in self.pages)}
</table>
{"" if self.has_key else self._limits()}</main></body></html>
"""
        return Answer(content.encode(), media_type="text/html; charset=utf-8", headers=dict(_HEADERS))

    def _about(self) -> str:
        served = self.service.served
        about = f"sentence embeddings of {served.dimension} components"
        if served.index is not None:
            about += f", and an index of {len(served.index):,} sentences"
        key = "<p>Requests need a key: put it into the variable <code>KEY</code> of your shell.</p>"
        name = escape(served.name)
        return f'<h1>{name}</h1><p class="faint">{about}, served by st_paragram</p>{key if self.has_key else ""}'

    def _examples(self) -> list[tuple[Endpoint, list[str]]]:
        """An endpoint of each kind that answers here, and the other addresses of the same."""
        kinds = dict[str, tuple[Endpoint, list[str]]]()
        for endpoint in self.posted:
            if endpoint.is_on:
                kinds.setdefault(endpoint.summary, (endpoint, []))[1].append(endpoint.path)
        return [(endpoint, paths[1:]) for endpoint, paths in kinds.values()]

    def _example(self, address: str, endpoint: Endpoint, others: list[str]) -> str:
        body = json.dumps(endpoint.example, ensure_ascii=False)
        words = [f"curl {address}{endpoint.path}", f"-H {shlex.quote(f'Content-Type: {JSON}')}"]
        words += ['-H "Authorization: Bearer $KEY"'] if self.has_key else []
        command = " \\\n  ".join([*words, f"-d {shlex.quote(body)}"])
        also = f" Also at {' and '.join(f'<code>{other}</code>' for other in others)}." if others else ""
        title = f"<h3><code>POST {escape(endpoint.path)}</code></h3><p>{escape(endpoint.summary)}{also}</p>"
        return f"{title}<pre>{escape(command)}</pre>\n"

    def _limits(self) -> str:
        limits = self.service.settings
        rows = [
            ("bytes of a request", limits.max_body),
            ("texts of a request", limits.max_texts),
            ("characters of a text", limits.max_characters),
            ("texts that wait, all requests together", limits.max_waiting),
        ]
        if self.service.served.index is not None:
            rows.append(("sentences that a search finds", limits.max_hits))
        return f"<h2>Limits</h2><table>{''.join(_row(what, f'{most:,}') for what, most in rows)}</table>"


def _row(first: str, second: str) -> str:
    return f"<tr><td>{first}</td><td>{escape(second)}</td></tr>"


def front_pages(service: Service, posted: Sequence[Endpoint], pages: Sequence[Page], has_key: bool) -> list[FrontPage]:
    """The page at each of its addresses."""
    return [FrontPage(path, service, posted, pages, has_key) for path in FRONT_PAGES]
