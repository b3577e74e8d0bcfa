"""Finished episodes on disk: a line of configuration, then a line per method, n_shots and episode."""

import hashlib
import json
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from ebse._atomic import in_place

FORMAT = "ebse few-shot rows 1"

Row = dict[str, Any]
"""method, n_shots, episode, accuracy."""
Group = tuple[str, int]
"""A method and a number of shots."""


class Checkpoint:
    """Rows that survive: what was added is on the disk, and a torn last line is forgotten."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        self._header, self._rows, self._sound = self._read()

    @property
    def key(self) -> int | None:
        """The key of the episodes in the file, None without one."""
        return None if self._header is None else int(self._header["key"])

    def open(self, configuration: Row) -> dict[Group, dict[int, float]]:
        """Accuracies by group and episode in a file of this configuration; a new file is begun."""
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
        if self._sound < self.path.stat().st_size:
            # The next row must not continue a torn line.
            os.truncate(self.path, self._sound)
        done: dict[Group, dict[int, float]] = {}
        for row in self._rows:
            done.setdefault((row["method"], row["n_shots"]), {})[row["episode"]] = row["accuracy"]
        return done

    def add(self, rows: Iterable[Row]) -> None:
        """Append rows, and have them on the disk."""
        with self.path.open("a") as file:
            file.writelines(json.dumps(row) + "\n" for row in rows)
            file.flush()
            os.fsync(file.fileno())

    def _read(self) -> tuple[Row | None, list[Row], int]:
        """Header, rows, and the length in bytes of the lines that are whole."""
        if not self.path.exists():
            return None, [], 0
        # Whatever follows the last end of a line was torn.
        lines = self.path.read_bytes().split(b"\n")[:-1]
        try:
            header, *rows = [json.loads(line) for line in lines]
            if header["format"] != FORMAT or not all({"method", "accuracy"} <= row.keys() for row in rows):
                raise ValueError
        except (ValueError, KeyError, TypeError, AttributeError):
            raise ValueError(
                f"checkpoint must be a file that few_shot wrote, got {self.path}; pass another path"
            ) from None
        return header, rows, sum(len(line) + 1 for line in lines)


def _first_difference(name: str, was: Row, now: Row) -> tuple[str, Any, Any]:
    """The first part that two descriptions differ in."""
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
