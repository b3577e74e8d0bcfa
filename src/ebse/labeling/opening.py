"""Sessions on files, folders, frames and arrays."""

import re
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from ebse._labels import read_labels
from ebse.io import Rows, read_rows
from ebse.io.image_files import FOLDER
from ebse.io.rows import bad, numbered
from ebse.labeling.items import Files, Items, Numbers, Pixels, Table
from ebse.labeling.session import Session
from ebse.semi_supervised._columns import as_frame, column_kinds
from ebse.workflow.fit import checksum
from ebse.workflow.fit_config import FitConfig, columns_from

LEAST_ROWS = 10


def session_on_file(
    config: FitConfig,
    *,
    folder: Path,
    shape: tuple[int, ...] | None = None,
    classes: Sequence[str] = (),
    target: float = 0.95,
) -> Session:
    """A session on a file or a folder of images; what is wrong with it is found out at once."""
    require_target(target)
    path = Path(config.data)
    options: dict[str, Any] = {"config": config, "folder": folder, "classes": classes, "target": target}
    if path.is_dir() and (files := Files.of(path)).names:
        _require_rows(len(files), path)
        if config.label not in (None, FOLDER):
            raise ValueError(
                f"label must be {FOLDER!r} for a folder of images, got {config.label!r}; pass that"
            )
        if shape is not None:
            raise ValueError(f"shape must be for arrays of pixels, got {shape} for files; leave it out")
        labels = {} if config.label is None else files.folders()
        # Names and sizes alone: images are read while the first one is looked at.
        sizes = [(name, (path / name).stat().st_size) for name in files.names]
        return Session(
            path.name,
            files,
            lambda: read_rows(path, **config.reading, raw=True),
            labels=labels,
            data=zlib.crc32(repr(sizes).encode()),
            **options,
        )
    rows = read_rows(path, **config.reading, raw=True)
    _require_rows(len(rows.X), path)
    if config.column:
        # Kinds of columns that cannot be are found out before a page opens.
        column_kinds(as_frame(rows.X), columns_from(config.column))
    items = _items(rows, shape or rows.shape, path.parent)
    return Session(path.name, items, lambda: rows, labels=_labels(rows), data=checksum(rows), **options)


def session_on_rows(
    X: Any,
    y: Any = None,
    *,
    name: str,
    folder: Path,
    shape: tuple[int, ...] | None = None,
    classes: Sequence[str] = (),
    target: float = 0.95,
    random_state: int = 0,
) -> Session:
    """A session on a frame or an array in memory."""
    require_target(target)
    place = Path(name)
    if hasattr(X, "columns"):
        frame = as_frame(X).reset_index(drop=True)
        rows = Rows(place, frame, tuple(map(str, frame.columns)))
    else:
        values = np.asarray(X)
        if values.ndim < 2 or values.dtype.kind not in "buif":
            raise ValueError(
                f"X must be a frame, or an array of numbers (N, D) or (N, height, width), got shape "
                f"{values.shape} and type {values.dtype}; pass one of these"
            )
        if values.ndim in (3, 4) and shape is None:
            shape = values.shape[1:]
        values = values.reshape(len(values), -1)
        rows = Rows(place, values, numbered(values.shape[1]))
    _require_rows(len(rows.X), place)
    if y is not None:
        known = read_labels(y, len(rows.X), more_unlabeled=True)
        labels = np.full(len(rows.X), None, dtype=object)
        if known is not None:
            labels[known.rows] = [str(known.classes[at]) for at in known.target]
        rows = rows._replace(labels=labels)
    config = FitConfig(data=name, random_state=random_state)
    return Session(
        name,
        _items(rows, shape, None),
        lambda: rows,
        labels=_labels(rows),
        data=checksum(rows),
        config=config,
        folder=folder,
        classes=classes,
        target=target,
    )


def _labels(rows: Rows) -> dict[int, str]:
    """Labels that rows came with."""
    if rows.labels is None:
        return {}
    return {row: str(name) for row, name in enumerate(rows.labels) if name is not None}


def _items(rows: Rows, shape: tuple[int, ...] | None, folder: Path | None) -> Items:
    if hasattr(rows.X, "columns"):
        if shape is not None:
            raise ValueError(f"shape must be for arrays of pixels, got {shape} for a table; leave it out")
        return Table.of(pd.DataFrame(rows.X), rows.files, folder)
    if shape is None:
        return Numbers(rows.X)
    if int(np.prod(shape)) != rows.X.shape[1]:
        raise ValueError(
            f"shape must have {rows.X.shape[1]} pixels, as a row has entries, got "
            f"{' × '.join(map(str, shape))}; correct it"
        )
    return Pixels.of(rows.X, shape)


def shape_from(text: str) -> tuple[int, ...]:
    """Height and width from a text such as "28x28", and channels as in "32x32x3"."""
    if not re.fullmatch(r"\d{1,5}x\d{1,5}(x[34])?", text):
        raise ValueError(f"shape must be like 28x28 or 32x32x3, got {text!r}; give height and width")
    return tuple(map(int, text.split("x")))


def require_target(target: float) -> None:
    """Refuse an accuracy that nobody can reach, or that everybody has."""
    if not 0.5 <= target < 1:
        raise ValueError(f"target must be from 0.5 to below 1, got {target:g}; pass 0.95, for example")


def _require_rows(n: int, path: Path) -> None:
    if n < LEAST_ROWS:
        raise bad(path, f"have at least {LEAST_ROWS} rows", f"{n}", "give more")
