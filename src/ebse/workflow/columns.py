"""Preprocessing of columns: split at quartiles, imputed, scaled to [0, 1]; stored beside the model."""

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ebse._atomic import write_npz
from ebse._estimators import scale_of
from ebse.io import Rows, read_arrays
from ebse.io.arrays import damaged
from ebse.preprocessing import UnitScaling
from ebse.preprocessing.binary import quartile_cuts

Array = npt.NDArray[Any]

BYTE = 255
"""The largest gray value of an 8-bit image."""


class Columns(NamedTuple):
    """Columns of a file, and the features made of them: a column itself, or whether it is above a cut."""

    names: tuple[str, ...]
    source: Array
    """The column that each feature is made of."""
    cuts: Array
    """Where it is cut; NaN: the column itself."""
    shape: tuple[int, int] | None
    """Height and width, where rows are images."""
    scaling: UnitScaling
    """How features are scaled to [0, 1]."""
    means: Array
    """Mean of each feature, which is imputed for missing entries."""
    scale: str
    """Scale of the rows as they were read: "8-bit", "unit" or "" (see :func:`ebse._estimators.scale_of`)."""

    @classmethod
    def found_in(cls, rows: Rows, *, split: bool) -> "Columns":
        """Columns of the rows to fit to, with continuous ones split at their quartiles if ``split``."""
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
        at, where = np.array(source), np.array(cuts)
        features = _features(X, at, where)
        return cls(
            rows.names,
            at,
            where,
            shape,
            UnitScaling.found_in(features, image=features.dtype == np.uint8),
            np.asarray(np.nanmean(features, 0, dtype=np.float64)),
            scale_of(X[~np.isnan(X)] if X.dtype.kind == "f" else X),
        )

    @property
    def features(self) -> tuple[str, ...]:
        """Names of the features."""
        return tuple(
            self.names[j] if np.isnan(cut) else f"{self.names[j]} > {cut:g}"
            for j, cut in zip(self.source.tolist(), self.cuts.tolist(), strict=True)
        )

    def apply(self, X: Array) -> Array:
        """Features of rows X; NaN stays NaN."""
        return _features(X, self.source, self.cuts)

    def imputed(self, features: Array) -> Array:
        """Features with the mean of each in place of NaN."""
        if features.dtype.kind != "f" or not np.isnan(features).any():
            return features
        return np.where(np.isnan(features), self.means, features).astype(features.dtype)

    def scaled(self, X: Array) -> npt.NDArray[np.float32]:
        """Features of rows X, imputed and scaled to [0, 1], as label propagation takes them."""
        unit: npt.NDArray[np.float32] = self.scaling.apply(self.imputed(self.apply(X)))
        return unit

    def require_scale(self, rows: Rows) -> None:
        """Refuse 8-bit rows for a model fitted to rows in [0, 1], and the reverse."""
        X, must = rows.X, f"{rows.path} must be on the scale of the data that the run was fitted to"
        low, width = self.scaling
        highest = float(np.nanmax(X)) if X.size and not (X.dtype.kind == "f" and np.isnan(X).all()) else 0.0
        scale = scale_of(X[~np.isnan(X)] if X.dtype.kind == "f" else X)
        images = bool((width == BYTE).all()) and not low.any() and X.dtype.kind == "f" and highest <= 1
        if images or (self.scale, scale) == ("8-bit", "unit"):
            raise ValueError(
                f"{must}, gray values from 0 to 255, got values up to {highest:g}; multiply them by 255"
            )
        unit = not low.any() and bool((width == 1).all()) and bool(np.isnan(self.cuts).all())
        if (unit and X.dtype == np.uint8 and highest > 1) or (self.scale, scale) == ("unit", "8-bit"):
            raise ValueError(f"{must}, from 0 to 1, got values up to {highest:g}; divide them by 255")

    def described(self, X: Array) -> str:
        """What the columns of X are and what is done to them, for the user."""
        n = len(self.names)
        if X.dtype == np.uint8 and X.max(initial=0) > 1 and np.isnan(self.cuts).all():
            return "8-bit gray values, divided by 255"
        parts = []
        n_split = len(np.unique(self.source[~np.isnan(self.cuts)]))
        if n_split:
            parts.append(
                f"{n_split} of {n} columns are split at their quartiles, which makes {len(self.source)} "
                "features"
            )
        n_scaled = len(self.scaling.scaled)
        if n_scaled:
            which = "all" if n_scaled == len(self.source) else f"{n_scaled} of {n}"
            parts.append(
                f"{which} columns have values outside [0, 1] and are scaled by their minimum and maximum "
                "(for measurements try --split)"
            )
        elif not parts:
            known = X[~np.isnan(X)] if X.dtype.kind == "f" else X
            binary = bool(np.isin(known, (0, 1)).all())
            parts.append("binary" if binary else "values in [0, 1]")
        return "; ".join(parts)

    def save(self, path: Path) -> None:
        """Write the preprocessing to an npz file, atomically."""
        write_npz(
            path,
            names=np.array(self.names),
            source=self.source,
            cuts=self.cuts,
            shape=np.array([] if self.shape is None else self.shape, dtype=np.int64),
            low=self.scaling.low,
            width=self.scaling.width,
            means=self.means,
            scale=np.array(self.scale),
        )

    @classmethod
    def load(cls, path: Path) -> "Columns":
        """The preprocessing that :meth:`save` wrote; contradictory contents are refused."""
        held = read_arrays(path, "names", "source", "cuts", "shape", "low", "width", "means", "scale")
        names, source, shape = held["names"], held["source"], held["shape"]
        numbers = [held[name] for name in ("cuts", "low", "width", "means")]
        n = source.shape
        sound = (
            names.ndim == source.ndim == shape.ndim == 1
            and names.dtype.kind == "U"
            and len(names) > 0
            and len(set(names.tolist())) == len(names)
            and source.dtype.kind == shape.dtype.kind == "i"
            and n[0] >= len(names)
            and np.array_equal(np.unique(source), np.arange(len(names)))
            and all(x.shape == n and x.dtype == np.float64 for x in numbers)
            and bool(np.isfinite(np.stack(numbers[1:])).all())
            and not np.isinf(held["cuts"]).any()
            and bool((held["width"] > 0).all())
            and (not len(shape) or (len(shape) == 2 and min(shape) > 0 and int(shape.prod()) == n[0]))
            and held["scale"].shape == ()
            and str(held["scale"]) in ("", "unit", "8-bit")
        )
        if not sound:
            raise damaged(path)
        return cls(
            tuple(names.tolist()),
            source,
            held["cuts"],
            (int(shape[0]), int(shape[1])) if len(shape) else None,
            UnitScaling(held["low"], held["width"]),
            held["means"],
            str(held["scale"]),
        )

    def same_as(self, other: "Columns") -> bool:
        """Whether two are equal."""
        return (self.names, self.shape, self.scale) == (other.names, other.shape, other.scale) and all(
            np.array_equal(a, b, equal_nan=True)
            for a, b in zip(
                (self.source, self.cuts, *self.scaling),
                (other.source, other.cuts, *other.scaling),
                strict=True,
            )
        )


def _features(X: Array, source: Array, cuts: Array) -> Array:
    """Columns of X that are not cut as they are, the others as 1 above the cut and 0 below."""
    cut = ~np.isnan(cuts)
    if not cut.any():
        return X
    made = np.array(X[:, source], dtype=np.float64)
    made[:, cut] = np.where(np.isnan(made[:, cut]), np.nan, made[:, cut] > cuts[cut])
    return made


def _cuts(known: Array) -> list[float]:
    """Quartiles of a column with values above and below; NaN for a binary column."""
    if len(np.unique(known)) <= 2:
        return [np.nan]
    found: list[float] = quartile_cuts(known).tolist()
    return found
