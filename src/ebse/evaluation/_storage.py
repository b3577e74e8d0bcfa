"""Checkpoint of an evaluation: a line of configuration, then a line per method, n_shots and episode."""

import hashlib
import json
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from ebse import _jsonl
from ebse._atomic import in_place

FORMAT = "ebse few-shot rows 1"

Row = dict[str, Any]
"""method, n_shots, episode, accuracy."""
Group = tuple[str, int]
"""A method and a number of shots."""


class Checkpoint:
    """Rows of finished episodes in a JSON Lines file; an incomplete last line is dropped."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        self._header, self._rows = self._read()

    @property
    def key(self) -> int | None:
        """The key of the episodes in the file, None without one."""
        return None if self._header is None else int(self._header["key"])

    def open(self, configuration: Row) -> dict[Group, dict[int, float]]:
        """Accuracies by group and episode in the file, which must have this configuration; or a new file."""
        configuration = json.loads(json.dumps(configuration))
        if self._header is None:
            with in_place(self.path) as temporary:
                temporary.write_text(json.dumps({"format": FORMAT} | configuration) + "\n")
            return {}
        for name, now in configuration.items():
            was = self._header.get(name)
            if was != now:
                if isinstance(was, dict) and isinstance(now, dict):
                    name, was, now = _first_difference(name, was, now)
                raise ValueError(
                    f"checkpoint must be a file of this configuration, but {self.path} has {name} = {was!r}, "
                    f"got {now!r}; pass the same arguments, or another path"
                )
        _jsonl.drop_incomplete_line(self.path)
        done: dict[Group, dict[int, float]] = {}
        for row in self._rows:
            done.setdefault((row["method"], row["n_shots"]), {})[row["episode"]] = row["accuracy"]
        return done

    def add(self, rows: Iterable[Row]) -> None:
        """Append rows; they are on the disk when this returns."""
        _jsonl.append(self.path, rows)

    def _read(self) -> tuple[Row | None, list[Row]]:
        """Header and rows."""
        if not self.path.exists():
            return None, []
        try:
            header, *rows = _jsonl.read(self.path)
            if header["format"] != FORMAT or not all({"method", "accuracy"} <= row.keys() for row in rows):
                raise ValueError
        except (ValueError, KeyError, TypeError, AttributeError):
            raise ValueError(
                f"checkpoint must be a file that few_shot wrote, got {self.path}; pass another path"
            ) from None
        return header, rows


def _first_difference(name: str, was: Row, now: Row) -> tuple[str, Any, Any]:
    """The first entry in which two descriptions differ."""
    part = next(part for part in [*now, *was] if was.get(part) != now.get(part))
    return f"{name}[{part!r}]", was.get(part), now.get(part)


def checksum(x: Any) -> str:
    """SHA-256 of an array's or csr matrix's shape, type and values."""
    digest = hashlib.sha256()
    parts = (x.data, x.indices, x.indptr) if hasattr(x, "indptr") else (x,)
    digest.update(repr((x.shape, str(x.dtype))).encode())
    for part in parts:
        array = np.atleast_1d(np.asarray(part))
        # In blocks, because an array on disk may be larger than memory.
        n = max(1, 2**24 // max(1, array[:1].nbytes))
        for start in range(0, len(array), n):
            block = np.ascontiguousarray(array[start : start + n])
            digest.update(repr(block.tolist()).encode() if block.dtype.hasobject else block.tobytes())
    return digest.hexdigest()
