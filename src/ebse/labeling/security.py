"""Who may talk to the server: one browser of this machine, on this page, and nobody else.

The server listens on loopback, where any program and any web page that the user visits can reach it. So a
link with a token that is valid once gives the browser a cookie, every request needs that cookie and a Host
header of this server (against DNS rebinding), and a request that changes something needs an Origin of this
server, the content type of JSON and a token that only the page knows (against requests by other pages).
"""

import hmac
import secrets
import threading
import time
from collections.abc import Callable
from typing import Any, final

from starlette.datastructures import Headers
from starlette.requests import cookie_parser
from starlette.responses import HTMLResponse, JSONResponse, Response

LINK_SECONDS, COOKIE_SECONDS = 60.0, 12 * 3600
"""How long a link and a cookie are valid."""
LARGEST_BODY = 2**20
"""Bytes of a request."""
START = "/start"
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cache-control": "no-store",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
}
WELCOME = (
    '<!doctype html><meta charset="utf-8"><meta http-equiv="refresh" content="0;url=/"><title>ebse</title>'
)
LOST = (
    '<!doctype html><html lang="en"><meta charset="utf-8"><title>ebse</title><h1>Open the link again</h1>'
    "<p>This page needs the link that <code>ebse label</code> printed. A link is valid once, for a minute: "
    "press Enter in the terminal for a new one.</p></html>"
)


@final
class Tokens:
    """Secrets of one server."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.page = secrets.token_urlsafe(32)
        """In the page, for requests that change something."""
        self._cookie = secrets.token_urlsafe(32)
        self._links: dict[str, float] = {}
        self._lock = threading.Lock()
        self.when_redeemed: Callable[[], None] = _nothing
        """Called when a link was used."""
        self.hosts = {f"{name}:{port}" for name in ("127.0.0.1", "localhost")}
        self.origins = {f"http://{host}" for host in self.hosts}

    @property
    def cookie_name(self) -> str:
        """Cookies do not know ports: servers on several would take each other's."""
        return f"ebse-{self.port}"

    def link(self) -> str:
        """An address that opens the page once, within a minute."""
        token = secrets.token_urlsafe(32)
        with self._lock:
            now = time.monotonic()
            self._links = {one: until for one, until in self._links.items() if until > now}
            self._links[token] = now + LINK_SECONDS
        return f"http://127.0.0.1:{self.port}{START}?token={token}"

    def redeem(self, token: str) -> str | None:
        """The cookie in exchange for the token of a link."""
        given = token.encode(errors="replace")
        with self._lock:
            # All are compared, in constant time.
            known = [one for one in self._links if hmac.compare_digest(one.encode(), given)]
            until = self._links.pop(known[0]) if known else 0.0
        if until <= time.monotonic():
            return None
        self.when_redeemed()
        return (
            f"{self.cookie_name}={self._cookie}; Max-Age={COOKIE_SECONDS}; Path=/; HttpOnly; SameSite=Strict"
        )

    def knows_cookie(self, headers: Headers) -> bool:
        """Whether a request has the cookie."""
        given = cookie_parser(headers.get("cookie", "")).get(self.cookie_name, "")
        return hmac.compare_digest(given.encode(), self._cookie.encode())

    def knows_page(self, headers: Headers) -> bool:
        """Whether a request comes from the page."""
        return hmac.compare_digest(headers.get("x-ebse-token", "").encode(), self.page.encode())


@final
class Guard:
    """Refuses what does not come from the page, and adds headers to every answer (ASGI)."""

    def __init__(self, app: Any, tokens: Tokens) -> None:
        self._app, self._tokens = app, tokens

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            return

        async def guarded(message: Any) -> None:
            if message["type"] == "http.response.start":
                own = {name for name, _ in message["headers"]}
                message["headers"] = [
                    *message["headers"],
                    *(
                        (name.encode(), value.encode())
                        for name, value in HEADERS.items()
                        if name.encode() not in own
                    ),
                ]
            await send(message)

        answer = self._refused(scope)
        await (answer or self._app)(scope, _limited(receive), guarded)

    def _refused(self, scope: Any) -> Response | None:
        """The answer to a request that is refused, or that brings the token of a link."""
        headers, tokens = Headers(scope=scope), self._tokens
        if headers.get("host", "") not in tokens.hosts or len(headers.getlist("host")) != 1:
            return _no(421, "Host must be the address that `ebse label` printed; open that address")
        method, path = scope["method"], scope["path"]
        if method not in ("GET", "POST"):
            return _no(405, "the method must be GET or POST")
        if path == START:
            query = scope["query_string"].decode("latin-1")
            cookie = tokens.redeem(query.removeprefix("token=")) if method == "GET" else None
            if cookie is None:
                return HTMLResponse(LOST, status_code=403)
            # A page that goes on by itself: after a redirect from elsewhere a strict cookie is not sent.
            return HTMLResponse(WELCOME, headers={"set-cookie": cookie})
        if not tokens.knows_cookie(headers):
            if path.startswith("/api/"):
                return _no(403, "the page needs a new link; press Enter in the terminal")
            return HTMLResponse(LOST, status_code=403)
        if method == "GET":
            return None
        if headers.get("origin", "") not in tokens.origins:
            return _no(403, "Origin must be this server; use the page")
        if headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
            return _no(415, "the content type must be application/json")
        if not tokens.knows_page(headers):
            return _no(403, "the token must be that of the page; load the page again")
        length = headers.get("content-length", "")
        if not length.isdecimal() or int(length) > LARGEST_BODY:
            return _no(413, f"a request must have at most {LARGEST_BODY} bytes; choose fewer rows")
        return None


def _nothing() -> None:
    pass


def _no(status: int, error: str) -> Response:
    return JSONResponse({"error": error}, status_code=status)


def _limited(receive: Any) -> Any:
    """``receive`` that ends a body which is longer than allowed."""
    n = 0

    async def limited() -> Any:
        nonlocal n
        message = await receive()
        n += len(message.get("body", b""))
        return {"type": "http.disconnect"} if n > LARGEST_BODY else message

    return limited
