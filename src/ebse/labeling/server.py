"""The server of the labeling page: routes, a stream of changes, and the thread in which it runs."""

import asyncio
import errno
import json
import socket
import threading
from importlib import resources
from pathlib import Path
from typing import Any, final

import uvicorn
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import ClientDisconnect, Request
from starlette.responses import (
    FileResponse,
    HTMLResponse,
    JSONResponse,
    Response,
    StreamingResponse,
)
from starlette.routing import Route

from ebse._validation import option
from ebse.labeling.export import DOWNLOADS, FOLDER, export
from ebse.labeling.security import Guard, Tokens
from ebse.labeling.session import HOWS, ORDERS, Session

ADDRESS = "127.0.0.1"
MOST = 300
"""Rows of one answer."""
BREATH = 15.0
"""Seconds after which a silent stream sends something, so that a lost browser is noticed."""
GAP = 0.05
"""Seconds between two states of a stream: progress may be announced hundreds of times a second."""
FULL = (errno.ENOSPC, errno.EDQUOT)
"""Errors of a disk, or of a user's part of it, that is full."""
TYPES = {".js": "text/javascript", ".css": "text/css", ".html": "text/html"}


def application(session: Session, tokens: Tokens) -> Guard:
    """The ASGI application of a session."""
    static = {
        path.name: path.read_bytes()
        for path in (resources.files("ebse.labeling") / "static").iterdir()
        if Path(path.name).suffix in TYPES
    }

    async def page(request: Request) -> Response:
        text = static["index.html"].decode()
        title = f"{session.name}: labels".replace("&", "&amp;").replace("<", "&lt;")
        return HTMLResponse(text.replace("{{token}}", tokens.page).replace("{{title}}", title))

    async def file(request: Request) -> Response:
        name = request.path_params["name"]
        if name not in static or name == "index.html":
            return Response(status_code=404)
        return Response(static[name], media_type=TYPES[Path(name).suffix])

    async def nothing(request: Request) -> Response:
        return Response(status_code=204)

    async def state(request: Request) -> Response:
        return JSONResponse(await run_in_threadpool(session.state))

    async def stream(request: Request) -> Response:
        return StreamingResponse(_changes(session), media_type="text/event-stream")

    async def following(request: Request) -> Response:
        how = request.query_params.get("how", HOWS[0])
        option("how", how, HOWS)
        n = _count(request, "n", 8)
        items = await run_in_threadpool(session.next, how, n)
        return JSONResponse({"how": how, "items": items})

    async def items(request: Request) -> Response:
        rows = [_row(text, session) for text in request.query_params.get("rows", "").split(",")[:MOST]]
        return JSONResponse({"items": await run_in_threadpool(session.answered, rows)})

    async def image(request: Request) -> Response:
        try:
            row = _row(request.path_params["row"], session)
            held = await run_in_threadpool(session.items.image, row)
        except LookupError as error:
            return JSONResponse({"error": str(error)}, status_code=404)
        return Response(held, media_type="image/png")

    async def event(request: Request) -> Response:
        sent = await _body(request)
        try:
            number = await run_in_threadpool(session.add, sent)
        except OSError as error:
            if error.errno not in FULL:
                raise
            said = f"The label could not be saved: {error.strerror}. Free some space and try again."
            return JSONResponse({"error": said}, status_code=507)
        state = await run_in_threadpool(session.state)
        return JSONResponse({"id": number, "rows": session.shown_again(number), "state": state})

    async def gallery(request: Request) -> Response:
        how = request.query_params.get("how", ORDERS[0])
        option("how", how, ORDERS)
        name = request.query_params.get("class", "")
        found = await run_in_threadpool(session.gallery, name, how, _count(request, "n", 60))
        return JSONResponse({"items": found})

    async def doubtful(request: Request) -> Response:
        if request.method == "POST":
            await _body(request)
            if session.model is not None:
                session.model.look_for_doubtful_labels()
        return JSONResponse(await run_in_threadpool(session.doubtful))

    async def places(request: Request) -> Response:
        found = None if session.model is None else session.model.map
        if found is None:
            return Response(status_code=204)
        return Response(found.tobytes(), media_type="application/octet-stream")

    async def predictions(request: Request) -> Response:
        held = await run_in_threadpool(session.predictions)
        return Response(held, media_type="application/octet-stream")

    async def history(request: Request) -> Response:
        return JSONResponse({"events": await run_in_threadpool(session.history)})

    async def write(request: Request) -> Response:
        await _body(request)
        return JSONResponse(await run_in_threadpool(export, session))

    async def download(request: Request) -> Response:
        name = request.path_params["name"]
        place = session.folder / FOLDER / name
        if name not in DOWNLOADS or not place.is_file():
            return JSONResponse({"error": "there is no such file; export first"}, status_code=404)
        # Never shown as a page of this server.
        return FileResponse(place, filename=name, media_type="application/octet-stream")

    routes = [
        Route("/", page),
        Route("/static/{name}", file),
        Route("/favicon.ico", nothing),
        Route("/api/state", state),
        Route("/api/stream", stream),
        Route("/api/next", following),
        Route("/api/items", items),
        Route("/image/{row}", image),
        Route("/api/event", event, methods=["POST"]),
        Route("/api/gallery", gallery),
        Route("/api/doubtful", doubtful, methods=["GET", "POST"]),
        Route("/api/map", places),
        Route("/api/predictions", predictions),
        Route("/api/history", history),
        Route("/api/export", write, methods=["POST"]),
        Route("/download/{name}", download),
    ]
    return Guard(Starlette(routes=routes, exception_handlers={ValueError: _bad, OSError: _failed}), tokens)


async def _bad(request: Request, error: Exception) -> Response:
    return JSONResponse({"error": str(error)}, status_code=400)


async def _failed(request: Request, error: Exception) -> Response:
    return JSONResponse({"error": str(error)}, status_code=500)


async def _body(request: Request) -> Any:
    try:
        return json.loads(await request.body())
    except (ValueError, RecursionError, ClientDisconnect):
        raise ValueError("the request must hold JSON, got something else; load the page again") from None


def _count(request: Request, name: str, default: int) -> int:
    text = request.query_params.get(name, str(default))
    if not (text.isascii() and text.isdecimal() and len(text) < 9):
        raise ValueError(f"{name} must be a whole number, got {text[:20]!r}; correct it")
    return min(int(text), MOST)


def _row(text: str, session: Session) -> int:
    n = len(session.items)
    if not (text.isascii() and text.isdecimal() and len(text) < 12 and int(text) < n):
        raise ValueError(f"row must be a number from 0 to {n - 1}, got {text[:20]!r}; correct it")
    return int(text)


async def _changes(session: Session) -> Any:
    """Server-sent events: the state now, and after every change."""
    loop, changed = asyncio.get_running_loop(), asyncio.Event()

    def tell() -> None:
        # The loop ends before the threads that report to it.
        if not loop.is_closed():
            loop.call_soon_threadsafe(changed.set)

    end = session.listen(tell)
    try:
        while not session.closed.is_set():
            changed.clear()
            state = await run_in_threadpool(session.state)
            yield f"event: state\ndata: {json.dumps(state)}\n\n"
            await asyncio.sleep(GAP)
            try:
                await asyncio.wait_for(changed.wait(), BREATH)
            except TimeoutError:
                yield ": still here\n\n"
    finally:
        end()


@final
class Server:
    """A server on loopback in a thread of its own; a port of 0 is a free one."""

    def __init__(self, session: Session, *, port: int = 0) -> None:
        if not 0 <= port < 2**16:
            raise ValueError(
                f"port must be from 0 to {2**16 - 1}, got {port}; choose another, or leave it out"
            )
        # With the protocol: asyncio turns Nagle's algorithm off only where it is named, and 40 ms of each
        # answer are its wait for an acknowledgment.
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            self._socket.bind((ADDRESS, port))
            # At once: a browser that comes before the thread is there waits instead of being refused.
            self._socket.listen()
        except OSError as error:
            self._socket.close()
            raise OSError(
                f"port must be free, got {port} ({error.strerror}); choose another, or leave it out"
            ) from None
        self.port = int(self._socket.getsockname()[1])
        self.tokens = Tokens(self.port)
        config = uvicorn.Config(
            application(session, self.tokens),
            log_level="error",
            access_log=False,
            lifespan="off",
            server_header=False,
            date_header=False,
            timeout_graceful_shutdown=1,
            ws="none",
        )
        self._server = uvicorn.Server(config)
        self._thread = threading.Thread(target=self._run, name="ebse-server", daemon=True)

    def start(self) -> None:
        """Answer requests from now on."""
        self._thread.start()

    def _run(self) -> None:
        self._server.run(sockets=[self._socket])

    def stop(self) -> None:
        """Answer no more requests."""
        self._server.should_exit = True
        if self._thread.is_alive():
            self._thread.join(timeout=10)
        self._socket.close()
