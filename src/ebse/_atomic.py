"""Atomic writes: a file is written under a temporary name, flushed to disk, then renamed."""

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any


@contextmanager
def in_place(path: Path) -> Iterator[Path]:
    """A temporary path to write to; renamed to ``path`` on success, removed on failure.

    The temporary file is there, empty, under a name that nobody can predict. Threads and processes may write
    the same path: each has a temporary file of its own, and the last one to finish is kept.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    # Shortened, because file systems limit names to 255 bytes.
    temporary = path.with_name(f".{path.name[:40]}.{os.getpid()}.{secrets.token_hex(8)}.partial")
    # Exclusive creation follows no symbolic link. Unlike tempfile's, the mode is that of the umask.
    temporary.open("xb").close()
    try:
        yield temporary
        flush(temporary)
        os.replace(temporary, path)
        flush(path.parent)
    finally:
        temporary.unlink(missing_ok=True)


def remove_partial(folder: Path) -> None:
    """Remove temporary files that killed processes left in a folder."""
    for path in folder.glob(".*.partial"):
        pid = path.name.split(".")[-2]
        if pid.isdecimal() and not _is_running(int(pid)):
            path.unlink(missing_ok=True)


def _is_running(pid: int) -> bool:
    """Whether a process of this machine has the number."""
    if os.name != "posix":
        # Elsewhere signal 0 would end the process.
        return True
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except (OverflowError, PermissionError):
        return True
    return True


def write_npz(path: Path, **arrays: Any) -> None:
    """Write arrays by name to an npz file, atomically.

    Uncompressed: readers refuse files that unpack to hundreds of times their size, as one-hot rows would.
    """
    import numpy as np

    with in_place(path) as temporary, temporary.open("wb") as file:
        np.savez(file, **arrays)


def flush(path: Path) -> None:
    """Force a file's content, or a folder's entries, to disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
