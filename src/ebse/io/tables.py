"""Tables in text: csv and tsv, read line by line so that whatever is wrong has a place."""

import csv
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, final

import numpy as np

from ebse.io.rows import LARGEST, Rows, Wanted, bad, missing_allowed, numbered, word

DELIMITERS = {".csv": ",", ".tsv": "\t"}
OTHERS = ("\t", ";", "|", ",")
MISSING = frozenset(("", "na", "n/a", "nan", "null", "none", "?"))
"""Words for an entry that is not there, in any case."""
UNLABELED = MISSING - {"none", "null"}
"""Words for no label: "none" may be a class."""
TRUTH = {"true": 1.0, "false": 0.0}
BLOCK = 4096
"""Rows that become an array at once."""


def read_table(path: Path, wanted: Wanted, *, delimiter: str | None = None) -> Rows:
    """Rows of a table whose first line names its columns, or of one that has numbers alone."""
    if delimiter is not None and (len(delimiter) != 1 or delimiter in '"\r\n'):
        raise ValueError(f"--delimiter must be one character, got {delimiter!r}; pass ';' for one")
    used = delimiter or DELIMITERS[path.suffix.lower()]
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            return _Table(path, csv.reader(file, delimiter=used, strict=True), used).read(wanted)
    except UnicodeDecodeError as error:
        raise bad(
            path, "be text in UTF-8", f"the byte 0x{error.object[error.start]:02x}", "save it as UTF-8"
        ) from None


@final
class _Table:
    """A table under way."""

    def __init__(self, path: Path, reader: Any, delimiter: str) -> None:
        self.path, self.reader, self.delimiter = path, reader, delimiter
        self.notes: list[str] = []
        self.label: str | None = None

    def read(self, wanted: Wanted) -> Rows:
        lines = self._lines()
        first = next(lines, None)
        if first is None:
            raise bad(self.path, "have lines", "an empty file", "give a table with rows")
        names, unread = self._names(first)
        self._require_delimiter(names, wanted.label)
        if names[0] == "":
            wanted = wanted._replace(drop=(*wanted.drop, ""))
        kept, at = wanted.places(self.path, names)
        called = None if wanted.id not in names else names.index(str(wanted.id))
        self.label = wanted.label
        blocks, labels, ids = [], [], []
        block: list[list[float]] = []
        for line in self._with_first(unread, lines):
            if len(line) != len(names):
                raise bad(
                    self.path,
                    f"have {len(names)} entries in every line",
                    f"{len(line)} in line {self.reader.line_num}",
                    "correct the line, or name the delimiter with --delimiter",
                )
            block.append(self._numbers([line[i] for i in kept], [names[i] for i in kept], wanted.missing))
            if at is not None:
                labels.append(None if line[at].strip().lower() in UNLABELED else word(line[at]))
            if called is not None:
                ids.append(line[called].strip())
            if len(block) == BLOCK:
                blocks.append(np.array(block))
                block = []
        X = np.concatenate([*blocks, np.array(block).reshape(len(block), len(kept))])
        wanted.require_size(self.path, X)
        found = None if at is None else np.array(labels, dtype=object)
        own = tuple(ids) if called is not None else None
        return Rows(self.path, X, tuple(names[i] for i in kept), found, files=own, notes=tuple(self.notes))

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

    def _with_first(self, unread: list[str] | None, lines: Iterator[list[str]]) -> Iterator[list[str]]:
        if unread is not None:
            yield unread
        yield from lines

    def _names(self, first: list[str]) -> tuple[tuple[str, ...], list[str] | None]:
        """Names of the columns, and the first line where it is no header."""
        cells = [cell.strip() for cell in first]
        numeric = [is_number(cell) for cell in cells]
        counted = [list(map(str, range(start, start + len(cells)))) for start in (0, 1)]
        if all(numeric) and cells not in counted:
            self.notes.append(f"the first line has no names: columns are called 0 to {len(cells) - 1}")
            return numbered(len(cells)), first
        odd = [cell for cell, number in zip(cells, numeric, strict=True) if number and not cell.isdigit()]
        gaps = [cell for cell in cells[1:] if cell and cell.lower() in MISSING]
        if gaps and all(n or cell.lower() in MISSING for cell, n in zip(cells, numeric, strict=True)):
            odd += gaps
        if odd and not all(numeric):
            raise bad(
                self.path, "name its columns in the first line", f"the value {odd[0]}", "add a line of names"
            )
        twice = [cell for cell, n in Counter(cells).items() if n > 1]
        if twice:
            raise bad(
                self.path, "have a name of its own for every column", f"{twice[0]!r} twice", "rename one"
            )
        if "" in cells[1:]:
            raise bad(
                self.path,
                "have a name for every column",
                f"none for column {cells[1:].index('') + 2}",
                "name it in the first line",
            )
        if cells[0] == "":
            self.notes.append("the first column has no name, as numbers of rows have, and is left out")
        if any(numeric):
            self.notes.append(f"the first line is taken for names of columns: {', '.join(cells[:5])}, …")
        return tuple(cells), None

    def _require_delimiter(self, names: tuple[str, ...], label: str | None) -> None:
        """Refuse one long column that another delimiter would split."""
        if len(names) > 1 or names[0] == label:
            return
        for other in OTHERS:
            if other != self.delimiter and other in names[0]:
                raise bad(
                    self.path,
                    f"have columns parted by {self.delimiter!r}",
                    f"a first line that has only {other!r}",
                    f"pass --delimiter '{'tab' if other == chr(9) else other}'",
                )

    def _numbers(self, cells: list[str], names: list[str], missing: bool) -> list[float]:
        """Numbers of a line; read again, cell by cell, where there is anything out of the way."""
        try:
            # float reads 1_000, and words for infinity and NaN: nobody means these by a plain number.
            if "_" not in "".join(cells):
                found = [float(cell) for cell in cells]
                if all(-LARGEST <= x <= LARGEST for x in found):
                    return found
        except ValueError:
            pass
        self._require_numbers(cells, names)
        return [self._number(cell, name, missing) for cell, name in zip(cells, names, strict=True)]

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
        remedy = f"leave out what is not needed with --drop {columns}, or call rows by a column with --id"
        if self.label is None:
            remedy += ", or name the column of labels with --label"
        if re.fullmatch(r"[-+]?\d+,\d+", cell.strip()):
            remedy = "save it with decimal points instead of commas"
        shown = cell if len(cell) <= 30 else cell[:30] + "…"
        more = f", and words in {len(words) - 1} more columns" if len(words) > 1 else ""
        place = f"in line {self.reader.line_num}, column {name!r}"
        raise bad(self.path, "hold numbers", f"{shown!r} {place}{more}", remedy)

    def _number(self, cell: str, name: str, missing: bool) -> float:
        text, place = cell.strip().lower(), f"in line {self.reader.line_num}, column {name!r}"
        if text in MISSING:
            if missing:
                return float("nan")
            raise missing_allowed(self.path, place)
        if text in TRUTH:
            return TRUTH[text]
        value = float(text)
        if abs(value) > LARGEST:
            raise bad(self.path, "hold finite numbers", f"{cell!r} {place}", "correct or remove it")
        return value


def is_number(text: str) -> bool:
    """Whether a text is a number as people write it."""
    try:
        value = float(text)
    except ValueError:
        return False
    return "_" not in text and value == value
