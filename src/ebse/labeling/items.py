"""Rows as a person sees them: images as PNG, cells and texts of tables as words."""

import io
import os
import warnings
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt
import pandas as pd
from PIL import Image, ImageOps

from ebse.io.image_files import FORMATS, MOST, SUFFIXES

Array = npt.NDArray[Any]

LONGEST, MOST_CELLS = 20_000, 60
"""Letters of an entry, and entries of a row, that are shown."""
LONG = 60
"""Mean letters from which on a column of words is shown as text."""
WIDEST = 1_024
"""Pixels of the longer side of an image that is shown."""
N_LOOKED_AT = 200
"""Rows by which it is decided how a column is shown."""

Item = dict[str, Any]


class Items(Protocol):
    """Rows that can be shown."""

    def __len__(self) -> int: ...

    def name(self, row: int) -> str:
        """What a row is called."""

    def shown(self, row: int) -> Item:
        """A row for the page."""

    def image(self, row: int) -> bytes:
        """The PNG of a row; raises LookupError where it has none."""


class Table(NamedTuple):
    """Rows of a frame."""

    frame: pd.DataFrame
    names: tuple[str, ...] | None
    texts: tuple[Any, ...]
    """Columns that are shown as text."""
    pictures: Any
    """The column of image files, or None."""
    folder: Path | None
    """The folder in which these files are."""

    @classmethod
    def of(cls, frame: pd.DataFrame, names: tuple[str, ...] | None, folder: Path | None) -> "Table":
        """The rows of a frame, whose image files are in a folder."""
        some = frame.head(N_LOOKED_AT)
        words = [c for c in frame.columns if not pd.api.types.is_numeric_dtype(frame[c].dtype)]
        texts, pictures = [], None
        for column in words:
            held = some[column].dropna().astype(str)
            if not len(held):
                continue
            if pictures is None and folder and held.str.lower().str.endswith(SUFFIXES).mean() > 0.9:
                pictures = column
            elif held.str.len().mean() >= LONG:
                texts.append(column)
        return cls(frame, names, tuple(texts), pictures, folder)

    def __len__(self) -> int:
        return len(self.frame)

    def name(self, row: int) -> str:
        """What a row is called."""
        return _numbered(row) if self.names is None else self.names[row]

    def shown(self, row: int) -> Item:
        """A row for the page."""
        cells: list[list[str]] = []
        texts: list[list[str]] = []
        for at, column in enumerate(self.frame.columns):
            where = texts if column in self.texts else cells
            if column == self.pictures or (where is cells and len(cells) == MOST_CELLS):
                continue
            # Not all entries of a row at once, which would have one type.
            where.append([str(column), _word(self.frame.iat[row, at])])
        return _item(row, self.name(row), image=self.pictures is not None, cells=cells, text=texts)

    def image(self, row: int) -> bytes:
        """The PNG of a row."""
        if self.pictures is None or self.folder is None:
            raise LookupError("no image")
        return png(inside(self.folder, str(self.frame[self.pictures].iloc[row])))


class Files(NamedTuple):
    """Images of a folder."""

    folder: Path
    names: tuple[str, ...]

    @classmethod
    def of(cls, folder: Path) -> "Files":
        """All images of a folder and its subfolders, in the order of the reader."""
        inside = sorted(p for p in folder.rglob("*") if p.is_file() and not p.name.startswith("."))
        images = [p for p in inside if p.suffix.lower() in SUFFIXES]
        links = [p for p in images if p.is_symlink()]
        if links:
            raise ValueError(
                f"{folder} must hold image files, got the symbolic link {links[0].name}, which the page does "
                "not follow; copy the images"
            )
        return cls(folder, tuple(p.relative_to(folder).as_posix() for p in images))

    def folders(self) -> dict[int, str]:
        """The first folder of each file that is in one, as its class."""
        parts = [name.split("/") for name in self.names]
        return {row: each[0] for row, each in enumerate(parts) if len(each) > 1}

    def __len__(self) -> int:
        return len(self.names)

    def name(self, row: int) -> str:
        """What a row is called."""
        return self.names[row]

    def shown(self, row: int) -> Item:
        """A row for the page."""
        return _item(row, self.name(row), image=True)

    def image(self, row: int) -> bytes:
        """The PNG of a row."""
        return png(inside(self.folder, self.names[row]))


class Pixels(NamedTuple):
    """Images that are rows of an array."""

    X: Any
    shape: tuple[int, ...]
    """Height and width, and channels if there are several."""
    low: float
    high: float
    """Values that are shown black and white."""

    @classmethod
    def of(cls, X: Any, shape: tuple[int, ...]) -> "Pixels":
        """Rows X (N, D) of an array that are images of a shape."""
        if np.asarray(X[:1]).dtype == np.uint8:
            return cls(X, shape, 0.0, 255.0)
        some = np.asarray(X[:N_LOOKED_AT], dtype=np.float64)
        some = some[np.isfinite(some)]
        low, high = (float(some.min()), float(some.max())) if some.size else (0.0, 1.0)
        return cls(X, shape, min(low, 0.0), high if high > low else low + 1)

    def __len__(self) -> int:
        return len(self.X)

    def name(self, row: int) -> str:
        """What a row is called."""
        return _numbered(row)

    def shown(self, row: int) -> Item:
        """A row for the page."""
        return _item(row, self.name(row), image=True)

    def image(self, row: int) -> bytes:
        """The PNG of a row."""
        gray = (np.asarray(self.X[row], dtype=np.float64).reshape(self.shape) - self.low) / (
            self.high - self.low
        )
        pixels = (255 * np.clip(np.nan_to_num(gray), 0, 1)).round().astype(np.uint8)
        return _encoded(Image.fromarray(pixels))


class Numbers(NamedTuple):
    """Rows of an array that are no images."""

    X: Any

    def __len__(self) -> int:
        return len(self.X)

    def name(self, row: int) -> str:
        """What a row is called."""
        return _numbered(row)

    def shown(self, row: int) -> Item:
        """A row for the page."""
        held = np.asarray(self.X[row])
        cells = [[str(i), _word(x)] for i, x in enumerate(held[:MOST_CELLS].tolist())]
        return _item(row, self.name(row), cells=cells)

    def image(self, row: int) -> bytes:
        """The PNG of a row."""
        raise LookupError("no image")


def inside(folder: Path, name: str) -> Path:
    """The file of a name within a folder; a name that leads elsewhere, or through a link, is refused."""
    folder = folder.resolve()
    path = folder / name
    try:
        target = path.resolve()
        # Pipes and devices are no images, and to open one may wait forever.
        sound = Path(os.path.normpath(path)) == target and folder in target.parents and target.is_file()
    except (OSError, ValueError, RuntimeError):
        # Names with zero bytes, links in a circle.
        sound = False
    if not sound:
        raise LookupError("no image")
    return path


def png(path: Path) -> bytes:
    """An image file, decoded and encoded again: what a browser gets is never the file itself."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            with Image.open(path, formats=FORMATS) as image:
                if image.width * image.height > MOST:
                    raise LookupError("image too large")
                image.draft("RGB", (WIDEST, WIDEST))
                image.thumbnail((WIDEST, WIDEST))
                # Upright, as the model sees it.
                upright = ImageOps.exif_transpose(image)
                return _encoded(upright.convert("RGBA" if upright.has_transparency_data else "RGB"))
    except LookupError:
        raise
    except Exception as error:
        # Pillow raises almost anything on damaged files.
        raise LookupError(f"no image: {type(error).__name__}") from None


def _encoded(image: Image.Image) -> bytes:
    held = io.BytesIO()
    image.save(held, "PNG", compress_level=1)
    return held.getvalue()


def _item(
    row: int, name: str, *, image: bool = False, cells: list[Any] | None = None, text: list[Any] | None = None
) -> Item:
    return {"row": row, "name": name, "image": image, "cells": cells or [], "text": text or []}


def _numbered(row: int) -> str:
    return f"row {row + 1}"


def _word(x: Any) -> str:
    if x is None or x is pd.NA or x is pd.NaT or (isinstance(x, (float, np.floating)) and np.isnan(x)):
        return ""
    return f"{x:.10g}" if isinstance(x, float) else str(x)[:LONGEST]
