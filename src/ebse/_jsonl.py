"""JSON Lines files: one JSON value per line, appended durably; an incomplete last line is ignored.

A process that is killed while it appends leaves at most one incomplete line, the last. :func:`read` returns
the complete lines, and :func:`drop_incomplete_line` removes the rest before new lines are appended.
"""

import json
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from ebse._atomic import flush


def read(path: Path) -> list[Any]:
    """Values of the complete lines of a file; none where the file does not exist.

    Raises ValueError where a complete line is not JSON.
    """
    if not path.exists():
        return []
    # Whatever follows the last line break is incomplete.
    lines = path.read_bytes().split(b"\n")[:-1]
    try:
        return [json.loads(line) for line in lines]
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{path} must hold one JSON value per line, got a damaged line") from error


def append(path: Path, rows: Iterable[Any]) -> None:
    """Append one line per row; they are on the disk when this returns.

    If that fails, for example because the disk is full, the file is as it was before.
    """
    lines = "".join(json.dumps(row) + "\n" for row in rows).encode()
    with path.open("ab", buffering=0) as file:
        before = file.tell()
        try:
            written = 0
            while written < len(lines):
                written += file.write(lines[written:])
            os.fsync(file.fileno())
            if not before:
                flush(path.parent)
        except OSError:
            os.truncate(path, before)
            raise


def drop_incomplete_line(path: Path) -> None:
    """Cut the file after its last complete line, so that the next row starts a line of its own."""
    if path.exists():
        content = path.read_bytes()
        complete = content.rfind(b"\n") + 1
        if complete < len(content):
            os.truncate(path, complete)
