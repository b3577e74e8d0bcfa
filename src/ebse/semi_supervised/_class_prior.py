"""Class prior: its parsing, and class weights with which probabilities agree with it (Sinkhorn balancing)."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

Array = npt.NDArray[np.floating[Any]]

N_SINKHORN, LARGEST_RATIO = 50, 1e6
"""Iterations of Sinkhorn balancing, and the largest ratio of two class weights."""

GIVEN_SOFTNESS = 0.1
"""Of a given prior: the number of predicted rows of a class may differ a little from it."""

N_EM, CONCENTRATION = 100, 0.05
"""Steps of expectation maximization at most; pseudo-rows of each class, for every row."""

CAUTION, TRUSTED, NEARLY_EQUAL = 0.4, 2.0, 0.1
"""Power of a prior estimated with many labels, labels per class at which it is half of that, and total
variation from equal classes up to which an estimate is ignored."""


def require_prior(class_prior: Any) -> None:
    """Refuse a ``class_prior`` that is no prior, whatever the classes are."""
    if class_prior is None or (isinstance(class_prior, str) and class_prior == "equal"):
        return
    if isinstance(class_prior, pd.Series):
        class_prior = class_prior.to_dict()
    if not isinstance(class_prior, Mapping):
        raise ValueError(
            f"class_prior must be None, 'equal' or a mapping, got {class_prior!r}; pass one of these, for "
            "example {0: 0.9, 1: 0.1}"
        )
    try:
        values = np.array([float(x) for x in class_prior.values()])
    except (TypeError, ValueError):
        raise ValueError(
            f"class_prior must hold numbers, got {dict(class_prior)!r}; give each class its probability"
        ) from None
    if not (len(values) and (values > 0).all()):
        raise ValueError(
            f"class_prior must be positive and sum to 1, got {dict(class_prior)!r}; give each class more "
            "than 0"
        )


def prior_probabilities(class_prior: Any, classes: npt.NDArray[Any]) -> npt.NDArray[np.float64] | None:
    """``class_prior`` (None, "equal" or a mapping) as probabilities of the classes (C,), in their order."""
    require_prior(class_prior)
    if class_prior is None:
        return None
    if isinstance(class_prior, str) and class_prior == "equal":
        return np.full(len(classes), 1 / len(classes))
    if isinstance(class_prior, pd.Series):
        class_prior = class_prior.to_dict()
    known = classes.tolist()
    lacking = [c for c in known if c not in class_prior]
    unknown = [c for c in class_prior if c not in set(known)]
    if lacking or unknown:
        what = [f"none for {', '.join(map(repr, lacking))}"] if lacking else []
        what += [f"one for {', '.join(map(repr, unknown))}, which no row is labeled with"] if unknown else []
        raise ValueError(
            f"class_prior must have a probability for each of the classes {known}, got {' and '.join(what)}; "
            "write classes as the labels do, words or numbers, and label at least one row of each"
        )
    # After the classes: a misspelt class is often why the sum is wrong.
    values = np.array([float(class_prior[c]) for c in known])
    if not abs(values.sum() - 1) <= 1e-6:
        raise ValueError(
            f"class_prior must be positive and sum to 1, got {dict(class_prior)!r}, which sum to "
            f"{values.sum():g}; divide them by their sum"
        )
    return values


def class_weights(p: Array, prior: Array, *, softness: float = 0) -> Array:
    """Weights w of the classes with which p w, normalized, has the prior as its mean over rows (C,).

    Sinkhorn balancing of the class probabilities p (N, C). With ``softness`` > 0 the mean m only approaches
    the prior, and w ∝ (prior / m)^(1 / softness): the nearer m is, the smaller the correction. A prior that
    contradicts the probabilities cannot be met; weights then stay within a factor LARGEST_RATIO.

    References
    ----------
    R. Sinkhorn, "Diagonal equivalence to matrices with prescribed row and column sums", 1967.
    L. Chizat et al., "Scaling algorithms for unbalanced optimal transport problems", 2018 (for softness).
    """
    weights = np.ones(p.shape[1])
    for _ in range(N_SINKHORN):
        per_row = 1 / np.maximum(p @ weights, 1e-300)
        weights = (prior * len(p) / np.maximum(p.T @ per_row, 1e-300)) ** (1 / (1 + softness))
        weights = np.maximum(weights / weights.max(), 1 / LARGEST_RATIO)
    return weights


def prior_weights(p: Array, prior: Array) -> Array:
    """Class weights (C,) with which probabilities p (N, C) of rows have about this given prior.

    By Sinkhorn balancing of p⁴, so that predicted classes rather than doubtful probabilities are counted.
    Multiplied by the prior itself, probabilities that are not calibrated would lose rare classes.
    """
    squares = p * p
    powers = squares * squares
    found: Array = class_weights(powers / class_sums(powers), prior, softness=GIVEN_SOFTNESS)
    return found**0.25


def estimated_prior(answers: dict[str, Array], weights: dict[str, float]) -> tuple[Array, Array]:
    """Class prior (C,) of rows by expectation maximization on their class probabilities, and its error (C,).

    The probabilities are those of members that give every class the same weight. In every step a row belongs
    to the classes in proportion to p · prior, and the prior becomes the mean over rows, shrunk toward equal
    classes by CONCENTRATION pseudo-rows of each class for every row: what few labels say is uncertain. The
    error is the standard deviation of what the members find one by one.

    References
    ----------
    M. Saerens, P. Latinne and C. Decaestecker, "Adjusting the outputs of a classifier to new a priori
    probabilities", 2002.
    """
    p = sum(weights[name] * one for name, one in answers.items()) / sum(weights[name] for name in answers)
    each = np.stack([_by_em(one) for one in answers.values()])
    return _by_em(np.asarray(p)), each.std(0)


def caution(prior: Array, n_labels: float) -> float:
    """Power of a prior in predictions that is estimated with n_labels per class; 0 for nearly equal classes.

    What few labels say about the prior is often wrong, but by less than it is where classes differ much.
    """
    apart = float(abs(prior - 1 / len(prior)).sum() / 2)
    unequal = float(np.clip((apart - NEARLY_EQUAL) / NEARLY_EQUAL, 0, 1))
    return CAUTION * n_labels / (n_labels + TRUSTED) * unequal


def _by_em(p: Array) -> Array:
    n_classes = p.shape[1]
    prior = np.full(n_classes, 1 / n_classes)
    for _ in range(N_EM):
        joint = p * prior
        parts = (joint / np.maximum(class_sums(joint), 1e-300)).mean(0)
        before, prior = prior, (parts + CONCENTRATION) / (1 + CONCENTRATION * n_classes)
        if abs(prior - before).max() < 1e-6:
            break
    return prior


def class_sums(p: Array) -> Array:
    """Sums of p (N, C) over the classes (N, 1): a product is 20 times as fast as ``p.sum(1)``."""
    found: Array = p @ np.ones((p.shape[1], 1), dtype=p.dtype)
    return found


def plain_prior(class_prior: Any) -> Any:
    """``class_prior`` for JSON, whose keys are always strings: a mapping as two lists."""
    if isinstance(class_prior, pd.Series):
        class_prior = class_prior.to_dict()
    if not isinstance(class_prior, Mapping):
        return class_prior
    classes = [c.item() if isinstance(c, np.generic) else c for c in class_prior]
    return {"classes": classes, "probabilities": [float(p) for p in class_prior.values()]}


def restored_prior(held: Any) -> Any:
    """``class_prior`` of a file."""
    return dict(zip(held["classes"], held["probabilities"], strict=True)) if isinstance(held, dict) else held
