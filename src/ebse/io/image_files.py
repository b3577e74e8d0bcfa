"""Images: a folder of them, one class a subfolder, and idx files."""

import gzip
import math
import struct
import warnings
import zlib
from pathlib import Path

import numpy as np
from PIL import Image, UnidentifiedImageError

from ebse.datasets._download import found_in
from ebse.datasets.idx import read_idx
from ebse.datasets.images import load_images
from ebse.io.arrays import DENSEST, LOOSE
from ebse.io.rows import Rows, Wanted, bad, numbered

SUFFIXES = (".png", ".jpg", ".jpeg", ".bmp", ".pgm", ".ppm")
FORMATS = ("PNG", "JPEG", "BMP", "PPM")
"""What is opened; Pillow knows more, and every one of them is more to trust."""
LARGEST = 2**22
"""Pixels of an image: far more than an ensemble can learn from."""
FOLDER, LABELS = "folder", "labels"
"""Names of labels: the subfolder an image is in, and the idx file beside that of the images."""


def read_folder(path: Path, wanted: Wanted) -> Rows:
    """Gray images of a folder and its subfolders, which are their labels where "folder" is wanted."""
    held = found_in(path) or []
    idx = bool(held)
    label = wanted.label
    if wanted.only is not None and label != (LABELS if idx else FOLDER):
        label = None
    if idx:
        for file in held:
            _require_credible(file)
        # In full, because "mnist" alone is the name of a data set.
        images = load_images(path.resolve())
        if label not in (None, LABELS):
            raise bad(path, "be asked for 'labels'", f"--label {label!r}", "pass --label labels")
        y = None if label is None else np.array([str(value) for value in images.y], dtype=object)
        wanted.require_size(path, images.X)
        wanted.require_count(path, images.X.shape[1])
        return Rows(path, images.X, numbered(images.X.shape[1]), y, images.shape)
    if label not in (None, FOLDER):
        raise bad(
            path,
            "be asked for the label 'folder'",
            f"--label {label!r}",
            "pass --label folder: subfolders are classes",
        )
    files = sorted(p for p in path.rglob("*") if p.suffix.lower() in SUFFIXES and p.is_file())
    if not files:
        raise bad(
            path, f"hold images ({', '.join(SUFFIXES)}) or MNIST's idx files", "none", "check the folder"
        )
    first = _gray(files[0])
    wanted.require_count(path, first.size)
    X = np.empty((len(files), first.size), dtype=np.uint8)
    for row, file in zip(X, files, strict=True):
        image = _gray(file)
        if image.shape != first.shape:
            (height, width), (other, wide) = first.shape, image.shape
            raise bad(
                path,
                "hold images of one size",
                f"{file.name} of {wide} × {other} and {files[0].name} of {width} × {height}",
                "scale them to one size",
            )
        row[:] = image.ravel()
    wanted.require_size(path, X)
    y = None
    if label is not None:
        inside = [file.relative_to(path).parts for file in files]
        y = np.array([parts[0] if len(parts) > 1 else None for parts in inside], dtype=object)
    notes = (f"{len(files)} images of {first.shape[1]} × {first.shape[0]} pixels, read as gray values",)
    places = tuple(file.relative_to(path).as_posix() for file in files)
    return Rows(path, X, numbered(first.size), y, (first.shape[0], first.shape[1]), places, notes)


def read_idx_file(path: Path, wanted: Wanted) -> Rows:
    """Images, or rows of bytes, of one idx file."""
    if wanted.label is not None and wanted.only is None:
        raise bad(
            path,
            "be in a folder with its labels",
            f"--label {wanted.label!r}",
            "give the folder, and --label labels",
        )
    _require_credible(path)
    array = read_idx(path)
    if array.ndim not in (2, 3):
        raise bad(
            path, "hold images or rows", f"shape {array.shape}, as labels have", "give the file of images"
        )
    shape = None if array.ndim == 2 else (array.shape[1], array.shape[2])
    X = array.reshape(len(array), -1) if array.size else array.reshape(len(array), 0)
    wanted.require_size(path, X)
    wanted.require_count(path, X.shape[1])
    return Rows(path, X, numbered(X.shape[1]), None, shape)


def _require_credible(path: Path) -> None:
    """Refuse a compressed idx file that claims far more than it can hold."""
    with path.open("rb") as file:
        if file.read(2) != b"\x1f\x8b":
            return
    try:
        with gzip.open(path) as content:
            begin = content.read(4)
            claimed = math.prod(int(n) for n in np.frombuffer(content.read(4 * begin[3]), ">u4"))
    except (OSError, EOFError, zlib.error, IndexError, ValueError):
        # Not idx: its reader says so.
        return
    size = path.stat().st_size
    if claimed > LOOSE and claimed > DENSEST * size:
        raise bad(
            path,
            f"hold an array that is compressed {DENSEST} times at most",
            f"one of {claimed} bytes made of {size}",
            "decompress it first",
        )


def _gray(path: Path) -> np.ndarray[tuple[int, int], np.dtype[np.uint8]]:
    """Gray values of an image file (height, width)."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", Image.DecompressionBombWarning)
            with Image.open(path, formats=FORMATS) as image:
                size = f"{image.width} × {image.height}"
                if image.width * image.height > LARGEST:
                    refused = bad(path, f"have at most {LARGEST} pixels", size, "scale it down")
                elif image.mode[0] in "IF":
                    # Pillow would clip them to 255.
                    refused = bad(path, "have 8 bits a pixel", f"mode {image.mode}", "convert it to 8 bits")
                else:
                    gray: np.ndarray[tuple[int, int], np.dtype[np.uint8]] = np.asarray(image.convert("L"))
                    return gray
    except (
        UnidentifiedImageError,
        ValueError,
        SyntaxError,
        EOFError,
        struct.error,
        IndexError,
        Image.DecompressionBombWarning,
        Image.DecompressionBombError,
    ) as error:
        raise bad(
            path, f"be an image ({', '.join(FORMATS)})", f"something else ({error})", "remove or mend it"
        ) from None
    except OSError as error:
        if error.filename is not None:
            raise
        raise bad(path, "be a whole image", f"a damaged one ({error})", "remove or mend it") from None
    raise refused
