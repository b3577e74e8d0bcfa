"""Tables whose entries have types: Parquet, Feather and Excel."""

import warnings
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, final

from ebse.io.arrays import LARGEST, incredible
from ebse.io.entries import Column, from_objects, text_of
from ebse.io.rows import Rows, Wanted, bad, listed, numbered
from ebse.io.tables import names_of, require_different, rows_of

ARROW = (".parquet", ".feather")
EXCEL = ".xlsx"
MOST_ROWS = 2**20
"""Rows of a sheet: Excel has no more, and a damaged file may claim any number."""


def read_arrow(path: Path, wanted: Wanted) -> Rows:
    """Rows of a Parquet or Feather file; an index of pandas is a column if it has a name."""
    kind = path.suffix.lower().removeprefix(".").title()
    frame = _opened(path, f"a {kind} file", lambda: _frame_of(path))
    names = tuple(str(name) for name in frame.columns)
    require_different(path, list(names))
    columns = [frame.iloc[:, at] for at in range(len(names))]
    notes: list[str] = []
    if not names:
        raise bad(path, "have columns", "none", "give a table with columns")
    return rows_of(path, _Typed(path, names, columns, wanted, notes), names, wanted, notes)


def _frame_of(path: Path) -> Any:
    try:
        from pyarrow import feather, parquet
    except ImportError:
        raise _without_extra(path, "pyarrow", "parquet") from None
    if path.suffix.lower() == ".parquet":
        # Not read_table, which adds columns named by folders such as year=2020.
        with parquet.ParquetFile(path) as file:
            size = 8 * file.metadata.num_rows * file.metadata.num_columns
            if size > LARGEST:
                raise bad(
                    path, f"hold at most {LARGEST >> 30} GiB", f"{size >> 30} GiB", "give a part of the rows"
                )
            table = file.read()
    else:
        table = feather.read_table(path, memory_map=False)
    # Places in a damaged file are followed without a check otherwise.
    table.validate(full=True)
    require_different(path, table.column_names)
    frame = table.to_pandas()
    named = [name for name in frame.index.names if name is not None]
    unnamed = [at for at, name in enumerate(frame.index.names) if name is None]
    if named and unnamed:
        frame = frame.reset_index(level=unnamed, drop=True)
    return frame.reset_index(drop=not named, allow_duplicates=True)


def read_excel(path: Path, wanted: Wanted, *, sheet: str | None = None) -> Rows:
    """Rows of a sheet of an Excel file; empty rows and columns around the table are left out."""
    notes: list[str] = []
    lines = _opened(path, "an Excel file", lambda: _sheet(path, sheet, notes))
    used = {at for _, line in lines for at, entry in enumerate(line) if entry is not None}
    if not used:
        raise bad(path, "have rows", "an empty sheet", "name another one with --sheet")
    left, right = min(used), max(used) + 1
    table = [(number, line[left:right]) for number, line in lines]
    n_columns = right - left
    names = numbered(n_columns)
    if wanted.header:
        _, first = table.pop(0)
        cells = [text_of(entry) or "" for entry in first]
        names = names_of(path, cells + [""] * (n_columns - len(cells)), notes)
    columns = [[line[at] if at < len(line) else None for _, line in table] for at in range(n_columns)]
    numbers = [number for number, _ in table]
    return rows_of(path, _Typed(path, names, columns, wanted, notes, numbers), names, wanted, notes)


def _sheet(path: Path, name: str | None, notes: list[str]) -> list[tuple[int, tuple[Any, ...]]]:
    """Number and entries of each row that is not empty."""
    try:
        import openpyxl
    except ImportError:
        raise _without_extra(path, "openpyxl", "excel") from None
    with zipfile.ZipFile(path) as archive:
        for info in archive.infolist():
            claim = incredible(info)
            if claim is not None:
                raise bad(path, "be written by Excel", claim, "save it as .csv")
    with warnings.catch_warnings():
        # Of styles and checks of entries, which are not read.
        warnings.simplefilter("ignore")
        book = openpyxl.load_workbook(path, read_only=True, data_only=True)
        try:
            sheets = {each.title: each for each in book.worksheets}
            if not sheets:
                raise bad(path, "have a sheet with a table", "none", "save it again")
            if name is not None and name not in sheets:
                raise bad(
                    path,
                    "have the sheet that --sheet names",
                    f"{name!r}; it has {listed([*sheets])}",
                    "correct it",
                )
            first, *others = sheets
            if name is None and others:
                notes.append(f"the sheet {first!r} is read; others, for --sheet, are {listed(others)}")
            chosen = sheets[name or first]
            # Files of some programs claim a size that is not that of the table.
            chosen.reset_dimensions()
            rows = chosen.iter_rows(values_only=True, max_row=MOST_ROWS)
            return [(number, row) for number, row in enumerate(rows, 1) if any(x is not None for x in row)]
        finally:
            book.close()


def _opened(path: Path, what: str, read: Callable[[], Any]) -> Any:
    """What ``read`` returns; whatever it raises on a damaged file becomes an error in words."""
    try:
        return read()
    except ImportError:
        raise
    except Exception as error:
        # The libraries raise anything on damaged files, from KeyError to their own errors.
        if getattr(error, "filename", None) is not None or str(error).startswith(str(path)):
            raise
        why = " ".join(str(error).split())[:120] or type(error).__name__
        raise bad(path, f"be {what}", f"one that cannot be read ({why})", "save it again") from None


def _without_extra(path: Path, package: str, extra: str) -> ImportError:
    return ImportError(
        f"{path} must be read with {package}, which is not installed; run pip install 'ebse[{extra}]'"
    )


@final
class _Typed:
    """Columns whose entries have types; see :class:`ebse.io.tables.Source`."""

    def __init__(
        self,
        path: Path,
        names: tuple[str, ...],
        columns: list[Any],
        wanted: Wanted,
        notes: list[str],
        numbers: list[int] | None = None,
    ) -> None:
        self.path, self.names, self.columns, self.raw, self.notes = path, names, columns, wanted.raw, notes
        self.numbers = numbers
        """The number of each row in its sheet."""

    def __len__(self) -> int:
        return len(self.columns[0])

    def column(self, at: int) -> Column:
        try:
            return from_objects(self.columns[at], self.notes, raw=self.raw)
        except TypeError as error:
            raise self._odd(at, error) from None

    def texts(self, at: int) -> Iterator[str | None]:
        try:
            yield from map(text_of, self.columns[at])
        except TypeError as error:
            raise self._odd(at, error) from None

    def where(self, row: int) -> tuple[str, list[str]]:
        cells = []
        for column in self.columns:
            entry = column[row]
            try:
                cells.append(text_of(entry) or "")
            except TypeError:
                cells.append(str(entry))
        return f"row {row}" if self.numbers is None else f"row {self.numbers[row]} of the sheet", cells

    def _odd(self, at: int, error: TypeError) -> ValueError:
        name = self.names[at]
        return bad(
            self.path,
            "have columns of numbers, words, dates or truth values",
            f"entries of type {error} in column {name!r}",
            f"leave the column out with --drop {name!r}",
        )
