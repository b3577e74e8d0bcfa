"""Shared by the estimators: input validation of rows, seeds, and representations that are passed in."""

import datetime
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy import sparse
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from ebse import _archive
from ebse._validation import LARGEST, count, option

OMITTED = "omitted"
"""In a file, in place of a representation that was left out of it."""
SCALES = ("", "8-bit", "unit")
"""Results of :func:`scale_of`."""
BRIGHT = 128
"""Largest entry that 8-bit rows have at least, to be recognized as such."""
BLOCK = 4_096
"""Rows that are checked at once."""


def require_estimator(name: str, value: Any, verb: str, example: str) -> None:
    """Refuse a value that is not an instance of an estimator with the method ``verb``."""
    if isinstance(value, type) or not all(hasattr(value, what) for what in (verb, "get_params")):
        raise TypeError(
            f"{name} must be an estimator with {verb}, got {value!r:.60}; pass an instance, such as {example}"
        )


def learned(representation: Any, rows: Any, seed: int, names: Any = None) -> Any:
    """The representation itself if it is frozen, a copy fitted to the rows if not; None stays None.

    ``names`` are those of the columns, where X was a frame: a representation may select columns by name.
    """
    if representation is None:
        return None
    if isinstance(representation, FrozenEstimator):
        fitted = representation.estimator
        check_is_fitted(fitted)
        _require_columns(fitted, rows.shape[1], names)
        return fitted
    try:
        return seeded(representation, seed).fit(with_names(rows, names))
    except KeyboardInterrupt:
        raise KeyboardInterrupt(
            "stopped while the representation was fitted, and nothing of it is kept; fit it by itself, "
            "where Ctrl-C keeps what was learned, and pass FrozenEstimator(representation)"
        ) from None


def _require_columns(fitted: Any, n_features: int, names: Any) -> None:
    """Refuse a fitted representation of other columns than X has, or of the same in another order."""
    n = getattr(fitted, "n_features_in_", n_features)
    if n != n_features:
        raise ValueError(
            f"representation must be fitted to rows of {n_features} features, like X, got one fitted "
            f"to {n}; fit it on rows of the same columns"
        )
    own = getattr(fitted, "feature_names_in_", None)
    if own is None or names is None or list(own) == list(names):
        return
    i = next(i for i, (a, b) in enumerate(zip(own, names, strict=True)) if a != b)
    raise ValueError(
        f"representation must be fitted to the columns of X, in their order, got one whose column {i} is "
        f"{own[i]!r}, where that of X is {names[i]!r}; pass X with the columns in the order of "
        "representation.feature_names_in_"
    )


def representation_state(prefix: str, representation: Any, *, omit: bool = False) -> _archive.State:
    """The fitted representation of an estimator, as part of its file; None, and one left out, as a word.

    TypeError for a representation that is not of this package, unless it is to be left out.
    """
    if representation is None or omit:
        return _archive.State({prefix: None if representation is None else OMITTED}, {})
    if not _archive.is_ours(representation):
        raise TypeError(
            f"representation must be an estimator of ebse to be saved, got {type(representation).__name__}; "
            'call save(path, representation="omit"), keep the representation yourself, and pass it to '
            "load(path, representation=fitted)"
        )
    return _archive.nested(prefix, representation)


class Inputs(NamedTuple):
    """What a file holds of the rows of ``fit``."""

    n_features: int
    names: list[str] | None
    """Of the columns, where X was a frame."""
    scale: str
    """See :func:`scale_of`."""

    @classmethod
    def from_facts(cls, facts: dict[str, Any]) -> "Inputs":
        """From the facts of a file; TypeError or ValueError for those that no estimator writes."""
        n, names = count("n_features", facts["n_features"]), facts["feature_names"] or None
        if names is not None and not (len(names) == n and all(isinstance(name, str) for name in names)):
            raise ValueError(f"feature_names must be {n} strings, got {names!r:.60}")
        return cls(n, names, option("scale", facts["scale"], SCALES))

    def apply_to(self, estimator: Any) -> None:
        """Set the attributes that ``fit`` sets."""
        estimator.n_features_in_, estimator._scale = self.n_features, self.scale
        if self.names is not None:
            estimator.feature_names_in_ = np.array(self.names, dtype=object)


def supplied_representation(
    state: _archive.State, prefix: str, given: Any, inputs: Inputs, width: int | None
) -> Any:
    """The fitted representation that was passed to ``load``, if the file was written without one.

    ValueError if it is not one of rows like ``inputs``, or has not ``width`` features (None: any number).
    """
    omitted = state.facts.get(prefix) == OMITTED
    if omitted and given is None:
        raise ValueError(
            "representation must be given, as the file was saved without it; call "
            "load(path, representation=fitted)"
        )
    if given is None:
        return None
    if not omitted:
        raise ValueError(
            f"representation must be left out, as the file holds its own, got {given!r:.60}; call load(path)"
        )
    fitted = given.estimator if isinstance(given, FrozenEstimator) else given
    require_estimator("representation", fitted, "transform", "the one that was fitted")
    check_is_fitted(fitted)
    _require_columns(fitted, inputs.n_features, inputs.names)
    _require_width(fitted, inputs, width)
    return fitted


def _require_width(fitted: Any, inputs: Inputs, width: int | None) -> None:
    """Refuse a representation that does not transform a row into ``width`` features."""
    # Ones, because logarithms and the like of zeros are not defined; what it warns of them is no matter.
    row = with_names(np.ones((1, inputs.n_features)), getattr(fitted, "feature_names_in_", None))
    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            shape = dense(fitted.transform(row)).shape
    except Exception as error:
        raise ValueError(
            f"representation must transform rows of {inputs.n_features} features, got "
            f"{type(error).__name__}: {error}; pass the one that the classifier was fitted with"
        ) from error
    if len(shape) != 2 or width not in (None, shape[1]):
        raise ValueError(
            f"representation must transform rows to {width} features, got {shape[-1] if shape else 0}; pass "
            "the one that the file was saved with"
        )


def dense(Z: Any) -> npt.NDArray[Any]:
    """The output of a representation as an array, also where it is sparse."""
    return np.asarray(Z.toarray() if sparse.issparse(Z) else Z)


def restored_representation(state: _archive.State, prefix: str, supplied: Any = None) -> Any:
    """The fitted representation of a file, or the one that :func:`supplied_representation` gave."""
    held = state.facts[prefix]
    if held is None:
        return None
    if held == OMITTED:
        if supplied is None:
            raise ValueError("a representation was left out of the file")
        return supplied
    return _archive.restored(state.inside(prefix))


@contextmanager
def unchanged_on_error(estimator: Any) -> Iterator[None]:
    """Leave an estimator as it was if its ``fit`` raises, or is interrupted by Ctrl-C."""
    before = vars(estimator).copy()
    try:
        yield
    except BaseException:
        vars(estimator).clear()
        vars(estimator).update(before)
        raise


def or_none(X: Any) -> Any:
    """X, or None if it has no rows: ``X_unlabeled`` may be empty."""
    shape = getattr(X, "shape", None)
    if shape is None:
        return X if not hasattr(X, "__len__") or len(X) else None
    return None if shape and shape[0] == 0 else X


def seeded(estimator: Any, seed: int) -> Any:
    """An unfitted copy, with this seed as random state if it has none of its own: results repeat."""
    copy = clone(estimator)
    if copy.get_params().get("random_state", seed) is None:
        copy.set_params(random_state=seed)
    return copy


def as_rows(X: Any, name: str = "X") -> Any:
    """X with tensors as arrays, and boolean or half-precision arrays as float32; anything else unchanged.

    Dates and masked arrays are refused with TypeError: scikit-learn would read dates as large numbers, and
    ignore the mask.
    """
    _require_numbers(X, name)
    if type(X).__module__.partition(".")[0] == "torch":
        X = X.detach().cpu()
        X = X.float().numpy() if X.is_floating_point() and X.element_size() == 2 else X.numpy()
    if isinstance(X, np.ndarray) and X.dtype in (np.bool_, np.float16):
        X = X.astype(np.float32)
    # Images (N, height, width) as rows of pixels.
    return X.reshape(len(X), -1) if isinstance(X, np.ndarray) and X.dtype == np.uint8 and X.ndim == 3 else X


def _require_numbers(X: Any, name: str) -> None:
    """Refuse masked arrays, and arrays or frames with dates or durations."""
    if isinstance(X, np.ma.MaskedArray):
        raise TypeError(
            f"{name} must not be a masked array, whose mask would be ignored; fill in the masked entries, "
            f"for example with {name}.filled({name}.mean()), or drop their rows"
        )
    columns = _date_columns(X)
    if columns:
        where = "" if columns is True else f" in column {', '.join(map(repr, columns))}"
        raise TypeError(
            f"{name} must hold numbers, got dates or durations{where}; convert them to what matters, such as "
            "days since a fixed date, the month or the weekday, or drop them"
        )


def _date_columns(X: Any) -> bool | list[Any]:
    """The columns of a frame that hold dates or durations; of an array, whether there are any."""
    if isinstance(X, np.ndarray):
        return _holds_dates(X.ravel())
    if isinstance(X, pd.DataFrame):
        return [name for j, name in enumerate(X.columns) if _holds_dates(X.iloc[:, j])]
    if type(X).__module__.partition(".")[0] == "polars" and hasattr(X, "schema"):
        return [name for name, dtype in X.schema.items() if dtype.is_temporal()]
    return False


def _holds_dates(values: Any) -> bool:
    """Whether an array (n,) or a column of a frame has entries that are dates or durations."""
    return values.dtype.kind in "mM" or (values.dtype.kind == "O" and any(map(_is_date, values)))


def _is_date(x: Any) -> bool:
    return isinstance(x, (datetime.date, datetime.timedelta, np.datetime64, np.timedelta64))


def require_moderate(X: Any, name: str = "X") -> None:
    """Refuse an entry of X (N, D), an array or a csr matrix, of 1e20 or more in absolute value.

    Squared distances and variances of such rows overflow single precision, and probabilities become NaN.
    """
    values = X.data if sparse.issparse(X) else X
    if values.size == 0 or (values.max() < LARGEST and values.min() > -LARGEST):
        return
    if sparse.issparse(X):
        X = X.tocoo()
        i = int(np.argmax(abs(X.data) >= LARGEST))
        row, column = int(X.row[i]), int(X.col[i])
        value = X.data[i]
    else:
        row, column = (int(i) for i in np.argwhere(abs(X) >= LARGEST)[0])
        value = X[row, column]
    raise ValueError(
        f"{name} must have entries below {LARGEST:g} in absolute value, got {value:g} in row {row}, column "
        f"{column}; if it stands for a missing value, drop or fill it in, if not, rescale the column"
    )


def scale_of(X: Any) -> str:
    """Scale of the rows X (N, D), an array or a csr matrix: "8-bit", "unit", or "" for any other.

    "8-bit": all entries are whole numbers from 0 to 255, and the largest is at least 128. "unit": all entries
    are in [0, 1], and some are strictly between. Tables of 0 and 1 are neither, nor are counts below 128.
    """
    values = X.data if sparse.issparse(X) else X
    if values.size == 0:
        return ""
    lowest, highest = values.min(), values.max()
    if lowest < 0 or not (highest <= 1 or BRIGHT <= highest <= 255):
        return ""
    whole = values.dtype.kind in "ui" or all(
        bool((abs(part - np.round(part)) < 1e-3).all())
        for part in (values[start : start + BLOCK] for start in range(0, len(values), BLOCK))
    )
    if highest <= 1:
        return "" if whole else "unit"
    return "8-bit" if whole else ""


def warn_of_scale(fitted: str, X: npt.NDArray[Any], name: str = "X", like: str = "the rows of fit") -> None:
    """Warn of 8-bit rows X where those of ``fit`` are in [0, 1], or the reverse: both would not be alike."""
    found = other_scale(fitted, X, name, like)
    if found is not None:
        warnings.warn(found, stacklevel=4)


def other_scale(fitted: str, X: npt.NDArray[Any], name: str, like: str = "the rows of fit") -> str | None:
    """The message if rows X are on another scale than the rows of ``fit``, whose :func:`scale_of` is given.

    Only "8-bit" against "unit" is one: tables whose entries are not all whole numbers up to 255, or not all
    in [0, 1], never are.
    """
    scale = scale_of(X) if fitted else ""
    if not scale or scale == fitted:
        return None
    ranges = {"8-bit": "0 to 255", "unit": "0 to 1"}
    return (
        f"{name} has entries from {ranges[scale]}, but {like} are from {ranges[fitted]}; "
        f"{'divide it by 255' if scale == '8-bit' else 'multiply it by 255'}"
    )


def with_names(X: Any, names: Any) -> Any:
    """X as a frame with these column names, for an estimator that was fitted to one."""
    return X if names is None or sparse.issparse(X) else pd.DataFrame(X, columns=names)


def require_number(n: Any) -> int:
    """``n`` of ``suggest``, a whole number of at least 1; rows in its place are refused."""
    if np.ndim(n):
        # An array is no number, though NumPy gives it the methods of one.
        raise TypeError(
            "n must be a whole number, got an array; pass rows as X=…, for example suggest(5, X=X)"
        )
    return count("n", n)


def row_indices(exclude: Iterable[int], n: int) -> npt.NDArray[np.intp]:
    """``exclude`` of ``suggest`` as indices of n rows."""
    found = np.array(list(exclude))
    whole = found.ndim == 1 and found.dtype.kind in "iu"
    if found.size and not (whole and found.min() >= 0 and found.max() < n):
        raise ValueError(
            f"exclude must hold indices of rows, whole numbers from 0 to {n - 1}, got {exclude!r:.60}; pass "
            "indices as suggest returns them"
        )
    return found.astype(np.intp)


def row_keys(X: Any, dtype: Any = np.float32) -> npt.NDArray[np.uint64]:
    """A 64-bit hash of the values of each row of X (N, D), an array or a csr matrix, rounded to ``dtype``.

    In single precision rows have the same one whatever the precision they are given in. Two different rows
    have the same one with probability 2⁻⁶⁴ or so.
    """
    factors = pd.util.hash_array(np.arange(X.shape[1])) | np.uint64(1)
    found = [np.empty(0, dtype=np.uint64)]
    for start in range(0, X.shape[0], BLOCK):
        # + 0 makes −0 the same as 0.
        values = dense(X[start : start + BLOCK]).astype(dtype) + dtype(0)
        hashed = pd.util.hash_array(values.ravel()).reshape(values.shape)
        found.append((hashed * factors).sum(1, dtype=np.uint64))
    return np.concatenate(found)


def key_type(X: Any) -> Any:
    """Precision of :func:`row_keys` that tells the rows X apart: double only where it must be."""
    if X.dtype == np.float32:
        return np.float32
    n_single, n_double = (len(np.unique(row_keys(X, dtype))) for dtype in (np.float32, np.float64))
    return np.float32 if n_single == n_double else np.float64


def seed_of(random_state: Any) -> int:
    """A seed from anything that scikit-learn accepts as a random state, or from a NumPy Generator."""
    if isinstance(random_state, np.random.Generator):
        return int(random_state.integers(np.iinfo(np.int32).max))
    try:
        state = check_random_state(random_state)
    except (ValueError, TypeError):
        raise ValueError(
            "random_state must be None, an int in [0, 2**32 - 1], a RandomState or a Generator, got "
            f"{random_state!r}; pass an int for results that repeat"
        ) from None
    return int(state.randint(np.iinfo(np.int32).max))
