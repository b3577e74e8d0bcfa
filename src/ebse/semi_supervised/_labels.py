"""What is known of the classes: labels of some rows, and shares of the classes among the others."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd

Array = npt.NDArray[Any]


class Labels(NamedTuple):
    """Classes (C,), the class of each label (n,), and shares of the classes (C,), None where not known."""

    classes: Array
    target: npt.NDArray[np.intp]
    sizes: npt.NDArray[np.float64] | None


def is_blank(labels: Array, mark: Any) -> npt.NDArray[np.bool_]:
    """Which labels (n,) are the mark of rows without one; a missing value marks all missing values."""
    if pd.isna(mark):
        found: npt.NDArray[np.bool_] = pd.isna(pd.Series(labels)).to_numpy()
        return found
    # A missing value is neither equal to the mark nor different from it.
    return np.array([not pd.isna(label) and bool(label == mark) for label in labels], dtype=bool)


def of_one_kind(y: Any) -> Any:
    """Labels (n,) as an array of words or of numbers; both together, or missing ones, are refused."""
    held = np.asarray(y)
    words = [isinstance(label, str) for label in held.ravel()]
    missing = pd.isna(pd.Series(held.ravel())).any()
    if missing or (any(words) and not all(words)):
        raise ValueError(
            "y must be words or numbers, one kind, got "
            f"{'missing values' if missing else 'both'}; announce rows without a label by unlabeled_label "
            "(np.nan for missing values of any kind, None among them), and write labels alike"
        )
    return np.array(held.tolist()) if held.dtype == object else y


def shares_of(sizes: Any, classes: Array) -> npt.NDArray[np.float64] | None:
    """``class_prior`` as shares of the classes, in their order."""
    if sizes is None:
        return None
    if isinstance(sizes, str) and sizes == "equal":
        return np.full(len(classes), 1 / len(classes))
    if isinstance(sizes, pd.Series):
        sizes = sizes.to_dict()
    if not isinstance(sizes, Mapping):
        raise ValueError(
            f"class_prior must be None, 'equal' or a mapping, got {sizes!r}; pass one of these, for one "
            "{0: 0.9, 1: 0.1}"
        )
    try:
        shares = np.array([float(x) for x in sizes.values()])
    except (TypeError, ValueError):
        raise ValueError(f"class_prior must hold numbers, got {dict(sizes)!r}; give shares") from None
    known = classes.tolist()
    lacking, strange = [c for c in known if c not in sizes], [c for c in sizes if c not in set(known)]
    if lacking or strange:
        what = [f"no share for {', '.join(map(repr, lacking))}"] if lacking else []
        what += [f"one for {', '.join(map(repr, strange))}, which no row is labeled with"] if strange else []
        raise ValueError(
            f"class_prior must have a share for each of the classes {known}, got {' and '.join(what)}; name "
            "classes as the labels do, words or numbers, and label at least one row of each"
        )
    if not (len(shares) and (shares > 0).all()):
        raise ValueError(
            f"class_prior must be positive and sum to 1, got {dict(sizes)!r}; give each class more than 0"
        )
    if not abs(shares.sum() - 1) <= 1e-6:
        raise ValueError(
            f"class_prior must be positive and sum to 1, got {dict(sizes)!r}, which sum to "
            f"{shares.sum():g}; divide them by their sum"
        )
    return np.array([float(sizes[c]) for c in known])
