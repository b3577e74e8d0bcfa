"""Rows of a file or a folder, whatever its format."""

import gzip
import os
import zlib
from pathlib import Path

import numpy as np

from ebse._stages import stage
from ebse.io.arrays import read_npy, read_npz
from ebse.io.image_files import read_folder, read_idx_file
from ebse.io.rows import Rows, Wanted, bad, word
from ebse.io.tables import DELIMITERS, read_table

KINDS = "a table (.csv, .tsv), NumPy's .npy or .npz, an idx file, or a folder of images"


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
) -> Rows:
    """Rows of a file or a folder.

    Parameters
    ----------
    path
        A table (.csv, .tsv), NumPy's .npy or .npz, an idx file (also .gz), or a folder of images.
    label
        The column of labels; of an npz file also an array; "folder" where subfolders are classes, "labels"
        in a folder with MNIST's idx files.
    drop
        Columns that are left out.
    only
        The columns of numbers, in this order, whatever else the file has; the label column may be absent.
    delimiter
        The delimiter of a table, by default a comma (.csv) or a tab (.tsv).
    header
        Whether the first line of a table holds the column names; False numbers the columns from 0.
    array
        The array of an npz file that holds the rows, where it has several.
    missing
        Whether entries may be missing; they become NaN.
    id
        The column of a table that holds row names.
    unlabeled_label
        The label of rows that have none, such as -1; by default only missing entries are unlabeled.
    """
    rows = _read(path, label, drop, only, delimiter, header, array, missing, id)
    if rows.labels is None or unlabeled_label is None:
        return rows
    mark = word(unlabeled_label)
    return rows._replace(
        labels=np.array([None if each == mark else each for each in rows.labels], dtype=object)
    )


def _read(
    path: str | Path,
    label: str | None,
    drop: tuple[str, ...],
    only: tuple[str, ...] | None,
    delimiter: str | None,
    header: bool,
    array: str | None,
    missing: bool,
    id: str | None,  # noqa: A002
) -> Rows:
    path = Path(path)
    # os.path, because Path.exists raises where a name is too long.
    if not os.path.exists(path):
        raise FileNotFoundError(f"{path} must be {KINDS}, got a name that does not exist; check it")
    delimiter = "\t" if delimiter == "tab" else delimiter
    kind = "folder" if path.is_dir() else path.suffix.lower()
    _require_applicable(path, kind, drop, delimiter, array, header)
    if id is not None and only is None and kind not in DELIMITERS:
        raise ValueError(f"--id must be for a column of a table, got {path}; leave it out")
    wanted = Wanted(label, drop, only, missing, id, header)
    if kind == "folder":
        return read_folder(path, wanted)
    if path.stat().st_size == 0:
        raise bad(path, f"be {KINDS}", "an empty file", "check how it was made")
    with stage("reading"):
        if kind in DELIMITERS:
            return read_table(path, wanted, delimiter=delimiter)
        if kind == ".npy":
            return read_npy(path, wanted)
        if kind == ".npz":
            return read_npz(path, wanted, array=array)
        if _is_idx(path):
            return read_idx_file(path, wanted)
    raise bad(path, f"be {KINDS}", f"a file of another kind ({path.suffix or 'no suffix'})", "convert it")


def _require_applicable(
    path: Path, kind: str, drop: tuple[str, ...], delimiter: str | None, array: str | None, header: bool
) -> None:
    """Refuse options that do not apply to this kind of file."""
    if delimiter is not None and kind not in DELIMITERS:
        raise ValueError(f"--delimiter must be for a table, got {path}; leave it out")
    if not header and kind not in DELIMITERS:
        raise ValueError(f"--no-header must be for a table, got {path}; leave it out")
    if array is not None and kind != ".npz":
        raise ValueError(f"--array must be for an npz file, got {path}; leave it out")
    if drop and kind not in (*DELIMITERS, ".npy", ".npz"):
        raise ValueError(f"--drop must be for columns of a table or an array, got {path}; leave it out")


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
