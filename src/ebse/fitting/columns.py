"""What is done to columns before the ensemble sees them."""

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ebse.reading import Rows

Array = npt.NDArray[Any]


class Columns(NamedTuple):
    """Names of the columns, and the medians of those that are split (NaN for the others)."""

    names: tuple[str, ...]
    medians: Array
    shape: tuple[int, int] | None

    @classmethod
    def found_in(cls, rows: Rows, *, split: bool) -> "Columns":
        """Columns of the rows that are learned from."""
        X = rows.X
        empty = np.isnan(X).all(0) if X.dtype.kind == "f" else np.zeros(X.shape[1], dtype=bool)
        if empty.any():
            name = rows.names[int(np.flatnonzero(empty)[0])]
            raise ValueError(
                f"{rows.path} must have an entry in every column, got none in {name!r}; pass --drop {name!r}"
            )
        medians = np.full(X.shape[1], np.nan)
        if split:
            for j in range(X.shape[1]):
                column = X[:, j][~np.isnan(X[:, j])] if X.dtype.kind == "f" else X[:, j]
                values = np.unique(column)
                if len(values) > 2:
                    # Where more than half of the column is its largest value, nothing lies above the median.
                    medians[j] = min(np.median(column), values[-2])
        return cls(rows.names, medians, rows.shape)

    def apply(self, X: Array) -> Array:
        """X with quantities split; NaN stays NaN."""
        asked = ~np.isnan(self.medians)
        if not asked.any():
            return X
        made = np.array(X, dtype=np.float64)
        made[:, asked] = np.where(np.isnan(made[:, asked]), np.nan, made[:, asked] > self.medians[asked])
        return made

    def filled(self, X: Array) -> Array:
        """X with means of the columns, split like them, in place of NaN: where training starts."""
        gone = np.isnan(X) if X.dtype.kind == "f" else None
        if gone is None or not gone.any():
            return X
        X = np.array(X, dtype=np.float64)
        return np.where(gone, np.nanmean(X, 0), X)

    def described(self, X: Array) -> str:
        """What the columns are, and what is done to them, in words for the user."""
        n = X.shape[1]
        if X.dtype == np.uint8 and X.max(initial=0) > 1:
            return "8-bit grey values, divided by 255"
        parts = []
        n_split = int((~np.isnan(self.medians)).sum())
        if n_split:
            parts.append(f"{n_split} of {n} columns are split at their median into yes and no")
            X = self.apply(X)
        with np.errstate(invalid="ignore"):
            low, high = np.nanmin(X, 0), np.nanmax(X, 0)
        outside = (low < 0) | (high > 1)
        if outside.any():
            which = "all" if outside.all() else f"{int(outside.sum())} of {n}"
            parts.append(
                f"{which} columns leave [0, 1] and are scaled by their minimum and maximum (quantities often "
                "serve better when split: --split)"
            )
        elif not parts:
            known = X[~np.isnan(X)] if X.dtype.kind == "f" else X
            binary = bool(np.isin(known, (0, 1)).all())
            parts.append("binary" if binary else "values in [0, 1], taken as probabilities")
        return "; ".join(parts)
