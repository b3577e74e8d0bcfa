"""Label propagation on a user's own data: when it is used, with which settings, and the fit itself.

A run with labels uses :class:`ebse.SpreadingClassifier` where most rows have no label.
"""

from typing import Any

import numpy as np
import numpy.typing as npt

from ebse.io.cells import is_number
from ebse.semi_supervised import ContrastiveFeatures, SpreadingClassifier

Array = npt.NDArray[Any]

LEAST_ROWS = 1_000
"""Rows below which labels are not propagated: on tables of 150 to 570 rows it was at best as accurate."""
CONTRASTIVE_FROM = 10_000
"""Rows from which on an encoder is trained; with 1,000 digits the rows themselves gave higher accuracy."""


def propagates(labeled: Array) -> bool:
    """Whether labels are propagated by default: many rows, of which most have no label."""
    return len(labeled) >= LEAST_ROWS and bool(labeled.mean() < 0.5)


def class_prior_from(text: str) -> Any:
    """``class_prior`` of the estimator from a setting: "equal", or for example "a=0.2,b=0.8"."""
    if text == "equal":
        return text
    prior: dict[str, float] = {}
    parts: list[str] = []
    for part in text.split(","):
        # Class names may contain commas: a name goes on until a part ends in a number.
        parts.append(part)
        name, _, probability = ",".join(parts).rpartition("=")
        name = name.strip()
        if not name or not is_number(probability):
            continue
        if name in prior:
            raise ValueError(f"class_prior must name a class once, got {name!r} twice; leave one of them out")
        prior[name], parts = float(probability), []
    if parts:
        raise ValueError(
            f"class_prior must be equal, or like a=0.2,b=0.8, got {','.join(parts).strip()!r} in {text!r}; "
            "give a probability to each class"
        )
    return prior


def new_classifier(n_rows: int, *, class_prior: str | None, n_rounds: int, seed: int) -> SpreadingClassifier:
    """The classifier for so many rows."""
    return SpreadingClassifier(
        ContrastiveFeatures(random_state=seed) if n_rows >= CONTRASTIVE_FROM else None,
        class_prior=None if class_prior is None else class_prior_from(class_prior),
        n_rounds=n_rounds,
        random_state=seed,
    )


def propagate(classifier: SpreadingClassifier, X: Array, labels: Array) -> tuple[SpreadingClassifier, Array]:
    """The classifier fitted to rows X (N, D), some with a label, and the order in which it holds the rows.

    Labeled rows come first, then the others.
    """
    known = labeled_rows(labels)
    order = np.concatenate([np.flatnonzero(known), np.flatnonzero(~known)])
    y = labels[known].astype(str)
    classifier.fit(X[known], y, X_unlabeled=None if known.all() else X[~known])
    return classifier, order


def labeled_rows(labels: Array) -> npt.NDArray[np.bool_]:
    """Which rows have a label."""
    return np.array([label is not None for label in labels])
