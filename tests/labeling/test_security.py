"""Who may talk to the server of the labeling page: every rule, each with a request that is allowed."""

import os
import re
import socket
import stat
import sys
import webbrowser
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from urllib.parse import unquote, urlparse

import httpx
import numpy as np
import pytest

import ebse
from ebse.labeling import Labeling, handle, security
from ebse.labeling.security import COOKIE_SECONDS, HEADERS, LARGEST_BODY, LINK_SECONDS, Tokens
from ebse.labeling.session import Session
from labeling.conftest import Entered, Opened
from labeling.pages import LIMIT, Page, digits, free_rows, key, logged, until


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Labeling]:
    X, _ = digits(60)
    with ebse.label(
        X, folder=tmp_path_factory.mktemp("security") / "run", shape=(8, 8), browser=False
    ) as one:
        yield one


@pytest.fixture
def page(made: Labeling, entered: Entered) -> Page:
    return entered(made)


def raw(made: Labeling, text: str, body: bytes = b"") -> str:
    """What the server answers to bytes that no client would send."""
    port = made._server.port
    with socket.create_connection(("127.0.0.1", port), timeout=LIMIT) as connection:
        connection.sendall(text.replace("\n", "\r\n").encode() + b"\r\n\r\n")
        found = b""
        try:
            connection.sendall(body)
            while part := connection.recv(65_536):
                found += part
        except (ConnectionResetError, BrokenPipeError):
            # The server does not read what is too much.
            assert found or body
    return found.decode("latin-1")


def lines(page: Page, first: str, *more: str) -> str:
    """A request of the page, with its cookie."""
    cookie = "; ".join(f"{name}={value}" for name, value in page.client.cookies.items())
    host = page.address.removeprefix("http://")
    return "\n".join([f"{first} HTTP/1.1", f"Host: {host}", f"Cookie: {cookie}", "Connection: close", *more])


def status(answer: str) -> int:
    found = re.match(r"HTTP/1.1 (\d+) ", answer)
    assert found, answer[:200]
    return int(found[1])


# The address


def test_the_server_is_on_loopback_alone(made: Labeling) -> None:
    address, port = made._server._socket.getsockname()
    assert address == "127.0.0.1"
    with socket.socket() as one:
        assert one.connect_ex(("127.0.0.1", port)) == 0
    if sys.platform == "linux":
        # Other addresses of this machine; all of 127.0.0.0/8 are.
        with socket.socket() as another:
            assert another.connect_ex(("127.0.0.2", port)) != 0


@pytest.mark.parametrize(
    "host",
    [
        "evil.example",
        "evil.example:{port}",
        "127.0.0.1",
        "localhost",
        "127.0.0.1:1",
        "127.0.0.1:{port}.evil.example",
        "evil.example@127.0.0.1:{port}",
        "0.0.0.0:{port}",
        "127.0.0.2:{port}",
        "[::1]:{port}",
        "",
    ],
)
def test_other_hosts_are_refused(host: str, made: Labeling, page: Page) -> None:
    """Against DNS rebinding: a page elsewhere whose name is suddenly this machine's."""
    host = host.format(port=made._server.port)
    assert page.client.get("/api/state", headers={"host": host}).status_code == 421
    link = made.url
    assert page.client.get(link, headers={"host": host}).status_code == 421
    # That did not use the link up.
    assert page.client.get(link).status_code == 200


def test_both_names_of_this_machine_are_hosts(made: Labeling, page: Page) -> None:
    for name in ("127.0.0.1", "localhost"):
        answer = page.client.get("/api/state", headers={"host": f"{name}:{made._server.port}"})
        assert answer.status_code == 200


def test_two_hosts_are_refused(made: Labeling, page: Page) -> None:
    good = lines(page, "GET /api/state")
    assert status(raw(made, good)) == 200
    for second in (f"127.0.0.1:{made._server.port}", "evil.example"):
        assert status(raw(made, f"{good}\nHost: {second}")) in (400, 421)
    assert status(raw(made, re.sub("Host: .*\n", "", good))) in (400, 421)


def test_answers_do_not_wait_for_acknowledgments(made: Labeling) -> None:
    """asyncio turns Nagle's algorithm off for sockets that name their protocol."""
    assert made._server._socket.proto == socket.IPPROTO_TCP


# Link and cookie


def test_nothing_is_given_without_the_cookie(made: Labeling, page: Page) -> None:
    paths = ["/", "/static/style.css", "/api/state", "/api/stream", "/api/next", "/image/0", "/api/map"]
    paths += ["/api/items?rows=0", "/api/predictions", "/api/history", "/download/labels.csv", "/x"]
    name = made._server.tokens.cookie_name
    right = page.client.cookies[name]
    with httpx.Client(base_url=page.address, timeout=LIMIT, trust_env=False, verify=False) as stranger:
        for path in paths:
            for cookie in (
                "",
                f"{name}=",
                f"{name}=x",
                f"{name}={right[:-1]}",
                f"other={right}",
                f"{name}=ä",
            ):
                answer = stranger.get(path, headers={b"cookie": cookie.encode()})
                assert answer.status_code == 403
                assert page.token not in answer.text
                assert right not in str(answer.headers)
        assert stranger.get("/api/state", headers={"cookie": f"{name}={right}"}).status_code == 200


def test_a_link_works_once(made: Labeling) -> None:
    link = made.url
    with httpx.Client(timeout=LIMIT, trust_env=False, verify=False) as client:
        first, second = client.get(link), client.get(link)
        assert (first.status_code, second.status_code) == (200, 403)
        assert "set-cookie" not in second.headers
        assert "press Enter in the terminal for a new one" in second.text
        assert client.get(made.url).status_code == 200


@pytest.mark.parametrize("query", ["", "?token=", "?token=x", "?x=1", "?token=%00", "?token=%FF", "?TOKEN=x"])
def test_other_links_are_refused(query: str, made: Labeling) -> None:
    made.url  # noqa: B018
    with httpx.Client(
        base_url=f"http://127.0.0.1:{made._server.port}", trust_env=False, verify=False
    ) as client:
        answer = client.get(f"/start{query}")
        assert answer.status_code == 403
        assert "set-cookie" not in answer.headers


def test_links_are_redeemed_by_get_alone(made: Labeling) -> None:
    link = made.url
    with httpx.Client(timeout=LIMIT, trust_env=False, verify=False) as client:
        assert client.post(link).status_code == 403
        assert client.get(link).status_code == 200


def test_a_link_is_valid_for_a_minute(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 1_000.0
    monkeypatch.setattr(security, "time", SimpleNamespace(monotonic=lambda: now))
    tokens = Tokens(1)
    links = [tokens.link().rpartition("=")[2] for _ in range(2)]
    now += LINK_SECONDS - 0.001
    assert tokens.redeem(links[0]) is not None
    now += 0.001
    assert tokens.redeem(links[1]) is None
    assert LINK_SECONDS == 60
    # Old ones are forgotten.
    tokens.link()
    assert len(tokens._links) == 1


def test_odd_tokens_are_no_tokens() -> None:
    tokens = Tokens(1)
    link = tokens.link()
    for odd in ("", "ÿ", "\ud800", "x" * 10**6):
        assert tokens.redeem(odd) is None
    assert tokens.redeem(link.rpartition("=")[2]) is not None


def test_secrets_are_long_and_differ() -> None:
    tokens = [Tokens(1) for _ in range(5)]
    links = {one.link().rpartition("=")[2] for one in tokens for _ in range(5)}
    pages = {one.page for one in tokens}
    assert len(links) == 25
    assert len(pages) == 5
    # 32 random bytes are 43 letters.
    assert all(len(text) == 43 for text in links | pages)


def test_the_cookie_is_for_this_page_alone(made: Labeling) -> None:
    with httpx.Client(timeout=LIMIT, trust_env=False, verify=False) as client:
        words = client.get(made.url).headers["set-cookie"].split("; ")
    assert words[0].startswith(f"ebse-{made._server.port}=")
    assert {"HttpOnly", "SameSite=Strict", "Path=/", f"Max-Age={COOKIE_SECONDS}"} == set(words[1:])


# Requests that change something


def test_the_page_may_post(page: Page) -> None:
    """What all refused requests of the next tests are a variation of."""
    before = page.state["n_events"]
    assert page.post("/api/event", {"type": "class", "name": "new", "key": key()}).status_code == 200
    assert page.state["n_events"] == before + 1


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"origin": None}, 403),
        ({"origin": ""}, 403),
        ({"origin": "null"}, 403),
        ({"origin": "http://evil.example"}, 403),
        ({"origin": "https://127.0.0.1:{port}"}, 403),
        ({"origin": "http://127.0.0.1"}, 403),
        ({"origin": "http://127.0.0.1:{port}.evil.example"}, 403),
        ({"origin": "http://127.0.0.1:{port}/"}, 403),
        ({"x-ebse-token": None}, 403),
        ({"x-ebse-token": ""}, 403),
        ({"x-ebse-token": "x"}, 403),
        ({"x-ebse-token": "{token}x"}, 403),
        ({"content-type": None}, 415),
        ({"content-type": "text/plain"}, 415),
        ({"content-type": "application/x-www-form-urlencoded"}, 415),
        ({"content-type": "multipart/form-data"}, 415),
        ({"content-type": "application/jsonx"}, 415),
        ({"content-type": "text/plain; application/json"}, 415),
        ({"cookie": ""}, 403),
        ({"host": "evil.example"}, 421),
    ],
)
@pytest.mark.parametrize("path", ["/api/event", "/api/export", "/api/doubtful"])
def test_other_pages_may_not_post(change: dict[str, str | None], code: int, path: str, page: Page) -> None:
    port = page.address.rpartition(":")[2]
    headers: dict[str, str] = page.headers | {"content-type": "application/json"}
    for name, value in change.items():
        headers.pop(name, None)
        if value is not None:
            headers[name] = value.format(port=port, token=page.token)
    before = page.state["n_events"]
    body = b'{"type": "class", "name": "evil", "key": "0123456789"}'
    answer = page.client.post(path, content=body, headers=headers)
    assert answer.status_code == code
    assert page.state["n_events"] == before


@pytest.mark.parametrize(
    "change", [{"origin": "http://localhost:{port}"}, {"content-type": "Application/JSON; charset=utf-8"}]
)
def test_these_changes_are_allowed(change: dict[str, str], page: Page) -> None:
    port = page.address.rpartition(":")[2]
    headers = page.headers | {"content-type": "application/json"}
    headers |= {name: value.format(port=port) for name, value in change.items()}
    body = f'{{"type": "class", "name": "good", "key": "{key()}"}}'
    assert page.client.post("/api/event", content=body, headers=headers).status_code == 200


@pytest.mark.parametrize("method", ["PUT", "DELETE", "OPTIONS", "PATCH", "HEAD", "TRACE", "GETX"])
def test_other_methods_are_refused(method: str, page: Page) -> None:
    for path in ("/", "/api/event", "/api/state", "/image/0", "/start"):
        answer = page.client.request(method, path, headers=page.headers)
        assert answer.status_code == 405
    assert page.client.get("/api/event").status_code == 405
    assert page.post("/api/state").status_code == 405


def test_no_other_origin_may_read(page: Page) -> None:
    """No CORS header, also where a browser asks for one."""
    asked = {"origin": "http://evil.example", "access-control-request-method": "POST"}
    for answer in (
        page.client.get("/api/state", headers=asked),
        page.client.options("/api/event", headers=asked),
        page.client.get("/", headers=asked),
        page.client.get("/nothing", headers=asked),
        page.post("/api/event"),
    ):
        assert not [name for name in answer.headers if name.startswith("access-control")]


# Bodies


def post_lines(page: Page, length: str) -> str:
    return lines(
        page,
        "POST /api/event",
        f"Origin: {page.address}",
        f"X-Ebse-Token: {page.token}",
        "Content-Type: application/json",
        length,
    )


def padded(n: int) -> bytes:
    """An event of n bytes."""
    held = f'{{"type": "class", "name": "padded", "key": "{key()}", "more": "'.encode()
    return held + b"x" * (n - len(held) - 2) + b'"}'


def test_the_largest_body(made: Labeling, page: Page) -> None:
    folder = made._session.folder
    before = len(logged(folder))
    sent = page.client.post(
        "/api/event",
        content=padded(LARGEST_BODY),
        headers=page.headers | {"content-type": "application/json"},
    )
    assert sent.status_code == 200
    assert len(logged(folder)) == before + 1
    # Refused by its length alone, before it is sent.
    assert status(raw(made, post_lines(page, f"Content-Length: {LARGEST_BODY + 1}"))) == 413
    assert len(logged(folder)) == before + 1


def test_bodies_of_another_length_than_they_say(made: Labeling, page: Page) -> None:
    folder = made._session.folder
    before = len(logged(folder))
    body = padded(2 * LARGEST_BODY)
    chunks = b"".join(b"10000\r\n" + body[at : at + 65_536] + b"\r\n" for at in range(0, len(body), 65_536))
    for length, sent, codes in (
        ("Content-Length: 10", body, {400}),
        ("Content-Length: -1", b"", {400, 413}),
        ("Content-Length: 1_0", b"", {400, 413}),
        ("Content-Length: x", b"", {400, 413}),
        ("Content-Length: 5\nContent-Length: 6", b"", {400, 413}),
        ("Transfer-Encoding: chunked", chunks + b"0\r\n\r\n", {400, 411, 413}),
        ("Content-Length: 10\nTransfer-Encoding: chunked", chunks + b"0\r\n\r\n", {400, 411, 413}),
        ("X-None: 1", b"", {400, 411, 413}),
    ):
        answer = raw(made, post_lines(page, length), sent)
        # Nothing at all where the connection ended while the rest was sent.
        assert not answer or status(answer) in codes, length
        assert len(logged(folder)) == before
    assert page.state["n_events"] == before


@pytest.mark.parametrize(
    "body", [b"", b"{", b"\xff", b"[" * 100_000, b"nan", b"1" * 5_000, b"\x00", b"null", b"[]", b"1"]
)
def test_bodies_that_are_no_events(body: bytes, page: Page) -> None:
    before = page.state["n_events"]
    for path in ("/api/event",):
        headers = page.headers | {"content-type": "application/json"}
        answer = page.client.post(path, content=body, headers=headers)
        assert answer.status_code == 400
        assert answer.json()["error"]
    assert page.state["n_events"] == before


# Answers


def test_headers_of_every_answer(page: Page, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(self: object) -> None:
        raise RuntimeError("for this test")

    monkeypatch.setattr(Session, "history", broken)
    stranger = httpx.Client(base_url=page.address, timeout=LIMIT, trust_env=False, verify=False)
    with stranger:
        answers = [
            (200, page.client.get("/")),
            (200, page.client.get("/static/style.css")),
            (200, page.client.get("/api/state")),
            (200, page.client.get("/image/0")),
            (204, page.client.get("/favicon.ico")),
            (400, page.client.get("/image/x")),
            (400, page.post("/api/event")),
            (403, stranger.get("/")),
            (403, stranger.get("/start?token=x")),
            (404, page.client.get("/nothing")),
            (404, page.client.get("/download/x")),
            (405, page.client.put("/")),
            (405, page.client.get("/api/event")),
            (415, page.client.post("/api/event", headers=page.headers)),
            (421, page.client.get("/", headers={"host": "x"})),
            (500, page.client.get("/api/history")),
        ]
    for code, answer in answers:
        assert answer.status_code == code
        # Images, too: another session on this port has other rows.
        assert answer.headers["cache-control"] == "no-store"
        assert answer.headers["content-security-policy"] == HEADERS["content-security-policy"]
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["x-frame-options"] == "DENY"
        assert answer.headers["referrer-policy"] == "no-referrer"
        for name in ("opener", "resource"):
            assert answer.headers[f"cross-origin-{name}-policy"] == "same-origin"
        assert "server" not in answer.headers
        assert "for this test" not in answer.text


def test_the_policy_allows_own_files_alone() -> None:
    words = {part.split()[0]: part.split()[1:] for part in HEADERS["content-security-policy"].split(";")}
    assert words["default-src"] == words["frame-ancestors"] == words["base-uri"] == ["'none'"]
    assert words["form-action"] == ["'none'"]
    for name in ("script-src", "style-src", "img-src", "connect-src"):
        assert words[name] == ["'self'"]


@pytest.mark.parametrize(
    "row", ["-1", "60", "1.0", "1e1", "abc", "٣", "0x1", "9" * 30, "1%20", "%2B1", "1_0", "²"]
)
def test_rows_are_numbers(row: str, page: Page) -> None:
    assert page.client.get(f"/image/{row}").status_code == 400
    assert page.client.get(f"/api/items?rows={row}").status_code == 400
    assert page.client.get(f"/api/items?rows=0,{row}").status_code == 400
    if row != "60":
        assert page.client.get(f"/api/next?n={row}").status_code == 400
    assert page.client.get("/image/59").status_code == 200


def test_options_are_words_of_a_list(page: Page) -> None:
    for path in (
        "/api/next?how=x",
        "/api/next?how=",
        "/api/gallery?how=all",
        "/api/gallery?n=x",
        "/api/items",
    ):
        answer = page.client.get(path)
        assert answer.status_code == 400
        assert answer.json()["error"]
    assert page.get("/api/next", how="random", n=2)["how"] == "random"
    assert page.get("/api/gallery?class=nobody")["items"] == []


OUTSIDE = [
    "/static/../server.py",
    "/static/..%2fserver.py",
    "/static/..%5cserver.py",
    "/static/%2e%2e/server.py",
    "/static//etc/passwd",
    "/static/%2fetc%2fpasswd",
    "/static/index.html",
    "/static/nothing.js",
    "/static/style.css%00",
    "/static/style.css/",
    "/static/",
    "/../../../../etc/passwd",
    "/download/..%2frows.jsonl",
    "/download/../rows.jsonl",
    "/download/rows.jsonl",
    "/download/config.json",
    "/download/.lock",
    "/download/model.pickle",
    "/download/labels.csv",
    "/download/",
    "/image/../api/state",
    "/image/0/../../etc/passwd",
    "//evil.example/",
    "/rows.jsonl",
]


@pytest.mark.parametrize("path", OUTSIDE)
def test_other_files_are_not_there(path: str, made: Labeling, page: Page) -> None:
    answer = raw(made, lines(page, f"GET {path}"))
    # A slash at the end may be taken away, on this server.
    code = status(answer)
    moved = re.search(r"location: (\S*)", answer)
    assert code == 404 or (code == 307 and moved and moved[1].startswith(f"{page.address}/")), answer[:300]
    assert "root:" not in answer
    assert "import" not in answer


def test_files_of_the_page_are_there(page: Page) -> None:
    kinds = {".js": "text/javascript; charset=utf-8", ".css": "text/css; charset=utf-8"}
    names = re.findall(r'(?:src|href)="/?static/([^"]+)"', page.client.get("/").text)
    assert names
    for name in names:
        answer = page.client.get(f"/static/{name}")
        assert answer.status_code == 200
        assert answer.headers["content-type"] == kinds[Path(name).suffix]


# Files and browser


def test_the_run_folder_is_private(tmp_path: Path, opened: Opened) -> None:
    (tmp_path / "old").mkdir(mode=0o755)
    for name in ("new", "old", "deep/er"):
        opened(folder=tmp_path / name)
        assert stat.S_IMODE((tmp_path / name).stat().st_mode) == 0o700


def test_the_browser_gets_no_token_in_its_arguments(
    opened: Opened, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    seen = []

    def open_browser(address: str) -> bool:
        file = Path(unquote(urlparse(address).path))
        modes = [stat.S_IMODE(path.stat().st_mode) for path in (file, file.parent)]
        seen.append((address, file, file.read_text(), modes))
        return True

    monkeypatch.setattr(handle, "has_browser", lambda: True)
    monkeypatch.setattr(webbrowser, "open", open_browser)
    made = opened(browser=True)
    [(address, file, held, modes)] = seen
    assert address.startswith("file:///")
    assert modes == [0o600, 0o700]
    link = re.search(r"url=(http[^\"]+)", held)
    assert link
    token = link[1].rpartition("=")[2]
    assert token not in address
    assert token not in capsys.readouterr().out
    assert file.exists()
    with httpx.Client(trust_env=False, verify=False) as client:
        # Not by a wrong guess.
        client.get(f"http://127.0.0.1:{made._server.port}/start?token=x")
        assert file.exists()
        assert client.get(link[1]).status_code == 200
    until(lambda: not file.parent.exists())


def test_the_file_for_the_browser_is_removed_with_its_link(
    opened: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where no browser comes."""
    seen: list[str] = []
    monkeypatch.setattr(handle, "has_browser", lambda: True)
    monkeypatch.setattr(handle, "LINK_SECONDS", 0.05)
    monkeypatch.setattr(webbrowser, "open", seen.append)
    opened(browser=True)
    file = Path(unquote(urlparse(seen[0]).path))
    until(lambda: not file.parent.exists())


def test_the_link_is_printed_without_a_browser(
    opened: Opened, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("SSH_CONNECTION", "1")
    monkeypatch.setattr(webbrowser, "open", lambda address: pytest.fail(address))
    made = opened(browser=True)
    said = capsys.readouterr().out
    port = made._server.port
    assert f"http://127.0.0.1:{port}/start?token=" in said
    assert f"ssh -L {port}:127.0.0.1:{port} " in said


@pytest.mark.parametrize(
    "name", ["<img src=x onerror=alert(1)>", "</title><script>alert(1)<", "a&lt;b", "{{token}}", '"><b>']
)
def test_hostile_names_of_data_are_escaped(
    name: str, tmp_path: Path, opened: Opened, entered: Entered
) -> None:
    path = tmp_path / f"{name.replace(os.sep, '%')}.npy"
    np.save(path, digits(30)[0])
    page = entered(opened(path))
    text = page.client.get("/").text
    found = re.search("<title>(.*)</title>", text)
    assert found
    assert "<" not in found[1]
    assert not re.search("&(?!amp;|lt;)", found[1])
    assert found[1].replace("&lt;", "<").replace("&amp;", "&") == f"{path.name}: labels"
    # The page has its token in one place.
    assert text.count(page.token) == 1
    assert page.state["name"] == path.name


def test_hostile_cells_are_data(opened: Opened, entered: Entered) -> None:
    """As JSON with its own type, which no browser shows as a page."""
    import pandas as pd

    bad = "<script>alert(1)</script>"
    X, _ = digits(30)
    made = opened(pd.DataFrame(X[:, 20:24], columns=[*"abcd"]).assign(note=bad))
    page = entered(made)
    row = free_rows(made)[0]
    answer = page.client.get("/api/items", params={"rows": row})
    assert answer.headers["content-type"] == "application/json"
    assert answer.json()["items"][0]["cells"][-1] == ["note", bad]
    assert bad not in page.client.get("/").text


def test_the_api_says_what_to_do_without_a_cookie(page: Page) -> None:
    """As JSON: a page that was open before the server began again shows the error as it is."""
    with httpx.Client(base_url=page.address, timeout=LIMIT, trust_env=False, verify=False) as stranger:
        answer = stranger.get("/api/state")
    assert answer.status_code == 403
    assert "needs a new link" in answer.json()["error"]


def test_the_largest_body_is_a_megabyte() -> None:
    assert LARGEST_BODY == 1_048_576
