"""The result of every reader: rows, with what their file says about them."""

import re
from collections.abc import Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ebse._validation import LARGEST

Numbers = npt.NDArray[Any]
Labels = npt.NDArray[np.object_]

MISSING_LABELS = frozenset(("", "na", "n/a", "nan", "<na>", "nat", "null", "?"))
"""Texts of a missing label, in any case; also "None", as Python writes it, while "none" is a class."""
SHOWN = 8
"""Names that an error message lists."""


class Rows(NamedTuple):
    """Rows X (N, D) of a file or a folder."""

    path: Path
    X: Any
    """An array of floats, or of unsigned bytes of images; of a table read with ``raw`` a pandas frame."""
    names: tuple[str, ...]
    """Names of the columns; numbers from 0 on where a file has none."""
    labels: Labels | None = None
    """A text for each row, None where a row has no label; None altogether where no label column was named."""
    shape: tuple[int, int] | None = None
    """Height and width, where rows are images."""
    files: tuple[str, ...] | None = None
    """Names of the rows: the file of each image, or the entry of the column named by --id."""
    notes: tuple[str, ...] = ()
    """Decisions made while reading that the user should know."""


def numbered(n: int) -> tuple[str, ...]:
    """Names of columns that have none."""
    return tuple(map(str, range(n)))


def word(value: Any) -> str:
    """A label as text: 3, 3.0 and "3" are the same."""
    if isinstance(value, (float, np.floating)) and float(value).is_integer():
        value = int(value)
    text = str(value).strip()
    return text.partition(".")[0] if re.fullmatch(r"[-+]?\d+\.0*", text) else text


def label_of(value: Any) -> str | None:
    """A label as text, or None for a missing one; the same in files of every format.

    >>> [label_of(value) for value in ("red", 3.0, "none", "None", " NA", float("nan"))]
    ['red', '3', 'none', None, None, None]
    """
    text = word(value)
    return None if text == "None" or text.lower() in MISSING_LABELS else text


def bad(path: Path, must: str, got: str, remedy: str) -> ValueError:
    """The error of a file that cannot be used: what it must be, what it is, and what to do."""
    return ValueError(f"{path} must {must}, got {got}; {remedy}")


def missing_entry(path: Path, place: str) -> ValueError:
    """The error of a missing entry where --missing was not given."""
    return bad(
        path,
        "have a number everywhere",
        f"a missing one {place}",
        "fill it in, name its column with --label if it holds labels, or fit with --missing to have missing "
        "entries imputed",
    )


def require_finite(path: Path, X: Numbers, names: tuple[str, ...], *, missing: bool, unit: str) -> None:
    """Refuse infinite and huge numbers, and NaN unless ``missing``; ``unit`` is the word for a row."""
    if X.dtype.kind != "f":
        return
    step = max(2**22 // max(X.shape[1], 1), 1)
    for start in range(0, len(X), step):
        block = X[start : start + step]
        # NaN compares false with everything.
        size = np.abs(block, dtype=np.float64)
        wrong = size >= LARGEST if missing else ~(size < LARGEST)
        if wrong.any():
            row, column = (int(i) for i in np.argwhere(wrong)[0])
            place = f"in {unit} {start + row}, column {names[column]!r}"
            if np.isnan(block[row, column]):
                raise missing_entry(path, place)
            what = "infinity" if np.isinf(block[row, column]) else f"{block[row, column]:g}"
            raise bad(
                path, f"hold finite numbers below {LARGEST:g}", f"{what} {place}", "correct or remove it"
            )


class Wanted(NamedTuple):
    """Which columns of a file are read, and how."""

    label: str | None = None
    drop: tuple[str, ...] = ()
    only: tuple[str, ...] | None = None
    """Columns in the order wanted, whatever else there is; None: all that are not dropped."""
    missing: bool = False
    id: str | None = None
    """The column of row names."""
    header: bool = True
    """Whether the first line of a table holds column names."""
    raw: bool = False
    """Whether columns of tables may hold anything, not only numbers."""
    lenient: bool = False
    """Whether columns named by label, id and drop may be absent."""

    def places(self, path: Path, names: tuple[str, ...]) -> tuple[list[int], int | None]:
        """Positions of the columns of X, and of the label."""
        if self.only is not None:
            place = {name: at for at, name in enumerate(names)}
            lacking = [name for name in self.only if name not in place]
            if lacking:
                raise bad(
                    path,
                    f"have the {len(self.only)} columns of the run",
                    f"{len(names)} without {listed(lacking)}",
                    "give a file with the same columns",
                )
            return [place[name] for name in self.only], (
                None if self.label is None else place.get(self.label)
            )
        named = (("--label", self.label), ("--id", self.id), *(("--drop", name) for name in self.drop))
        for option, name in named:
            if name is not None and name not in names and not self.lenient:
                near = get_close_matches(name.lower(), [n.lower() for n in names], 1)
                meant = [n for n in names if n.lower() in near]
                raise bad(
                    path,
                    f"have the column that {option} names",
                    f"{name!r}; it has {listed(names)}",
                    f"did you mean {meant[0]!r}?" if meant else "correct it (separate several by spaces)",
                )
        if self.label in self.drop:
            raise ValueError(
                f"--label and --drop must name different columns, got {self.label!r} for both; leave one out"
            )
        kept = [at for at, name in enumerate(names) if name not in (self.label, self.id, *self.drop)]
        return kept, names.index(self.label) if self.label in names else None

    @property
    def is_new(self) -> bool:
        """Whether the file is another one than that of the fit, such as rows to predict."""
        return self.lenient or self.only is not None

    def require_size(self, path: Path, n_rows: int, n_columns: int) -> None:
        """Refuse too few rows, or no column."""
        least = 1 if self.is_new else 2
        if n_rows < least or n_columns < 1:
            column = "column" if self.raw else "column of numbers"
            raise bad(
                path,
                f"have at least {least} row{'s' * (least > 1)} and one {column}",
                f"{n_rows} rows and {n_columns} columns",
                "give a file with more",
            )

    def require_count(self, path: Path, n: int) -> None:
        """Refuse images, or rows without column names, of another size than those of the run."""
        if self.only is not None and n != len(self.only):
            raise bad(
                path,
                f"have {len(self.only)} values in a row, as the data of the run",
                f"{n}",
                "give rows of that size",
            )


def listed(names: Sequence[str]) -> str:
    """The first names, for an error message."""
    more = len(names) - SHOWN
    return ", ".join(map(repr, names[:SHOWN])) + (f" and {more} more" if more > 0 else "")
