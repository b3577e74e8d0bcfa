"""Run folders, of an experiment or a fit: configuration, versions, and one line of JSON per result."""

import json
import math
import os
import platform
import weakref
from collections.abc import Callable, Sequence
from dataclasses import asdict
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, NamedTuple, final

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

from ebse import __version__, _jsonl
from ebse._atomic import in_place
from ebse.workflow.accuracy import HOWS

FORMAT = "ebse experiment 1"
CONFIG, ROWS, LOCK = "config.json", "rows.jsonl", ".lock"

PACKAGES = ("torch", "numpy", "scipy", "scikit-learn", "numba")

Row = dict[str, Any]


class Step(NamedTuple):
    """Progress of an experiment: the last step, and how much of the work is done."""

    text: str
    done: float
    total: float
    unit: str = ""
    """What is counted, where steps are small and alike."""


@final
class Lock:
    """An exclusive lock on a folder, held until it is released, where the system has locks."""

    def __init__(self, folder: Path) -> None:
        self.release: Callable[[], object] = _nothing
        """Give the folder free; also done when the object is gone."""
        if fcntl is None:
            return
        descriptor = os.open(folder / LOCK, os.O_RDWR | os.O_CREAT, 0o666)
        self.release = weakref.finalize(self, os.close, descriptor)
        try:
            fcntl.lockf(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except (BlockingIOError, PermissionError):
            raise BlockingIOError(
                f"folder must be free, got {folder}, which another process is using; wait for it, or "
                "choose another folder"
            ) from None
        except OSError:
            # Some file systems have no locks.
            return


def _nothing() -> None:
    pass


@final
class Run:
    """A run folder that is written to; each result is on the disk before the next piece of work begins.

    ``data`` is a checksum of the data, where they are files that may change between two calls.
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
            raise NotADirectoryError(
                f"folder must be a folder, got the file {self.folder}; choose another name"
            )
        if not header.exists() and _is_foreign(self.folder):
            raise FileExistsError(
                f"folder must be new, empty or a run of this experiment, got {self.folder}; choose another"
            )
        self.folder.mkdir(parents=True, exist_ok=True)
        self._lock = lock or Lock(self.folder)
        # The lock is held: temporary files are left over from a process that was killed.
        for leftover in leftovers(self.folder):
            leftover.unlink(missing_ok=True)
        self.rows = read_results(self.folder)
        if header.exists() and (self.rows or self._is_same(header, now)):
            self._require_same(read_header(self.folder), now)
        else:
            # Settings of a run that has no result yet may change.
            with in_place(header) as temporary:
                temporary.write_text(json.dumps(now | {"versions": versions()}, indent=1) + "\n")
        _jsonl.drop_incomplete_line(self.folder / ROWS)

    def close(self) -> None:
        """Let others use the folder; nothing more can be added."""
        self._lock.release()

    def place(self, name: str) -> Path:
        """The path of a file of the run; raises if the folder was removed, which nothing may recreate."""
        if not (self.folder / CONFIG).exists():
            raise FileNotFoundError(
                f"{self.folder} must stay in place until the run is finished, got a folder that was "
                "removed or moved meanwhile; begin again"
            )
        return self.folder / name

    def add(self, row: Row) -> None:
        """Append a result, and have it on the disk."""
        row = _plain(row)
        _jsonl.append(self.place(ROWS), [row])
        self.rows.append(row)

    def replace(self, rows: Sequence[Row], *, key: Sequence[str]) -> None:
        """Write results in place of those that have the same values under all names of ``key``."""
        new = [_plain(row) for row in rows]
        replaced = [[row.get(name) for name in key] for row in new]
        kept = [row for row in self.rows if [row.get(name) for name in key] not in replaced]
        with in_place(self.place(ROWS)) as temporary:
            temporary.write_text("".join(json.dumps(row) + "\n" for row in (*kept, *new)))
        self.rows = [*kept, *new]

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
                f"{was['experiment']}; choose another folder"
            )
        differing = [name for name, value in now["config"].items() if was["config"].get(name) != value]
        if differing:
            name = differing[0]
            raise ValueError(
                f"{name} must be {was['config'].get(name)!r} as in the run in {self.folder}, got "
                f"{now['config'][name]!r}; repeat the settings of the run, or choose another folder"
            )
        if was.get("data") != now["data"]:
            raise ValueError(
                f"the data must be those that the run in {self.folder} began with, got others; restore "
                "them, or choose another folder"
            )


def leftovers(folder: Path) -> list[Path]:
    """Temporary files that a killed process left in a folder."""
    return [path for path in folder.glob(".*.partial") if path.is_file() and not path.is_symlink()]


def read_header(folder: str | Path) -> Row:
    """Configuration and versions of a run."""
    path = Path(folder) / CONFIG
    try:
        header: Row = json.loads(path.read_text(encoding="utf-8"))
        sound = (
            header["format"] == FORMAT
            and isinstance(header["config"], dict)
            and isinstance(header["versions"], dict)
            and isinstance(header["experiment"], str)
        )
        if not sound:
            raise ValueError
    except (FileNotFoundError, NotADirectoryError):
        raise FileNotFoundError(
            f"folder must be a run, got {folder}, which has no {CONFIG}; make one with `ebse fit` or "
            "`ebse experiment`"
        ) from None
    except (ValueError, KeyError, TypeError, RecursionError):
        raise ValueError(
            f"{path} must be written by ebse, got something else; restore it, or choose another folder"
        ) from None
    return header


def read_results(folder: str | Path) -> list[Row]:
    """All results of a run, also of one that is not finished."""
    path = Path(folder) / ROWS
    try:
        rows = _jsonl.read(path)
        if not all(isinstance(row, dict) and _is_sound(row) for row in rows):
            raise ValueError
    except (ValueError, RecursionError):
        raise ValueError(
            f"{path} must hold a line of JSON for each result, got a damaged one; restore it, or choose "
            "another folder"
        ) from None
    return rows


def versions() -> dict[str, str]:
    """Versions of the packages that results depend on."""
    found = {"ebse": __version__, "python": platform.python_version()}
    for name in PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = "unknown"
    return found


def _is_sound(row: Row) -> bool:
    """Whether a result has a kind, and the fields of that kind with their types."""
    return isinstance(row.get("kind"), str) and all(
        holds(row[name]) if name in row else name in OPTIONAL
        for name, holds in FIELDS.get(row["kind"], {}).items()
    )


def _is_count(x: Any) -> bool:
    return isinstance(x, int) and not isinstance(x, bool) and 0 <= x < 2**53


def _is_number(x: Any) -> bool:
    return isinstance(x, (int, float)) and not isinstance(x, bool) and math.isfinite(x)


def _is_counts(x: Any) -> bool:
    return isinstance(x, dict) and all(map(_is_count, x.values()))


def _is_history(x: Any) -> bool:
    # Monitors may be NaN, for one before the first is computed.
    return isinstance(x, list) and all(
        isinstance(row, dict) and all(isinstance(value, (int, float)) for value in row.values()) for row in x
    )


def _is_rows(x: Any) -> bool:
    return isinstance(x, list) and all(_is_count(n) and n > 0 for n in x)


def _is_keys(x: Any) -> bool:
    return isinstance(x, list) and all(map(_is_count, x))


def _is_table(*types: Any) -> Any:
    """Whether a value is a list of lists of these types."""
    return lambda x: (
        isinstance(x, list)
        and all(
            isinstance(line, list) and len(line) == len(types) and all(map(isinstance, line, types))
            for line in x
        )
    )


def _is_accuracy(x: Any) -> bool:
    """Whether it is how, and for each class right answers and all."""
    return (
        _is_table(str, list)([x])
        and x[0] in HOWS
        and _is_table(str, int, int)(x[1])
        and len(x[1]) > 0
        and all(0 <= right <= n and n > 0 for _, right, n in x[1])
    )


NUMBER = (int, float)
SOURCES = ("members", "draws", "mean")
"""Where the predictions of a fit come from: members of the classifier for few labels, sampled
representations, or their mean."""
FIELDS = {
    "finished": {"n_rows": _is_count, "n_columns": _is_count},
    "labels": {
        "labels": _is_counts,
        "predicted": _is_counts,
        "never": lambda x: isinstance(x, list) and all(isinstance(name, str) for name in x),
        "n_sweeps": _is_count,
        "source": lambda x: x in SOURCES,
    },
    "suggested": {"keys": _is_keys},
    "members": {
        "columns": _is_table(str, str, str),
        "members": _is_table(str, NUMBER, str),
        "prior": _is_table(str, NUMBER, NUMBER),
        "accuracy": lambda x: x is None or _is_accuracy(x),
        "n_chosen": _is_count,
        "largest": lambda x: _is_table(str, NUMBER)([x]),
        "matters": _is_table(str, NUMBER),
        "doubtful": _is_rows,
        "votes": _is_table(str, list),
        "far": lambda x: _is_table(int, NUMBER)(x) and all(n > 0 for n, _ in x),
        "label_next": _is_rows,
        "next_keys": _is_keys,
        "contents": lambda x: _is_table(list, list)([x]) and all(isinstance(line, list) for line in x[1]),
    },
    "training": {
        "model": lambda x: isinstance(x, str),
        "seconds": _is_number,
        "history": _is_history,
    },
    "accuracy": {
        "method": lambda x: isinstance(x, str),
        "n_shots": _is_count,
        "seed": lambda x: x is None or _is_count(x),
        "accuracies": lambda x: isinstance(x, list) and len(x) > 0 and all(map(_is_number, x)),
        "baseline": lambda x: isinstance(x, str),
    },
}
"""Fields of the results that fits and experiments share, for files that somebody edited."""
OPTIONAL = ("never", "n_sweeps", "seconds", "baseline")
"""Fields that may be absent."""


def _is_foreign(folder: Path) -> bool:
    """Whether a folder holds anything but the leftovers of a run that was killed as it began."""
    return folder.exists() and any(
        path.name != LOCK and not path.name.endswith(".partial") for path in folder.iterdir()
    )


def _plain(x: Any) -> Any:
    """As JSON gives it back: lists for tuples, no types of NumPy."""
    return json.loads(json.dumps(x, default=lambda value: value.item()))
