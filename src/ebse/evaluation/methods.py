"""What can be evaluated: embeddings, with one or many representations per example, and classifiers."""

import hashlib
import inspect
import os
import re
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, clone, is_classifier
from sklearn.frozen import FrozenEstimator
from torch import Tensor

from ebse._threads import one_thread
from ebse.evaluation._baselines import Draws, Shifts, pixels
from ebse.evaluation._storage import checksum

Array = NDArray[Any]


def classifies(method: Any) -> bool:
    """Whether a method is fitted anew in every episode, as scikit-learn's classifiers are."""
    return hasattr(method, "__sklearn_tags__") and not isinstance(method, type) and is_classifier(method)


def embedding(name: str, method: Any) -> Callable[[Any], Any]:
    """The function X -> (N, K) or (N, n_draws, K) of a method that is no classifier."""
    if isinstance(method, str) and method == "pixels":
        return pixels
    if not isinstance(method, (str, type)):
        for verb in ("representations", "transform"):
            if callable(function := getattr(method, verb, None)):
                return function  # type: ignore[no-any-return]
        if callable(method):
            return method  # type: ignore[no-any-return]
    raise TypeError(
        f"estimators[{name!r}] must have representations or transform, or be a classifier, a function "
        f"or 'pixels', got {method!r}; pass a fitted transformer or an instance of a classifier"
    )


def describe(method: Any) -> str:
    """What a checkpoint knows of a method: its type, or its name or parameters where it shows them."""
    if isinstance(method, (BaseEstimator, Draws, Shifts)) or inspect.isroutine(method):
        # Addresses differ from process to process.
        shown = re.sub(r" at 0x[0-9a-f]+", "", " ".join(repr(method).split()))
        learned = "".join(checksum(x) for x in _learned(method))
        return f"{shown} {hashlib.sha256(learned.encode()).hexdigest()[:16]}" if learned else shown
    return method if isinstance(method, str) else type(method).__qualname__


def _learned(method: Any) -> Iterator[Array]:
    """Arrays that decide what a method does."""
    if classifies(method):
        # Fitted anew in every episode, but for what is frozen within it.
        for part in method.get_params().values():
            if isinstance(part, FrozenEstimator):
                yield from _arrays(part)
    else:
        yield from _arrays(method)


def _arrays(held: Any) -> Iterator[Array]:
    """Arrays that an estimator, or one within it, has learned."""
    if isinstance(held, np.ndarray) or hasattr(held, "indptr"):
        yield held
    elif isinstance(held, dict):
        for name in sorted(held, key=str):
            yield from _arrays(held[name])
    elif isinstance(held, (list, tuple)):
        for part in held:
            yield from _arrays(part)
    elif isinstance(held, (BaseEstimator, Draws)):
        yield from _arrays(vars(held))


def representations(name: str, method: Any, X: Any) -> Array:
    """Representations (N, n_draws, K) of the rows of X by one call of a method; one draw of a transformer."""
    function, names = embedding(name, method), getattr(method, "feature_names_in_", None)
    # What learned from a frame would say that X has lost its names.
    framed = names is not None and isinstance(X, np.ndarray) and X.ndim == 2 and X.shape[1] == len(names)
    found = function(pd.DataFrame(X, columns=names) if framed else X)
    if isinstance(found, Tensor):
        found = found.detach().cpu().numpy()
    if hasattr(found, "toarray"):
        found = found.toarray()
    draws = np.asarray(found)
    if draws.ndim == 2:
        draws = draws[:, None]
    if draws.ndim != 3 or len(draws) != X.shape[0] or not draws.size:
        raise ValueError(
            f"estimators[{name!r}] must give an array ({X.shape[0]}, K) or ({X.shape[0]}, n_draws, K), "
            f"got shape {np.shape(found)}; return one row per example of X"
        )
    if draws.dtype.kind not in "fiub":
        raise TypeError(f"estimators[{name!r}] must give numbers, got {draws.dtype}; return a float array")
    return draws


def classifier_accuracy(
    classifier: Any, X: Any, y: Array, X_queries: Any, y_queries: Array, *, parent: int
) -> float:
    """Accuracy on the queries of a clone that is fitted on the labeled examples."""
    # Workers share the machine: each has one thread. In the caller's own process its settings stay.
    with nullcontext() if os.getpid() == parent else one_thread():
        fitted = clone(classifier).fit(X, y)
        return float(np.mean(np.asarray(fitted.predict(X_queries)) == y_queries))
