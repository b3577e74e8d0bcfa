"""Tables in text, csv and tsv, also compressed: encoding, delimiter, lines.

pandas' reader is fast, but it fills lines that are too short, joins text to a closing quote, and cannot say
in which line a bad entry is. So lines are counted first: without quotes by the number of delimiters, with
quotes by Python's csv reader. A table on which both readers do not agree is read by the csv reader alone.
"""

import codecs
import csv
import gzip
import re
import warnings
import zlib
from collections.abc import Iterator
from io import BytesIO, TextIOWrapper
from itertools import islice
from pathlib import Path
from typing import Any, final

import numpy as np

from ebse._missing import MISSING_WORDS
from ebse.io.arrays import DENSEST, LOOSE
from ebse.io.cells import unescaped
from ebse.io.entries import Column, from_words, is_code
from ebse.io.rows import Rows, Wanted, bad, numbered
from ebse.io.tables import names_of, rows_of

DELIMITERS = {".csv": ",", ".tsv": "\t"}
OTHERS = (";", "\t", "|", ",")
N_FIRST = 100
"""Lines by which the delimiter is recognized."""
N_CODES, MOST_CODES = 2_000, 1_000_000
"""Lines, and entries at most, in which leading zeros are looked for."""
CONTROL = re.compile("[\0-\x08\x0b\x0e-\x1f]")
"""Characters that a text does not hold."""
MISSING = sorted(
    {form for word in MISSING_WORDS for form in (word, word.upper(), word.title())} | {"NaN", "NaT"}
)
"""Missing entries as they are mostly written; others are found when a column is read as words."""


def read_text(path: Path, wanted: Wanted, *, delimiter: str | None = None) -> Rows:
    """Rows of a table; its first line holds the column names unless ``wanted`` says that it has none."""
    if delimiter is not None and (len(delimiter) != 1 or delimiter in '"\r\n'):
        raise ValueError(f"--delimiter must be one character, got {delimiter!r}; pass ';', for example")
    notes: list[str] = []
    content = _decoded(path, _content(path), notes)
    own = DELIMITERS[path.name.lower().removesuffix(".gz")[-4:]]
    used = delimiter or _recognized(content, own)
    lines = _Lines(path, content, used)
    first = next(iter(lines), None)
    if first is None:
        raise bad(path, "have lines", "an empty file", "give a table with rows")
    if delimiter is None and len(first) == 1:
        _require_delimiter(path, first[0], used, wanted)
    if used != (delimiter or own):
        notes.append(f"columns are separated by {'tabs' if used == chr(9) else repr(used)}")
    names = numbered(len(first))
    if wanted.header:
        names = names_of(path, [_cleaned(cell) for cell in first], notes)
    return rows_of(path, _Text(lines, names, wanted, notes), names, wanted, notes)


def _content(path: Path) -> bytes:
    """All bytes of a file, decompressed."""
    if path.suffix.lower() != ".gz":
        return path.read_bytes()
    size = path.stat().st_size
    most = max(LOOSE, DENSEST * size)
    try:
        with gzip.open(path) as file:
            content = file.read(most + 1)
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise bad(path, "be compressed by gzip", f"a damaged file ({error})", "compress it again") from None
    if len(content) > most:
        raise bad(
            path,
            f"be compressed {DENSEST} times at most",
            f"more than {most} bytes made of {size}",
            "decompress it first",
        )
    return content


def _decoded(path: Path, content: bytes, notes: list[str]) -> bytes:
    """The text in UTF-8, without a byte order mark."""
    if content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        try:
            return content.decode("utf-16").encode()
        except UnicodeError:
            raise bad(path, "be text in UTF-8", "damaged UTF-16", "save it as UTF-8") from None
    content = content.removeprefix(codecs.BOM_UTF8)
    if content.isascii():
        return content
    try:
        content.decode()
    except UnicodeDecodeError as error:
        try:
            text = content.decode("cp1252")
        except UnicodeDecodeError:
            text = "\0"
        if CONTROL.search(text):
            raise bad(
                path, "be text in UTF-8", f"the byte 0x{content[error.start]:02x}", "save it as UTF-8"
            ) from None
        notes.append("read as Windows-1252 text")
        return text.encode()
    return content


def _recognized(content: bytes, own: str) -> str:
    """The delimiter that gives the same number of entries, more than one, in the first lines."""
    widths = {}
    for delimiter in (own, *(other for other in OTHERS if other != own)):
        found = set()
        try:
            for line in islice(_records(content, delimiter), N_FIRST):
                found.add(len(line))
        except csv.Error:
            # Whoever reads the table says in which line.
            pass
        if len(found) == 1:
            widths[delimiter] = found.pop()
    if widths.get(own, 1) > 1 or not widths:
        return own
    best = max(widths, key=lambda delimiter: widths[delimiter])
    return best if widths[best] > 1 else own


def _require_delimiter(path: Path, first: str, used: str, wanted: Wanted) -> None:
    """Refuse a single column whose first line another delimiter would split, though not the others."""
    if wanted.header and _cleaned(first) == wanted.label:
        return
    for other in OTHERS:
        if other in first:
            raise bad(
                path,
                f"have columns separated by {used!r}",
                f"a first line that has only {other!r}",
                f"pass --delimiter '{'tab' if other == chr(9) else other}'",
            )


def _records(content: bytes, delimiter: str) -> Iterator[list[str]]:
    """Lines that are not blank."""
    reader = csv.reader(_physical(content), delimiter=delimiter, strict=True)
    return (line for line in reader if not _is_blank(line))


def _physical(content: bytes) -> TextIOWrapper:
    return TextIOWrapper(BytesIO(content), encoding="utf-8", newline="")


def _is_blank(line: list[str]) -> bool:
    return not line or (len(line) == 1 and not line[0].strip())


def _cleaned(cell: str) -> str:
    return unescaped(cell.strip())


@final
class _Lines:
    """Lines of a table that are not blank, each as a list of entries."""

    def __init__(self, path: Path, content: bytes, delimiter: str) -> None:
        self.path, self.content, self.delimiter = path, content, delimiter
        self.number = 0
        """Number of the line that was read last."""
        self.n_bytes = 0
        """Bytes up to the end of that line."""

    def __iter__(self) -> Iterator[list[str]]:
        self.number = self.n_bytes = 0
        reader = csv.reader(self._counted(), delimiter=self.delimiter, strict=True)
        try:
            for line in reader:
                if not _is_blank(line):
                    self.number = reader.line_num
                    yield line
        except csv.Error as error:
            raise bad(
                self.path, "be a table", f"{error} at line {reader.line_num}", "correct the line"
            ) from None

    def of_width(self, width: int, *, header: bool) -> Iterator[list[str]]:
        """Lines below the header; one with another number of entries is refused."""
        lines = iter(self)
        if header:
            next(lines)
        for line in lines:
            if len(line) != width:
                raise bad(
                    self.path,
                    f"have {width} entries in every line",
                    f"{len(line)} in line {self.number}",
                    "correct the line, or name the delimiter with --delimiter",
                )
            yield line

    def _counted(self) -> Iterator[str]:
        for line in _physical(self.content):
            self.n_bytes += len(line.encode())
            yield line


@final
class _Text:
    """Columns of a table in text; see :class:`ebse.io.tables.Source`."""

    def __init__(self, lines: _Lines, names: tuple[str, ...], wanted: Wanted, notes: list[str]) -> None:
        self.lines, self.width, self.notes = lines, len(names), notes
        self.header = wanted.header
        self.literal = {at for at, name in enumerate(names) if name in ("", wanted.label, wanted.id)}
        """Columns whose entries stay texts."""
        self.raw = wanted.raw
        self.codes = self._found_codes() if wanted.raw else set()
        self.table = self._read()

    def __len__(self) -> int:
        return len(self.table)

    def column(self, at: int) -> Column:
        held = self.table[at]
        if held.dtype.kind in "iufb":
            return held.to_numpy(dtype=np.float64)
        return from_words(
            held,
            self.notes,
            decimal_commas=self.lines.delimiter != ",",
            codes=at in self.codes,
            raw=self.raw,
            clean=_cleaned,
        )

    def texts(self, at: int) -> Iterator[str]:
        return (_cleaned(cell) for cell in self.table[at])

    def where(self, row: int) -> tuple[str, list[str]]:
        cells = next(islice(self._lines(), row, None))
        return f"line {self.lines.number}", cells

    def _lines(self) -> Iterator[list[str]]:
        return self.lines.of_width(self.width, header=self.header)

    def _found_codes(self) -> set[int]:
        """Columns with leading zeros among the first entries."""
        first = islice(self._lines(), min(N_CODES, max(MOST_CODES // self.width, 1)))
        return {at for line in first for at, cell in enumerate(line) if is_code(cell.strip())}

    def _read(self) -> Any:
        """The table as a frame: numbers where pandas finds them, otherwise texts."""
        import pandas as pd

        n_rows = None
        if b'"' in self.lines.content:
            n_rows = sum(1 for _ in self._lines())
        found = self._by_pandas(n_rows)
        if found is None:
            found = pd.DataFrame(self._lines(), columns=range(self.width), dtype=object)
        return found

    def _by_pandas(self, n_rows: int | None) -> Any:
        """The table as pandas reads it; None if its lines are not those of the csv reader."""
        import pandas as pd

        content, start = self.lines.content, 0
        if b"\0" in content:
            return None
        if self.header:
            next(iter(self.lines))
            start = self.lines.n_bytes
        file = BytesIO(content)
        file.seek(start)
        # From 3.1 on pandas rounds correctly by default.
        older = tuple(map(int, pd.__version__.split(".")[:2])) < (3, 1)
        exact = {"float_precision": "round_trip"} if older else {}
        inferred = [at for at in range(self.width) if at not in self.literal]
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                found = pd.read_csv(
                    file,
                    sep=self.lines.delimiter,
                    header=None,
                    dtype=dict.fromkeys(self.literal | self.codes, object),
                    na_values=dict.fromkeys(inferred, MISSING),
                    keep_default_na=False,
                    quoting=csv.QUOTE_MINIMAL if n_rows is not None else csv.QUOTE_NONE,
                    low_memory=False,
                    **exact,
                )
        except (ValueError, Warning, OverflowError):
            return None
        if n_rows is None:
            # Without quotes every delimiter counts, and their number is right if every line is complete.
            n_delimiters = content.count(self.lines.delimiter.encode(), start)
            complete = n_delimiters == (self.width - 1) * len(found)
        else:
            complete = n_rows == len(found)
        return found if complete and found.shape[1] == self.width else None
