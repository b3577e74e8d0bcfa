"""Results as files: csv tables for people, NumPy files for programs; every write is atomic."""

import csv
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ebse._atomic import in_place, write_npz
from ebse.io import Rows
from ebse.io.cells import escaped
from ebse.workflow.prediction import Predictions

SUFFIXES = (".csv", ".npy", ".npz")


def require_writable(path: Path, *, force: bool, suffixes: tuple[str, ...] = SUFFIXES) -> Path:
    """Refuse a name that cannot be written, or exists already, before any work is done."""
    if path.suffix.lower() not in suffixes:
        raise ValueError(f"--out must end in {', '.join(suffixes)}, got {path}; choose one of these")
    parent = next((p for p in path.parents if p.exists()), None)
    if parent is not None and not parent.is_dir():
        raise NotADirectoryError(
            f"--out must be in a folder, got {path}, and {parent} is a file; choose another"
        )
    if path.is_dir() or (path.exists() and not force):
        raise FileExistsError(f"--out must be new, got {path}, which exists; choose another, or pass --force")
    return path


def write_array(path: Path, X: npt.NDArray[Any], names: Sequence[str]) -> None:
    """An array: as npy, as npz under the name X, or as csv with a line of column names."""
    if path.suffix.lower() == ".csv":
        # Six digits are the precision of float32.
        write_table(path, names, ([f"{x:.6g}" for x in row] for row in X.tolist()))
    elif path.suffix.lower() == ".npz":
        write_npz(path, X=X)
    else:
        with in_place(path) as temporary, temporary.open("wb") as file:
            np.save(file, X, allow_pickle=False)


def write_predictions(path: Path, rows: Rows, found: Predictions) -> None:
    """A line for each row: its number, name or file, its label if it has one, the predicted class."""
    given = rows.labels if rows.labels is not None else [None] * len(rows.X)
    places = rows.files or range(1, len(rows.X) + 1)
    lines = (
        [place, "" if label is None else label, predicted, *(f"{x:.4f}" for x in p)]
        for place, label, predicted, p in zip(places, given, found.labels, found.probabilities, strict=True)
    )
    write_table(path, ["row", "label", "predicted", *(f"p({name})" for name in found.classes)], lines)


def write_labeled(path: Path, X: Any, y: Any, label: str) -> None:
    """A line for each row of the frame X, with its label in the last column; missing entries are empty."""
    days = X.select_dtypes("timedelta")
    # As the classifier reads them.
    X = X.assign(**{name: days[name].dt.total_seconds() / 86_400 for name in days})
    rows = X.astype(object).where(X.notna(), "").itertuples(index=False, name=None)
    write_table(
        path, [*map(str, X.columns), label], ([*row, word] for row, word in zip(rows, y, strict=True))
    )


def write_table(path: Path, names: Sequence[str], lines: Iterable[Sequence[Any]]) -> None:
    """A csv file with a line of column names; no cell is a formula to a spreadsheet program."""
    with in_place(path) as temporary, temporary.open("w", newline="", encoding="utf-8") as file:
        table = csv.writer(file)
        table.writerow([escaped(str(name)) for name in names])
        table.writerows([escaped(str(cell)) for cell in line] for line in lines)
