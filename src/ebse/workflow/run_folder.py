"""A run on disk, of an experiment or a fit: configuration, versions, and a line of JSON for every result."""

import json
import os
import platform
import weakref
from dataclasses import asdict
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, NamedTuple, final

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

from ebse import __version__
from ebse._atomic import in_place

FORMAT = "ebse experiment 1"
CONFIG, ROWS, LOCK = "config.json", "rows.jsonl", ".lock"

PACKAGES = ("torch", "numpy", "scipy", "scikit-learn", "numba")

Row = dict[str, Any]


class Step(NamedTuple):
    """Where an experiment is: what it did last, and how much work is behind it."""

    text: str
    done: float
    total: float
    unit: str = ""
    """What is counted, where steps are small and alike."""


@final
class Lock:
    """Keeps other processes from a folder as long as it lives, where the system knows locks."""

    def __init__(self, folder: Path) -> None:
        if fcntl is None:
            return
        descriptor = os.open(folder / LOCK, os.O_RDWR | os.O_CREAT)
        weakref.finalize(self, os.close, descriptor)
        try:
            fcntl.lockf(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except (BlockingIOError, PermissionError):
            raise BlockingIOError(
                f"folder must be free, got {folder}, on which another process is at work; wait for it, or "
                "give another one"
            ) from None
        except OSError:
            # Some file systems have no locks.
            return


@final
class Run:
    """Results that survive: every line is on the disk when the next piece of work begins.

    ``data`` is a checksum of what the run is made of, where files may change between two calls.
    """

    def __init__(
        self,
        folder: str | Path,
        experiment: str,
        config: Any,
        *,
        data: int | None = None,
        lock: "Lock | None" = None,
    ) -> None:
        self.folder = Path(folder)
        self.experiment, self.config = experiment, config
        header = self.folder / CONFIG
        now = {"format": FORMAT, "experiment": experiment, "config": _plain(asdict(config)), "data": data}
        if self.folder.is_file():
            raise NotADirectoryError(f"folder must be a folder, got the file {self.folder}; give another one")
        if not header.exists() and _foreign(self.folder):
            raise FileExistsError(
                f"folder must be new, empty or a run of this experiment, got {self.folder}; give another one"
            )
        self.folder.mkdir(parents=True, exist_ok=True)
        self._lock = lock or Lock(self.folder)
        self.rows, sound = _read_results(self.folder / ROWS)
        if header.exists() and (self.rows or self._is_same(header, now)):
            self._require_same(read_header(self.folder), now)
        else:
            # Settings without a result bind nobody.
            with in_place(header) as temporary:
                temporary.write_text(json.dumps(now | {"versions": versions()}, indent=1) + "\n")
        if sound is not None:
            # The next line must not continue a torn one.
            os.truncate(self.folder / ROWS, sound)

    def add(self, row: Row) -> None:
        """Append a result, and have it on the disk."""
        row = _plain(row)
        with (self.folder / ROWS).open("a") as file:
            file.write(json.dumps(row) + "\n")
            file.flush()
            os.fsync(file.fileno())
        self.rows.append(row)

    def has(self, **known: Any) -> bool:
        """Whether there is a result with these values."""
        return any(all(row.get(name) == value for name, value in known.items()) for row in self.rows)

    def _is_same(self, header: Path, now: Row) -> bool:
        was = read_header(header.parent)
        return all(was.get(name) == now[name] for name in ("format", "experiment", "config", "data"))

    def _require_same(self, was: Row, now: Row) -> None:
        if was["experiment"] != now["experiment"]:
            raise ValueError(
                f"folder must be a run of {now['experiment']}, got {self.folder}, one of "
                f"{was['experiment']}; give another one"
            )
        differing = [name for name, value in now["config"].items() if was["config"].get(name) != value]
        if differing:
            name = differing[0]
            raise ValueError(
                f"{name} must be {was['config'].get(name)!r} as in the run in {self.folder}, got "
                f"{now['config'][name]!r}; repeat the settings of the run, or give another folder"
            )
        if was.get("data") != now["data"]:
            raise ValueError(
                f"the data must be those that the run in {self.folder} began with, got others; give "
                "these back, or another folder"
            )


def read_header(folder: str | Path) -> Row:
    """Configuration and versions of a run."""
    path = Path(folder) / CONFIG
    try:
        header: Row = json.loads(path.read_text())
        if header["format"] != FORMAT or not isinstance(header["config"], dict):
            raise ValueError
        header["experiment"], header["versions"]
    except (FileNotFoundError, NotADirectoryError):
        raise FileNotFoundError(
            f"folder must be a run, got {folder}, which has no {CONFIG}; make one with `ebse fit` or "
            "`ebse experiment`"
        ) from None
    except (ValueError, KeyError, TypeError, RecursionError):
        raise ValueError(
            f"{path} must be written by ebse, got something else; restore it, or give another folder"
        ) from None
    return header


def read_results(folder: str | Path) -> list[Row]:
    """All results of a run, also of one that is not finished."""
    return _read_results(Path(folder) / ROWS)[0]


def versions() -> dict[str, str]:
    """Of everything that decides a result."""
    found = {"ebse": __version__, "python": platform.python_version()}
    for name in PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = "unknown"
    return found


def _read_results(path: Path) -> tuple[list[Row], int | None]:
    """Whole lines, and the length in bytes of these where a torn one follows."""
    if not path.exists():
        return [], None
    content = path.read_bytes()
    whole = content[: content.rfind(b"\n") + 1]
    try:
        rows = [json.loads(line) for line in whole.splitlines()]
        if not all(isinstance(row, dict) and isinstance(row.get("kind"), str) for row in rows):
            raise ValueError
    except (ValueError, RecursionError):
        raise ValueError(
            f"{path} must hold a line of JSON for each result; it is damaged; restore it, or give "
            "another folder"
        ) from None
    return rows, None if len(whole) == len(content) else len(whole)


def _foreign(folder: Path) -> bool:
    """Whether a folder holds something that is none of a run that was killed as it began."""
    return folder.exists() and any(
        path.name != LOCK and not path.name.endswith(".partial") for path in folder.iterdir()
    )


def _plain(x: Any) -> Any:
    """As JSON gives it back: lists for tuples, no types of NumPy."""
    return json.loads(json.dumps(x, default=lambda value: value.item()))
