"""Rows of a file or a folder, whatever its format."""

import gzip
import os
import zlib
from pathlib import Path

import numpy as np

from ebse._stages import stage
from ebse.io.arrays import read_npy, read_npz
from ebse.io.frames import ARROW, EXCEL, read_arrow, read_excel
from ebse.io.image_files import read_folder, read_idx_file
from ebse.io.rows import Rows, Wanted, bad, word
from ebse.io.text import DELIMITERS, read_text

KINDS = (
    "a table (.csv, .tsv, also .gz; .parquet, .feather, .xlsx), NumPy's .npy or .npz, an idx file, or a "
    "folder of images"
)
TEXT = (*DELIMITERS, *(f"{suffix}.gz" for suffix in DELIMITERS))
TABLES = (*TEXT, *ARROW, EXCEL)


def read_rows(
    path: str | Path,
    *,
    label: str | None = None,
    drop: tuple[str, ...] = (),
    only: tuple[str, ...] | None = None,
    delimiter: str | None = None,
    header: bool = True,
    array: str | None = None,
    missing: bool = False,
    id: str | None = None,  # noqa: A002
    unlabeled_label: str | None = None,
    raw: bool = False,
    lenient: bool = False,
    sheet: str | None = None,
) -> Rows:
    """Rows of a file or a folder.

    Parameters
    ----------
    path
        A table (.csv, .tsv, also .gz; .parquet, .feather, .xlsx), NumPy's .npy or .npz, an idx file (also
        .gz), or a folder of images.
    label
        The column of labels; of an npz file also an array; "folder" where subfolders are classes, "labels"
        in a folder with MNIST's idx files.
    drop
        Columns that are left out.
    only
        The columns of X, in this order, whatever else the file has; the label column may be absent.
    delimiter
        The delimiter of a table in text; by default the one of , ; | and tab that gives the same number of
        entries in the first lines.
    header
        Whether the first line of a table holds the column names; False numbers the columns from 0.
    array
        The array of an npz file that holds the rows, where it has several.
    missing
        Whether entries may be missing where numbers are read; they become NaN.
    id
        The column of a table that holds row names.
    unlabeled_label
        The label of rows that have none, such as -1; by default only missing entries are unlabeled.
    raw
        False: X is an array of numbers, and anything else is refused. True: X of a table is a pandas frame,
        as :class:`ebse.FewLabelClassifier` takes it. Its columns are numbers (float64, booleans as 0 and 1)
        or words (objects, None where one is missing); entries may be missing, also in arrays. Dates are words
        in text, and dates in other tables; a category of pandas stays one.
    lenient
        Whether the columns that ``label``, ``id`` and ``drop`` name may be absent, as in rows to predict.
    sheet
        The sheet of an Excel file, by default the first.
    """
    path = Path(path)
    # os.path, because Path.exists raises where a name is too long.
    if not os.path.exists(path):
        raise FileNotFoundError(f"{path} must be {KINDS}, got a name that does not exist; check it")
    kind = _kind(path)
    wanted = Wanted(label, drop, only, missing or raw, id, header, raw, lenient)
    _require_applicable(path, kind, wanted, delimiter=delimiter, array=array, sheet=sheet)
    rows = _read(path, kind, wanted, "\t" if delimiter == "tab" else delimiter, array, sheet)
    if rows.labels is None or unlabeled_label is None:
        return rows
    mark = word(unlabeled_label)
    return rows._replace(
        labels=np.array([None if each == mark else each for each in rows.labels], dtype=object)
    )


def _kind(path: Path) -> str:
    """The suffix, which may be two, as in .csv.gz; or "folder"."""
    if path.is_dir():
        return "folder"
    two = "".join(path.suffixes[-2:]).lower()
    return two if two in TEXT else path.suffix.lower()


def _read(
    path: Path, kind: str, wanted: Wanted, delimiter: str | None, array: str | None, sheet: str | None
) -> Rows:
    if kind == "folder":
        return read_folder(path, wanted)
    if path.stat().st_size == 0:
        raise bad(path, f"be {KINDS}", "an empty file", "check how it was made")
    with stage("reading"):
        if kind in TEXT:
            return read_text(path, wanted, delimiter=delimiter)
        if kind in ARROW:
            return read_arrow(path, wanted)
        if kind == EXCEL:
            return read_excel(path, wanted, sheet=sheet)
        if kind == ".npy":
            return read_npy(path, wanted)
        if kind == ".npz":
            return read_npz(path, wanted, array=array)
        if _is_idx(path):
            return read_idx_file(path, wanted)
    if kind == ".xls":
        raise bad(path, f"be {KINDS}", "an Excel file of the older kind (.xls)", "save it as .xlsx")
    raise bad(path, f"be {KINDS}", f"a file of another kind ({path.suffix or 'no suffix'})", "convert it")


def _require_applicable(
    path: Path, kind: str, wanted: Wanted, *, delimiter: str | None, array: str | None, sheet: str | None
) -> None:
    """Refuse options that do not apply to this kind of file."""
    if delimiter is not None and kind not in TEXT:
        raise ValueError(f"--delimiter must be for a table in text, got {path}; leave it out")
    if not wanted.header and kind not in (*TEXT, EXCEL):
        raise ValueError(f"--no-header must be for a table in text or Excel, got {path}; leave it out")
    if array is not None and kind != ".npz":
        raise ValueError(f"--array must be for an npz file, got {path}; leave it out")
    if sheet is not None and kind != EXCEL:
        raise ValueError(f"--sheet must be for an Excel file, got {path}; leave it out")
    if wanted.is_new:
        return
    if wanted.drop and kind not in (*TABLES, ".npy", ".npz"):
        raise ValueError(f"--drop must be for columns of a table or an array, got {path}; leave it out")
    if wanted.id is not None and kind not in TABLES:
        raise ValueError(f"--id must be for a column of a table, got {path}; leave it out")


def _is_idx(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            begin = file.read(4)
        if begin[:2] == b"\x1f\x8b":
            with gzip.open(path) as file:
                begin = file.read(4)
    except (OSError, EOFError, zlib.error):
        return False
    # Of whatever type: the idx reader names the one that it reads.
    return len(begin) == 4 and begin[:2] == b"\0\0" and begin[2] >= 8
