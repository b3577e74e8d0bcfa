"""What is done to columns before the ensemble sees them."""

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ebse.io import Rows

Array = npt.NDArray[Any]

QUARTILES = (0.25, 0.5, 0.75)


class Columns(NamedTuple):
    """Columns of a file, and features made of them: the column as it is, or whether it is above a cut."""

    names: tuple[str, ...]
    source: Array
    """The column that each feature is made of."""
    cuts: Array
    """Where it is cut; NaN: as it is."""
    shape: tuple[int, int] | None

    @classmethod
    def found_in(cls, rows: Rows, *, split: bool) -> "Columns":
        """Columns of the rows that are learned from, quantities split at their quartiles if asked."""
        X = rows.X
        source: list[int] = []
        cuts: list[float] = []
        for j, name in enumerate(rows.names):
            known = X[:, j][~np.isnan(X[:, j])] if X.dtype.kind == "f" else X[:, j]
            if not len(known):
                raise ValueError(
                    f"{rows.path} must have an entry in every column, got none in {name!r}; pass "
                    f"--drop {name!r}"
                )
            own = _cuts(known) if split else [np.nan]
            source += [j] * len(own)
            cuts += own
        shape = rows.shape if len(source) == len(rows.names) else None
        return cls(rows.names, np.array(source), np.array(cuts), shape)

    @property
    def features(self) -> tuple[str, ...]:
        """Names of the features."""
        return tuple(
            self.names[j] if np.isnan(cut) else f"{self.names[j]} > {cut:g}"
            for j, cut in zip(self.source.tolist(), self.cuts.tolist(), strict=True)
        )

    def apply(self, X: Array) -> Array:
        """Features of rows; NaN stays NaN."""
        asked = ~np.isnan(self.cuts)
        if not asked.any():
            return X
        made = np.array(X[:, self.source], dtype=np.float64)
        made[:, asked] = np.where(np.isnan(made[:, asked]), np.nan, made[:, asked] > self.cuts[asked])
        return made

    def filled(self, X: Array) -> Array:
        """Features with means in place of NaN: where training starts."""
        if X.dtype.kind != "f" or not np.isnan(X).any():
            return X
        return np.where(np.isnan(X), np.nanmean(X, 0), X)

    def described(self, X: Array) -> str:
        """What the columns are, and what is done to them, in words for the user."""
        n = len(self.names)
        if X.dtype == np.uint8 and X.max(initial=0) > 1 and np.isnan(self.cuts).all():
            return "8-bit gray values, divided by 255"
        parts = []
        n_split = len(np.unique(self.source[~np.isnan(self.cuts)]))
        if n_split:
            made = len(self.source)
            parts.append(
                f"{n_split} of {n} columns are split at their quartiles, which makes {made} features"
            )
        X = self.apply(X)
        low, high = np.fmin.reduce(X, 0), np.fmax.reduce(X, 0)
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


def _cuts(known: Array) -> list[float]:
    """Quartiles of a column that something lies above and below; none for a column of yes and no."""
    values = np.unique(known)
    if len(values) <= 2:
        return [np.nan]
    cuts = np.unique(np.quantile(known, QUARTILES))
    within = cuts[cuts < values[-1]].tolist()
    return within or [float(values[-2])]
