"""Tables of every format: names of the columns, checks of the entries, and rows."""

import re
from collections import Counter
from collections.abc import Iterable
from itertools import takewhile
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from ebse._missing import MISSING_WORDS
from ebse._validation import LARGEST
from ebse.io.cells import is_number
from ebse.io.entries import Column, has_commas, number
from ebse.io.rows import Rows, Wanted, bad, label_of, missing_entry

DATE = re.compile(r"\d{4}[-/.]\d{1,2}[-/.]\d{1,2}([T ].*)?|\d{1,2}[-/.]\d{1,2}[-/.]\d{2,4}( .*)?")


class Source(Protocol):
    """The columns of a table, by position."""

    def __len__(self) -> int:
        """Number of rows."""

    def column(self, at: int) -> Column:
        """Entries as numbers, words, dates or a category."""

    def texts(self, at: int) -> Iterable[Any]:
        """Entries as they are, for labels and names of rows."""

    def where(self, row: int) -> tuple[str, list[str]]:
        """The place of a row in its file, in words, and its entries as texts."""


def names_of(path: Path, cells: list[str], notes: list[str]) -> tuple[str, ...]:
    """Names of the columns, from the first line; one that cannot be names is refused.

    Columns at the end may have the name "": :func:`rows_of` leaves them out if they are empty.
    """
    if any(cells):
        n_empty = len(list(takewhile(lambda cell: cell == "", reversed(cells))))
        cells, empty = cells[: len(cells) - n_empty], cells[len(cells) - n_empty :]
    else:
        empty = []
    numeric = [is_number(cell) for cell in cells]
    counted = [list(map(str, range(start, start + len(cells)))) for start in (0, 1)]
    gaps = [cell for cell in cells[1:] if cell and cell.lower() in MISSING_WORDS]
    values = all(n or cell.lower() in MISSING_WORDS for cell, n in zip(cells, numeric, strict=True))
    if (all(numeric) or (gaps and values)) and cells not in counted:
        raise bad(
            path,
            "name its columns in the first line",
            f"numbers ({', '.join(cells[:3])}{', …' * (len(cells) > 3)})",
            "add a line of names, or pass --no-header to have the columns numbered from 0",
        )
    odd = [cell for cell, n in zip(cells, numeric, strict=True) if n and not cell.isdigit()]
    if odd:
        raise bad(
            path,
            "name its columns in the first line",
            f"the value {odd[0]}",
            "add a line of names, or pass --no-header if there is none",
        )
    require_different(path, cells)
    if "" in cells[1:]:
        raise _unnamed(path, cells[1:].index("") + 1)
    if cells[0] == "":
        notes.append("the first column has no name: it is read as row numbers and left out")
    if any(numeric):
        notes.append(f"the first line is read as column names: {', '.join(cells[:5])}, …")
    return (*cells, *empty)


def require_different(path: Path, names: list[str]) -> None:
    """Refuse two columns of one name."""
    twice = [name for name, n in Counter(names).items() if n > 1]
    if twice:
        raise bad(path, "have a different name for every column", f"{twice[0]!r} twice", "rename one")


def _unnamed(path: Path, at: int) -> ValueError:
    return bad(path, "have a name for every column", f"none for column {at + 1}", "name it in the first line")


def rows_of(path: Path, source: Source, names: tuple[str, ...], wanted: Wanted, notes: list[str]) -> Rows:
    """Rows with the columns that are ``wanted``."""
    n_named = len(names)
    while n_named > 1 and names[n_named - 1] == "":
        n_named -= 1
    for at in range(n_named, len(names)):
        if not all(text is None or str(text).strip() == "" for text in source.texts(at)):
            raise _unnamed(path, at)
    if n_named < len(names):
        notes.append(f"{len(names) - n_named} empty columns at the end, without names, are left out")
        names = names[:n_named]
    if names[0] == "":
        wanted = wanted._replace(drop=(*wanted.drop, ""))
    kept, at_label = wanted.places(path, names)
    columns = [source.column(at) for at in kept]
    wanted.require_size(path, len(source), len(columns))
    used = tuple(names[at] for at in kept)
    _require_entries(path, source, columns, kept, used, wanted)
    labels = files = None
    if at_label is not None:
        labels = np.array([label_of(text) for text in source.texts(at_label)], dtype=object)
    if wanted.id in names:
        files = tuple("" if text is None else str(text) for text in source.texts(names.index(wanted.id)))
    X = _framed(columns, used) if wanted.raw else np.stack(columns, axis=1)
    return Rows(path, X, used, labels, files=files, notes=tuple(notes))


def _framed(columns: list[Column], names: tuple[str, ...]) -> Any:
    import pandas as pd

    # The type is given, because pandas would convert objects that are words to a type of its own.
    held = {at: pd.Series(values, dtype=values.dtype) for at, values in enumerate(columns)}
    return pd.DataFrame(held, copy=False).set_axis(list(names), axis=1)


def _require_entries(
    path: Path,
    source: Source,
    columns: list[Column],
    kept: list[int],
    names: tuple[str, ...],
    wanted: Wanted,
) -> None:
    """Refuse infinite and huge numbers; where numbers are wanted, also words, and NaN unless allowed."""
    found = [_first_fault(values, wanted) for values in columns]
    row = min((first for first in found if first is not None), default=None)
    if row is None:
        return
    place, cells = source.where(row)
    faulty = [
        (cells[at], name, values)
        for at, name, values in zip(kept, names, columns, strict=True)
        if _first_fault(values[row : row + 1], wanted) is not None
    ]
    words = [
        (cell, name) for cell, name, values in faulty if not _is_missing(cell) and not _are_numbers(values)
    ]
    if words:
        raise _words(path, words, place, wanted)
    cell, name, _ = faulty[0]
    if _is_missing(cell):
        raise missing_entry(path, f"in {place}, column {name!r}")
    raise bad(
        path,
        f"hold finite numbers below {LARGEST:g}",
        f"{cell!r} in {place}, column {name!r}",
        f"correct it, or leave the column out with --drop {name!r}",
    )


def _are_numbers(values: Column) -> bool:
    return getattr(values.dtype, "kind", "O") == "f"


def _is_missing(cell: str) -> bool:
    return cell.strip().lower() in MISSING_WORDS


def _first_fault(values: Column, wanted: Wanted) -> int | None:
    """The first row of a column that is refused."""
    wrong: npt.NDArray[np.bool_]
    if _are_numbers(values):
        # NaN compares false with everything.
        size = np.abs(values)
        wrong = size >= LARGEST if wanted.missing else ~(size < LARGEST)
    elif wanted.raw:
        return None
    else:
        import pandas as pd

        missing = np.asarray(pd.isna(values), dtype=bool)
        texts = [str(value) for value in values]
        # In a table with decimal commas they are not what keeps a column from being read.
        words = np.array([number(text) is None and not has_commas(text) for text in texts], dtype=bool)
        if not (words & ~missing).any():
            words = np.array([number(text) is None for text in texts], dtype=bool)
        wrong = words & ~missing if wanted.missing else words | missing
    return int(wrong.argmax()) if wrong.any() else None


def _words(path: Path, words: list[tuple[str, str]], place: str, wanted: Wanted) -> ValueError:
    """The error of words among numbers, all of a row at once, with what to do about their columns."""
    cell, name = words[0]
    columns = " ".join(repr(each) if " " in each else each for _, each in words)
    remedy = f"leave out columns that are not needed with --drop {columns}, or name rows by one with --id"
    if wanted.label is None:
        remedy += ", or name the column of labels with --label"
    if re.fullmatch(r"[-+]?\d+,\d+", cell.strip()):
        remedy = "save it with decimal points instead of commas"
    what = repr(cell if len(cell) <= 30 else cell[:30] + "…")
    if DATE.fullmatch(cell.strip()):
        what = f"the date {what}"
        remedy = (
            "convert dates to numbers, such as days since the first, or leave the column out with --drop "
            f"{name!r}"
        )
    more = f", and words in {len(words) - 1} more columns" if len(words) > 1 else ""
    return bad(path, "hold numbers", f"{what} in {place}, column {name!r}{more}", remedy)
