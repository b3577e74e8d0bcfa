"""A browser without a screen: a client with the cookie and the token of a labeling page."""

import json
import re
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import numpy.typing as npt
from sklearn.datasets import load_digits

from ebse.labeling import Labeling

Array = npt.NDArray[Any]

LIMIT = 120.0
"""Seconds until a condition that never holds fails a test; nothing waits as long as this."""


def digits(n: int = 150) -> tuple[Array, list[str]]:
    """Images of digits as rows of 64 pixels, and their names."""
    X, y = load_digits(return_X_y=True)
    return X[:n], [str(c) for c in y[:n]]


def until(holds: Callable[[], Any], what: str = "the condition") -> Any:
    """The first value of a condition that is true."""
    end = time.monotonic() + LIMIT
    while not (found := holds()):
        assert time.monotonic() < end, f"{what} did not come true"
        time.sleep(0.01)
    return found


def key() -> str:
    """A key for an event."""
    return uuid.uuid4().hex


class Page:
    """A tab that opened a link."""

    def __init__(self, link: str) -> None:
        self.address = link.split("/start")[0]
        self.client = httpx.Client(base_url=self.address, timeout=LIMIT, trust_env=False, verify=False)
        answer = self.client.get(link)
        assert answer.status_code == 200
        found = re.search(r'name="ebse-token" content="([^"]+)"', self.client.get("/").text)
        assert found is not None
        self.token = found[1]
        self.headers = {"origin": self.address, "x-ebse-token": self.token}

    def get(self, path: str, **query: Any) -> Any:
        """What a path holds, which must be there."""
        answer = self.client.get(path, params=query)
        assert answer.status_code == 200, answer.text
        return answer.json()

    def post(self, path: str, body: Any = None) -> httpx.Response:
        """The answer to a request of the page."""
        return self.client.post(path, json={} if body is None else body, headers=self.headers)

    def send(self, kind: str, **fields: Any) -> Any:
        """The answer to an event, which must be accepted; ``of`` and ``by`` are its class and its source."""
        if "of" in fields:
            fields["class"] = fields.pop("of")
        if "by" in fields:
            fields["from"] = fields.pop("by")
        answer = self.post("/api/event", {"type": kind, "key": key(), **fields})
        assert answer.status_code == 200, answer.text
        return answer.json()

    def label(self, row: int, name: str, by: str = "own") -> Any:
        """Give one row a label."""
        return self.send("label", rows=[row], of=name, by=by)

    def teach(self, rows: list[int], names: list[str], by: str = "own") -> None:
        """Give rows the labels that are theirs among ``names`` of all rows: one event for each class."""
        for name in dict.fromkeys(names[row] for row in rows):
            self.send("label", rows=[row for row in rows if names[row] == name], of=name, by=by)

    @property
    def state(self) -> Any:
        """The state now."""
        return self.get("/api/state")

    def until(self, holds: Callable[[Any], Any]) -> Any:
        """The first state of which something holds."""

        def found() -> Any:
            state = self.state
            return state if holds(state) else None

        return until(found, "a state")

    def learned(self, members: str | None = None) -> Any:
        """The state once the model has learned from all events."""
        return self.until(
            lambda s: (
                s["phase"] == "ready"
                and s["version"]
                and s["n_events_seen"] == s["n_events"]
                and members in (None, s["members"])
            )
        )

    def stream(self) -> Iterator[Any]:
        """States that the server sends by itself."""
        with self.client.stream("GET", "/api/stream") as answer:
            assert answer.headers["content-type"].startswith("text/event-stream")
            for line in answer.iter_lines():
                if line.startswith("data: "):
                    yield json.loads(line[6:])


def free_rows(made: Labeling) -> list[int]:
    """Rows that may get labels: all but those of the audit."""
    held = made._session
    return [row for row in range(len(held.items)) if row not in held._audit_set]


def logged(folder: Path) -> list[Any]:
    """Events on the disk."""
    path = folder / "rows.jsonl"
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
