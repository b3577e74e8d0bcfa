"""Damaged runs."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from cli.bad_files import NAMES, few_labels, labeled

Change = Callable[[Path], object]


class Bad(NamedTuple):
    """Runs to copy, a command line, a part of the expected error, and a change of the folder."""

    runs: str
    line: str
    piece: str
    change: Change = lambda folder: None


def rows(content: bytes, name: str = "new.csv") -> Change:
    """Adds a file."""
    return lambda folder: (folder / name).write_bytes(content)


def without(name: str) -> Change:
    """Removes a file."""
    return lambda folder: (folder / name).unlink()


def reconfigured(run: str, **settings: object) -> Change:
    """Changes settings in the header of a run."""

    def change(folder: Path) -> None:
        path = folder / run / "config.json"
        header = json.loads(path.read_text())
        header["config"] |= {
            name: str(folder / str(x)) if name == "data" else x for name, x in settings.items()
        }
        path.write_text(json.dumps(header))

    return change


def cut(name: str) -> Change:
    """Cuts a file in half."""

    def change(folder: Path) -> None:
        content = (folder / name).read_bytes()
        (folder / name).write_bytes(content[: len(content) // 2])

    return change


def both(*changes: Change) -> Change:
    """Several changes, one after the other."""
    return lambda folder: [change(folder) for change in changes]


WORDS = few_labels()
NEW = labeled(WORDS)
FIVE = labeled(WORDS, names=NAMES[:5])
OTHERS = NEW.replace(b"0,1", b"1,1")
NO_LABELS = labeled([""] * 40)
