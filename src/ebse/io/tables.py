"""Tables in text, csv and tsv: read by pandas where every cell is plain, otherwise line by line.

pandas is six times as fast, but it fills lines that are too short, joins text to a closing quote, and cannot
say in which line a bad cell is. It reads a table only if the cells can be counted without a parser: no
quotes, and as many delimiters as the lines need. Every other table is read line by line, which gives the same
rows, or an error with line and column.
"""

import csv
import re
import warnings
from collections import Counter
from collections.abc import Iterator
from io import BytesIO
from itertools import chain
from pathlib import Path
from typing import Any, final

import numpy as np

from ebse.io.cells import is_number, unescaped
from ebse.io.rows import LARGEST, Labels, Numbers, Rows, Wanted, bad, label_of, missing_entry, numbered

DELIMITERS = {".csv": ",", ".tsv": "\t"}
OTHERS = ("\t", ";", "|", ",")
MISSING = frozenset(("", "na", "n/a", "nan", "null", "none", "?"))
"""Texts of a missing entry, in any case."""
TRUTH = {"true": 1.0, "false": 0.0}
DATE = re.compile(r"\d{4}[-/.]\d{1,2}[-/.]\d{1,2}([T ].*)?|\d{1,2}[-/.]\d{1,2}[-/.]\d{2,4}( .*)?")
BLOCK = 4096
"""Rows that are converted to an array at once."""


def read_table(path: Path, wanted: Wanted, *, delimiter: str | None = None) -> Rows:
    """Rows of a table; its first line holds the column names unless ``wanted`` says that it has none."""
    if delimiter is not None and (len(delimiter) != 1 or delimiter in '"\r\n'):
        raise ValueError(f"--delimiter must be one character, got {delimiter!r}; pass ';', for example")
    used = delimiter or DELIMITERS[path.suffix.lower()]
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            return _Table(path, csv.reader(file, delimiter=used, strict=True), used, wanted).read()
    except UnicodeDecodeError as error:
        raise bad(
            path, "be text in UTF-8", f"the byte 0x{error.object[error.start]:02x}", "save it as UTF-8"
        ) from None


@final
class _Table:
    """A table while it is read."""

    def __init__(self, path: Path, reader: Any, delimiter: str, wanted: Wanted) -> None:
        self.path, self.reader, self.delimiter, self.wanted = path, reader, delimiter, wanted
        self.notes: list[str] = []

    def read(self) -> Rows:
        lines = self._lines()
        first = next(lines, None)
        if first is None:
            raise bad(self.path, "have lines", "an empty file", "give a table with rows")
        names = self._names(first) if self.wanted.header else numbered(len(first))
        self._require_delimiter(names, first[0])
        wanted = self.wanted
        if names[0] == "":
            wanted = wanted._replace(drop=(*wanted.drop, ""))
        kept, at = wanted.places(self.path, names)
        row_names = names.index(wanted.id) if wanted.id in names else None
        n_header = self.reader.line_num if wanted.header else 0
        found = self._by_pandas(n_header, len(names), kept, at, row_names)
        if found is None:
            found = self._by_line(names, [] if wanted.header else [first], lines, kept, at, row_names)
        X, labels, ids = found
        wanted.require_size(self.path, X)
        return Rows(self.path, X, tuple(names[i] for i in kept), labels, files=ids, notes=tuple(self.notes))

    def _by_pandas(
        self, n_header: int, width: int, kept: list[int], at: int | None, row_names: int | None
    ) -> tuple[Numbers, Labels | None, tuple[str, ...] | None] | None:
        """Numbers, labels and row names of a plain table; None for one that must be read line by line."""
        content = self.path.read_bytes()
        if b'"' in content or b"\0" in content or not kept or len(set(kept)) < len(kept):
            return None
        import pandas as pd

        text = [i for i in (at, row_names) if i is not None]
        gaps = [*MISSING, *(gap.upper() for gap in MISSING), "NaN", "None"]
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                table = pd.read_csv(
                    BytesIO(content),
                    sep=self.delimiter,
                    header=None,
                    skiprows=n_header,
                    dtype=dict.fromkeys(text, str),
                    na_values=dict.fromkeys(kept, gaps),
                    keep_default_na=False,
                    quoting=csv.QUOTE_NONE,
                    low_memory=False,
                )
        except (ValueError, Warning, OverflowError):
            return None
        # pandas refuses lines longer than the first and fills shorter ones. Without quotes every delimiter
        # counts, and their number is right only if every line is complete.
        n_lines = len(table) + (n_header > 0)
        if table.shape[1] != width or content.count(self.delimiter.encode()) != (width - 1) * n_lines:
            return None
        numbers = table[kept]
        if any(kind.kind not in "iufb" for kind in numbers.dtypes):
            return None
        X = numbers.to_numpy(dtype=np.float64)
        wrong = np.abs(X) >= LARGEST
        if wrong.any() or (np.isnan(X).any() and not self.wanted.missing):
            return None
        labels = (
            None
            if at is None
            else np.array([label_of(unescaped(cell.strip())) for cell in table[at]], dtype=object)
        )
        ids = None if row_names is None else tuple(unescaped(cell.strip()) for cell in table[row_names])
        return np.ascontiguousarray(X), labels, ids

    def _by_line(
        self,
        names: tuple[str, ...],
        first: list[list[str]],
        lines: Iterator[list[str]],
        kept: list[int],
        at: int | None,
        row_names: int | None,
    ) -> tuple[Numbers, Labels | None, tuple[str, ...] | None]:
        """Numbers, labels and row names, with line and column of whatever is wrong."""
        blocks, labels, ids = [], [], []
        block: list[list[float]] = []
        columns = [names[i] for i in kept]
        for line in chain(first, lines):
            if len(line) != len(names):
                raise bad(
                    self.path,
                    f"have {len(names)} entries in every line",
                    f"{len(line)} in line {self.reader.line_num}",
                    "correct the line, or name the delimiter with --delimiter",
                )
            block.append(self._numbers([line[i] for i in kept], columns))
            if at is not None:
                labels.append(label_of(unescaped(line[at].strip())))
            if row_names is not None:
                ids.append(unescaped(line[row_names].strip()))
            if len(block) == BLOCK:
                blocks.append(np.array(block))
                block = []
        X = np.concatenate([*blocks, np.array(block).reshape(len(block), len(kept))])
        found = None if at is None else np.array(labels, dtype=object)
        return X, found, None if row_names is None else tuple(ids)

    def _lines(self) -> Iterator[list[str]]:
        """Lines that are not blank."""
        try:
            for line in self.reader:
                if line and (len(line) > 1 or line[0].strip()):
                    yield line
        except csv.Error as error:
            raise bad(
                self.path, "be a table", f"{error} at line {self.reader.line_num}", "correct the line"
            ) from None

    def _names(self, first: list[str]) -> tuple[str, ...]:
        """Names of the columns; a first line that cannot be names is refused."""
        cells = [unescaped(cell.strip()) for cell in first]
        numeric = [is_number(cell) for cell in cells]
        counted = [list(map(str, range(start, start + len(cells)))) for start in (0, 1)]
        gaps = [cell for cell in cells[1:] if cell and cell.lower() in MISSING]
        values = all(n or cell.lower() in MISSING for cell, n in zip(cells, numeric, strict=True))
        if (all(numeric) or (gaps and values)) and cells not in counted:
            raise bad(
                self.path,
                "name its columns in the first line",
                f"numbers ({', '.join(cells[:3])}{', …' * (len(cells) > 3)})",
                "add a line of names, or pass --no-header to have the columns numbered from 0",
            )
        odd = [cell for cell, number in zip(cells, numeric, strict=True) if number and not cell.isdigit()]
        if odd:
            raise bad(
                self.path, "name its columns in the first line", f"the value {odd[0]}", "add a line of names"
            )
        twice = [cell for cell, n in Counter(cells).items() if n > 1]
        if twice:
            raise bad(
                self.path, "have a different name for every column", f"{twice[0]!r} twice", "rename one"
            )
        if "" in cells[1:]:
            raise bad(
                self.path,
                "have a name for every column",
                f"none for column {cells[1:].index('') + 2}",
                "name it in the first line",
            )
        if cells[0] == "":
            self.notes.append("the first column has no name: it is read as row numbers and left out")
        if any(numeric):
            self.notes.append(f"the first line is read as column names: {', '.join(cells[:5])}, …")
        return tuple(cells)

    def _require_delimiter(self, names: tuple[str, ...], first: str) -> None:
        """Refuse a single column that another delimiter would split."""
        if len(names) > 1 or names[0] == self.wanted.label:
            return
        for other in OTHERS:
            if other != self.delimiter and other in first:
                raise bad(
                    self.path,
                    f"have columns separated by {self.delimiter!r}",
                    f"a first line that has only {other!r}",
                    f"pass --delimiter '{'tab' if other == chr(9) else other}'",
                )

    def _numbers(self, cells: list[str], names: list[str]) -> list[float]:
        """Numbers of a line; examined cell by cell only where one is not a plain number."""
        try:
            # float also reads 1_000, inf and nan, which nobody means by a plain number.
            if "_" not in "".join(cells):
                found = [float(cell) for cell in cells]
                if all(-LARGEST < x < LARGEST for x in found):
                    return found
        except ValueError:
            pass
        self._require_numbers(cells, names)
        return [self._number(cell, name) for cell, name in zip(cells, names, strict=True)]

    def _require_numbers(self, cells: list[str], names: list[str]) -> None:
        """Refuse words, all of a line at once, with what to do about their columns."""
        known = MISSING | set(TRUTH)
        words = [
            (cell, name)
            for cell, name in zip(cells, names, strict=True)
            if cell.strip().lower() not in known and not is_number(cell.strip())
        ]
        if not words:
            return
        cell, name = words[0]
        columns = " ".join(repr(each) if " " in each else each for _, each in words)
        remedy = f"leave out columns that are not needed with --drop {columns}, or name rows by one with --id"
        if self.wanted.label is None:
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
        place = f"in line {self.reader.line_num}, column {name!r}"
        raise bad(self.path, "hold numbers", f"{what} {place}{more}", remedy)

    def _number(self, cell: str, name: str) -> float:
        text, place = cell.strip().lower(), f"in line {self.reader.line_num}, column {name!r}"
        if text in MISSING:
            if self.wanted.missing:
                return float("nan")
            raise missing_entry(self.path, place)
        if text in TRUTH:
            return TRUTH[text]
        value = float(text)
        if abs(value) >= LARGEST:
            raise bad(
                self.path,
                f"hold finite numbers below {LARGEST:g}",
                f"{cell!r} {place}",
                "correct or remove it",
            )
        return value
