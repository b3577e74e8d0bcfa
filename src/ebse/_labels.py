"""Labels of classifiers: which rows have one, the classes, and the class of each labeled row."""

import warnings
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd
from sklearn.base import ClassifierMixin
from sklearn.metrics import accuracy_score
from sklearn.utils import column_or_1d

Array = npt.NDArray[Any]
Index = npt.NDArray[np.intp]

MISSING_WORDS = ("", "nan", "None", "<NA>", "NaT")
"""What missing entries become where labels are converted to strings."""
MOSTLY = 0.5
"""Fraction of labels −1 above which they look like scikit-learn's mark of unlabeled rows."""


class Labels(NamedTuple):
    """Labels of some of the rows of a data matrix."""

    rows: Index
    """Indices of the labeled rows (n,), ascending."""
    classes: Array
    """The classes, sorted (C,)."""
    target: Index
    """For each labeled row its class, as an index into ``classes`` (n,)."""


def read_labels(
    y: Any, n_rows: int, *, unlabeled_label: Any = None, more_unlabeled: bool = False
) -> Labels | None:
    """Labels y of n_rows rows; None if y is None.

    A missing entry (None, NaN, ``pd.NA``, ``pd.NaT``, a masked entry) is an unlabeled row, and so is one that
    equals ``unlabeled_label``.

    Parameters
    ----------
    y
        A list, an array, a pandas or polars series, or None.
    n_rows : int
        Number of rows of X.
    unlabeled_label : default None
        A further value that marks unlabeled rows, such as −1. A warning says if it does not occur.
    more_unlabeled : bool, default False
        Whether there are unlabeled rows beside those of y (``X_unlabeled``): no warning then.

    Examples
    --------
    >>> found = read_labels(["cat", None, "dog", "cat"], 4)
    >>> found.rows, found.classes, found.target
    (array([0, 2, 3]), array(['cat', 'dog'], dtype='<U3'), array([0, 1, 0]))
    """
    if np.ndim(unlabeled_label) > 0:
        raise ValueError(
            f"unlabeled_label must be one value, got {unlabeled_label!r}; pass -1, for example, or mark "
            "unlabeled rows by None or NaN"
        )
    if y is None:
        return None
    if isinstance(y, (str, Mapping)):
        raise ValueError(
            f"y must have one entry for each row of X, got {y!r:.60}; pass a list, an array or a column, "
            "such as frame['label'], with missing entries for unlabeled rows"
        )
    entries = _entries(y)
    if len(entries) != n_rows:
        raise ValueError(
            f"y must have one entry for each of the {n_rows} rows of X, got {len(entries)}; mark unlabeled "
            "rows by None or NaN"
        )
    missing = _unlabeled(entries, unlabeled_label)
    if missing.all():
        raise ValueError(
            "y must have labels, got none: every entry is missing or unlabeled_label; label at least one row "
            "of each class, or pass y=None to fit without labels"
        )
    if unlabeled_label is not None and not missing.any() and not more_unlabeled:
        warnings.warn(
            f"no row has the label {unlabeled_label!r} (unlabeled_label), and there is no X_unlabeled: all "
            "rows are labeled; check the value, or leave unlabeled_label out",
            stacklevel=3,
        )
    rows = np.flatnonzero(~missing)
    labels = _of_one_kind(entries[rows])
    if labels.dtype.kind == "f" and not np.isfinite(labels).all():
        raise ValueError("y must have finite labels, got inf; mark unlabeled rows by None or NaN")
    # scikit-learn's own check warns of many classes for few labels, which is what few labels are like.
    fractions = labels[labels != labels.round()] if labels.dtype.kind == "f" else []
    if len(fractions):
        raise ValueError(
            f"Unknown label type: y must have classes, got the fraction {fractions[0]}; pass names or whole "
            "numbers"
        )
    classes, target = np.unique(labels, return_inverse=True)
    if unlabeled_label is None and len(classes) > 2 and np.mean(labels == -1) > MOSTLY:
        warnings.warn(
            "-1 is treated as a class, and most labeled rows have it; if it marks unlabeled rows, pass "
            "unlabeled_label=-1",
            stacklevel=3,
        )
    words = [word for word in MISSING_WORDS if labels.dtype.kind == "U" and word in classes]
    if words:
        warnings.warn(
            f"{', '.join(map(repr, words))} in y is treated as a class; if it marks unlabeled rows, as a "
            "missing entry does that was converted to a string, pass y as a list or an array of objects, or "
            f"unlabeled_label={words[0]!r}",
            stacklevel=3,
        )
    if len(classes) < 2:
        raise ValueError(
            f"y must have at least 2 classes, got one class, {classes[0]}; label rows of other classes, too"
        )
    return Labels(rows, classes, target)


class LabeledScore(ClassifierMixin):  # type: ignore[misc]
    """The ``score`` of classifiers whose y may have unlabeled rows, marked as in ``fit``."""

    unlabeled_label: Any

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Accuracy on the labeled rows of X; unlabeled ones do not count.

        Parameters
        ----------
        X : array-like (N, D)
        y : array-like (N,)
            Labels; missing entries (None, NaN) and ``unlabeled_label`` are unlabeled rows.
        sample_weight : array-like (N,) or None, default=None
            Weights of the rows.

        Returns
        -------
        float
            Between 0 and 1.
        """
        if y is None:
            raise ValueError("y must be labels, got None; pass the labels of the rows X")
        predicted = self.predict(X)
        entries = _entries(y)
        if len(entries) != len(predicted):
            raise ValueError(
                f"y must have one entry for each of the {len(predicted)} rows of X, got {len(entries)}; mark "
                "unlabeled rows by None or NaN"
            )
        rows = np.flatnonzero(~_unlabeled(entries, self.unlabeled_label))
        if not len(rows):
            raise ValueError(
                "y must have labels, got none: every entry is missing or unlabeled_label, and accuracy needs "
                "labels; in cross-validation, use fewer folds or more labels"
            )
        weights = None if sample_weight is None else np.asarray(sample_weight)[rows]
        return float(accuracy_score(_of_one_kind(entries[rows]), predicted[rows], sample_weight=weights))


def warn_of_lost_classes(before: Array, classes: Array) -> None:
    """Warn in ``relabel`` of classes that have no label any more, unless there are others in their place."""
    lost = np.setdiff1d(before, classes).tolist()
    if lost and np.isin(classes, before).all():
        warnings.warn(
            f"no label is {', '.join(map(repr, lost))} any more, and no row will be predicted as that: "
            "relabel takes all labels that are known, not only new ones",
            stacklevel=3,
        )


def restored_classes(dtype: str, values: list[Any]) -> Array:
    """The classes (C,) of a file, from the type and the values that it holds; ValueError unless sorted.

    Of the type only the kind is used for strings: a large width would reserve memory for it.
    """
    kind = np.dtype(dtype).kind
    types = {"b": bool, "i": int, "u": int, "f": float, "U": str}
    if not isinstance(values, list) or not all(type(value) is types.get(kind) for value in values):
        raise ValueError(f"classes of type {dtype!r}, got {values!r:.60}")
    found = np.array(values, dtype=None if kind == "U" else dtype)
    if len(found) < 2 or not (found[:-1] < found[1:]).all():
        raise ValueError(f"classes must be sorted and different, got {values!r:.60}")
    return found


def _entries(y: Any) -> Array:
    """y as an array (n,); of objects where NumPy would convert 1 and "1" to the same label."""
    if isinstance(y, np.ma.MaskedArray) or (hasattr(y, "to_list") and not isinstance(y, np.ndarray)):
        # Masked entries and nulls become None, and integers beside them stay integers.
        y = y.tolist() if isinstance(y, np.ma.MaskedArray) else y.to_list()
    if not isinstance(y, np.ndarray):
        y = np.asarray(y, dtype=object)
    found: Array = column_or_1d(y, warn=True)
    return found


def _unlabeled(entries: Array, unlabeled_label: Any) -> npt.NDArray[np.bool_]:
    """Which entries (n,) mark unlabeled rows."""
    missing: npt.NDArray[np.bool_] = pd.isna(pd.Series(entries)).to_numpy(dtype=bool)
    if unlabeled_label is not None and not pd.isna(unlabeled_label):
        missing = missing | _equal(entries, unlabeled_label, ~missing)
    return missing


def _equal(entries: Array, mark: Any, present: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
    """Which entries (n,) equal the mark; missing ones do not."""
    return np.array([here and bool(entry == mark) for here, entry in zip(present, entries, strict=True)])


def _of_one_kind(labels: Array) -> Array:
    """Labels (n,) as an array of strings, of numbers or of booleans; a mixture is refused."""
    if labels.dtype != object:
        return labels
    kinds = {"words" if isinstance(x, str) else "booleans" if _is_bool(x) else "numbers" for x in labels}
    if len(kinds) > 1:
        raise ValueError(
            f"y must be words or numbers, one kind, got {' and '.join(sorted(kinds))}; write all labels "
            'alike (1 and "1" would be two classes), and mark unlabeled rows by None or NaN'
        )
    return np.array(labels.tolist())


def _is_bool(x: Any) -> bool:
    return isinstance(x, (bool, np.bool_))


def plain_classes(classes: Array) -> dict[str, Any]:
    """Classes for JSON: words are no arrays of a safetensors file."""
    return {"values": classes.tolist(), "dtype": classes.dtype.str}
