"""Labels that are few among many rows: they spread over all of them, and are kept as arrays."""

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ebse.io.tables import is_number
from ebse.semi_supervised import ContrastiveFeatures, SpreadingClassifier
from ebse.semi_supervised._class_prior import prior_probabilities

Array = npt.NDArray[Any]

LEAST_ROWS = 1_000
"""Below which labels do not spread: on tables of 150 to 570 rows split at quartiles it was level at best."""
CONTRASTIVE_FROM = 10_000
"""Rows from which on a network is trained on walks; on 1,000 digits the rows themselves were better."""


def spreads(known: Array) -> bool:
    """Whether labels should spread: most rows have none, and rows are many."""
    return len(known) >= LEAST_ROWS and bool(known.mean() < 0.5)


def sizes_from(text: str) -> Any:
    """``class_prior`` for the estimator, of a setting: equal, or like a=0.2,b=0.8."""
    if text == "equal":
        return text
    sizes: dict[str, float] = {}
    parts: list[str] = []
    for part in text.split(","):
        # Names may have commas: each goes on to the next share.
        parts.append(part)
        name, _, share = ",".join(parts).rpartition("=")
        name = name.strip()
        if not name or not is_number(share):
            continue
        if name in sizes:
            raise ValueError(f"class_prior must name a class once, got {name!r} twice; leave one of them out")
        sizes[name], parts = float(share), []
    if parts:
        raise ValueError(
            f"class_prior must be equal, or like a=0.2,b=0.8, got {','.join(parts).strip()!r} in {text!r}; "
            "give a share to each class"
        )
    return sizes


def require_spreading(setting: str, known: Array) -> None:
    """Refuse a setting of labels that spread where they do not; ``known`` says which rows have a label."""
    if not spreads(known):
        raise ValueError(
            f"{setting} must be left out where labels do not spread, got it for {len(known)} rows, "
            f"{int(known.sum())} of them with a label; labels spread from {LEAST_ROWS:,} rows on where most "
            "have none"
        )


def require_sizes(text: str, y: Array) -> None:
    """Refuse sizes that cannot be used with the labels y."""
    prior_probabilities(sizes_from(text), np.unique(y))


def spread_over(
    X: Array, known: Array, y: Array, *, seed: int, sizes: str | None = None, n_rounds: int = 5
) -> SpreadingClassifier:
    """Labels y of the rows X[known], spread over all rows X (N, D)."""
    told = None if sizes is None else sizes_from(sizes)
    representation = ContrastiveFeatures(random_state=seed) if len(X) >= CONTRASTIVE_FROM else None
    classifier = SpreadingClassifier(representation, class_prior=told, n_rounds=n_rounds, random_state=seed)
    return classifier.fit(X[known], y, X_unlabeled=X[~known])


def save_spread(path: Path, spread: SpreadingClassifier) -> None:
    """Write the classifier."""
    spread.save(path)


def load_spread(path: Path, *, sizes: str | None = None, n_rounds: int = 5) -> SpreadingClassifier:
    """The classifier of a run with these settings."""
    class_prior = None if sizes is None else sizes_from(sizes)
    return SpreadingClassifier.load(path).set_params(class_prior=class_prior, n_rounds=n_rounds)  # type: ignore[no-any-return]
