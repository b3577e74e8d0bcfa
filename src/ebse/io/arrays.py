"""NumPy's files, npy and npz: headers are checked before any number is read, and pickles are never loaded."""

import lzma
import math
import struct
import tokenize
import zipfile
import zlib
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.lib import format as npy

from ebse.io.rows import (
    Labels,
    Numbers,
    Rows,
    Wanted,
    bad,
    label_of,
    numbered,
    require_finite,
)

FLOATS = (np.float16, np.float32, np.float64)
"""Types that are kept; others are converted to the last of them."""
LARGEST = 2**35
"""Bytes that an array in a compressed file may claim."""
LONGEST_HEADER = 10_000
"""Bytes of a header, as NumPy has it."""
LOOSE, DENSEST = 2**26, 300
"""Bytes up to which any compression is accepted, and the largest ratio that is accepted beyond."""
BROKEN = (
    zipfile.BadZipFile,
    zlib.error,
    lzma.LZMAError,
    struct.error,
    EOFError,
    NotImplementedError,
    RuntimeError,
    IndexError,
    OverflowError,
)
"""What zipfile raises on damaged archives."""


def read_npy(path: Path, wanted: Wanted) -> Rows:
    """Rows of an npy file (N, D), or images (N, height, width); columns are named by their numbers."""
    with path.open("rb") as file:
        shape, _, dtype = _header(path, file, path.name)
        held = path.stat().st_size - file.tell()
    _require_held(path, path.name, shape, dtype, held)
    X = np.load(path, mmap_mode="r", allow_pickle=False)
    return _rows(path, X, None, wanted)


def read_npz(path: Path, wanted: Wanted, *, array: str | None = None) -> Rows:
    """Rows of one array of an npz file; the label is another one, or a column."""
    label = wanted.label
    try:
        with zipfile.ZipFile(path) as archive:
            shapes = {info.filename.removesuffix(".npy"): info for info in archive.infolist()}
            for info in archive.infolist():
                _require_credible(path, info)
            if not shapes:
                raise bad(path, "hold arrays", "none", "save some with numpy.savez")
            chosen = _chosen(path, archive, shapes, array, label)
            X = _member(path, archive, shapes[chosen])
            y = _member(path, archive, shapes[label]) if label in shapes else None
    except (*BROKEN, OSError) as error:
        if getattr(error, "filename", None) is not None:
            raise
        raise bad(path, "be an npz file", f"one that cannot be opened ({error})", "save it again") from None
    if y is None:
        return _rows(path, X, None, wanted)
    return _rows(path, X, _labels(path, str(label), y, len(X)), wanted._replace(label=None))


def read_arrays(path: Path, *names: str) -> dict[str, Numbers]:
    """Arrays of an npz file that ebse itself wrote, under the same limits of size as users' files."""
    try:
        with zipfile.ZipFile(path) as archive:
            held = {info.filename.removesuffix(".npy"): info for info in archive.infolist()}
            for name in names:
                _require_credible(path, held[name])
            return {name: _member(path, archive, held[name], empty=True) for name in names}
    except (ValueError, OSError, KeyError, TypeError, AttributeError, *BROKEN):
        raise damaged(path) from None


def damaged(path: Path) -> ValueError:
    """The error of a file of a run that is missing, or is not what ebse wrote."""
    return bad(path, "be as ebse wrote it", "none or a damaged one", "restore it from a copy, or fit again")


def _chosen(
    path: Path, archive: zipfile.ZipFile, held: dict[str, Any], array: str | None, label: str | None
) -> str:
    """The name of the array that holds the rows."""
    if array is not None:
        if array not in held:
            raise bad(
                path, "have the array that --array names", f"{array!r} among {', '.join(held)}", "correct it"
            )
        return array
    several = []
    for name, info in held.items():
        with archive.open(info) as file:
            shape, _, _ = _header(path, file, name)
        if len(shape) >= 2 and name != label:
            several.append(name)
    if len(several) != 1:
        raise bad(
            path,
            "have one array of rows, or --array",
            f"{len(several)} ({', '.join(several) or 'none with two axes'})",
            "name one with --array",
        )
    return several[0]


def incredible(info: zipfile.ZipInfo) -> str | None:
    """What is wrong with a member that may unpack to far more than its size; None if nothing is."""
    size = info.file_size
    if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        # Other methods unpack whole chunks, however few bytes are read.
        return f"{info.filename} of another compression"
    if size > LARGEST or (size > LOOSE and size > DENSEST * max(info.compress_size, 1)):
        return f"{info.filename} of {size} bytes made of {info.compress_size}"
    return None


def _require_credible(path: Path, info: zipfile.ZipInfo) -> None:
    """Refuse an array that would unpack to far more than its compressed size, before it is unpacked."""
    claim = incredible(info)
    if claim is not None:
        raise bad(
            path,
            f"hold arrays of at most {LARGEST >> 30} GiB that are compressed {DENSEST} times at most",
            claim,
            "save it uncompressed (numpy.savez)",
        )


def _member(path: Path, archive: zipfile.ZipFile, info: zipfile.ZipInfo, *, empty: bool = False) -> Numbers:
    """An array of the archive; no more is read than its header claims."""
    size = info.file_size
    with archive.open(info) as file:
        shape, fortran, dtype = _header(path, file, info.filename)
        start = file.tell()
        if not empty or 0 not in shape:
            _require_held(path, info.filename, shape, dtype, size - start)
        content = file.read(size - start)
    if len(content) != math.prod(shape) * dtype.itemsize:
        raise bad(path, "hold complete arrays", f"{info.filename}, which is cut short", "save it again")
    flat = np.frombuffer(content, dtype)
    return flat.reshape(shape, order="F" if fortran else "C")


def _header(path: Path, file: IO[bytes], name: str) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    """Shape, order and type that an npy header claims."""
    try:
        # A header is a line of text: no more than this is ever read.
        begin = file.read(12)
        if begin[6:7] > b"\x01" and int.from_bytes(begin[8:12], "little") > LONGEST_HEADER:
            raise ValueError("it is longer than any header")
        file.seek(0)
        version = npy.read_magic(file)
        read = npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0
        shape, fortran, dtype = read(file)
    except (zipfile.BadZipFile, zlib.error):
        raise
    except (
        ValueError,
        EOFError,
        OSError,
        SyntaxError,
        TypeError,
        LookupError,
        AttributeError,
        tokenize.TokenError,
        RecursionError,
        MemoryError,
        UserWarning,
    ) as error:
        what = " ".join(str(error).split())[:120]
        raise bad(
            path, "be NumPy's format", f"{name}, whose header cannot be read ({what})", "save it again"
        ) from None
    if dtype.hasobject:
        raise bad(path, "hold numbers", f"{name} of Python objects, which would be unpickled", "save numbers")
    if dtype.itemsize == 0 or any(n < 0 for n in shape):
        raise bad(path, "be NumPy's format", f"{name} of {dtype}, shape {shape}", "save it again")
    return shape, fortran, dtype


def _require_held(path: Path, name: str, shape: tuple[int, ...], dtype: np.dtype[Any], held: int) -> None:
    claimed = math.prod(shape) * dtype.itemsize
    if claimed == 0:
        # Before columns are named: a header may claim any number of columns for no rows.
        raise bad(path, "have at least 2 rows and one column", f"shape {shape}", "give a file with more")
    if claimed != held:
        raise bad(
            path, "hold what its header claims", f"{name} of {claimed} bytes in {held}", "save it again"
        )


def _rows(path: Path, X: Numbers, y: Labels | None, wanted: Wanted) -> Rows:
    if X.dtype.kind not in "biuf":
        remedy = "convert them"
        if X.dtype.kind in "mM":
            remedy = "convert dates to numbers, such as days since the first"
        raise bad(path, "hold numbers", f"values of type {X.dtype}", remedy)
    if X.ndim not in (2, 3):
        raise bad(
            path, "hold rows (N, D) or images (N, height, width)", f"shape {X.shape}", "reshape the array"
        )
    shape = None
    if X.ndim == 3:
        shape = (X.shape[1], X.shape[2])
        X = X.reshape(len(X), -1)
        wanted.require_count(path, X.shape[1])
    names = numbered(X.shape[1])
    kept, at = wanted.places(path, names)
    if len(kept) < len(names):
        y = y if at is None else _labels(path, str(wanted.label), X[:, at], len(X))
        X, names, shape = X[:, kept], tuple(names[i] for i in kept), None
    wanted.require_size(path, *X.shape)
    if X.dtype != np.uint8 and X.dtype not in FLOATS:
        with np.errstate(over="ignore"):
            X = X.astype(np.float64)
    require_finite(path, X, names, missing=wanted.missing, unit="row")
    return Rows(path, X, names, y, shape)


def _labels(path: Path, name: str, y: Any, n: int) -> Labels:
    if y.ndim != 1 or len(y) != n or y.dtype.kind not in "biufU":
        raise bad(
            path,
            f"have a label for each of {n} rows in {name}",
            f"shape {y.shape} of {y.dtype}",
            "give one number or text per row",
        )
    return np.array([label_of(value) for value in y.tolist()], dtype=object)
