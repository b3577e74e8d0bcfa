"""Labels that are few among many rows: they spread over all of them, and are kept as arrays."""

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse
from sklearn.frozen import FrozenEstimator

from ebse._atomic import in_place
from ebse.io import read_arrays
from ebse.io.tables import is_number
from ebse.semi_supervised import ContrastiveFeatures, SpreadingClassifier
from ebse.semi_supervised._encoder import Encoder
from ebse.semi_supervised._labels import shares_of
from ebse.semi_supervised._propagation import Clusterings, flow_between
from ebse.semi_supervised._standardize import View

Array = npt.NDArray[Any]

LEAST_ROWS = 1_000
"""Below which labels do not spread: on tables of 150 to 570 rows split at quartiles it was level at best."""
CONTRASTIVE_FROM = 10_000
"""Rows from which on a network is trained on walks; on 1,000 digits the rows themselves were better."""
ARRAYS = (
    *("classes", "centers", "widths", "scores", "scales", "alone", "labeled_at"),
    *("speaking_at", "speaking_shares", "center", "spread", "n_layers"),
)
NETWORK = ("weights", "biases")


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
    shares_of(sizes_from(text), np.unique(y))


def spread_over(
    X: Array, known: Array, y: Array, *, seed: int, sizes: str | None = None, n_rounds: int = 5
) -> SpreadingClassifier:
    """Labels y of the rows X[known], spread over all rows X (N, D)."""
    told = None if sizes is None else sizes_from(sizes)
    representation = ContrastiveFeatures(random_state=seed) if len(X) >= CONTRASTIVE_FROM else None
    classifier = SpreadingClassifier(representation, class_prior=told, n_rounds=n_rounds, random_state=seed)
    return classifier.fit(X[known], y, X_unlabeled=X[~known])


def save_spread(path: Path, spread: SpreadingClassifier) -> None:
    """The classifier as arrays; what flows between centers is made of them again."""
    (held,), (scores,), (representation,) = spread.clusterings_, spread.scores_, spread.representations_
    (others,), (alone,) = spread.speaking_at_, spread.alone_
    layers = [] if representation is None else list(zip(*representation.encoder_, strict=True))
    arrays: dict[str, Any] = {
        "classes": spread.classes_,
        "centers": held.centers,
        "widths": held.widths,
        "scores": scores,
        "scales": spread.scales_,
        "alone": alone,
        "labeled_at": spread.labeled_at_,
        "center": spread.views_[0].center,
        "spread": np.array(spread.views_[0].spread),
        "n_layers": np.array(len(layers)),
        # Every row is at the same number of centers.
        "speaking_at": others.indices.reshape(others.shape[0], -1),
        "speaking_shares": others.data.reshape(others.shape[0], -1),
    }
    if representation is not None:
        arrays |= {"input_center": representation.view_.center}
        arrays |= {"input_spread": np.array(representation.view_.spread)}
    for i, (W, b) in enumerate(layers):
        arrays |= {f"weights_{i}": W, f"biases_{i}": b}
    with in_place(path) as temporary, temporary.open("wb") as file:
        np.savez_compressed(file, **arrays)


def load_spread(path: Path, *, sizes: str | None = None, n_rounds: int = 5) -> SpreadingClassifier:
    """The classifier of a run with these settings."""
    held = read_arrays(path, *ARRAYS)
    layers = range(int(held["n_layers"]))
    representation, n_features = None, len(held["center"])
    if layers:
        names = [f"{name}_{i}" for name in NETWORK for i in layers]
        network = read_arrays(path, *names, "input_center", "input_spread")
        n_features = len(network["input_center"])
        representation = ContrastiveFeatures()
        representation.view_ = View(None, network["input_center"], float(network["input_spread"]))
        representation.encoder_ = Encoder(
            *(tuple(network[f"{name}_{i}"] for i in layers) for name in NETWORK)
        )
        representation.losses_, representation.n_features_in_ = np.array([]), n_features
    spread = SpreadingClassifier(
        None if representation is None else FrozenEstimator(representation),
        class_prior=None if sizes is None else sizes_from(sizes),
        n_rounds=n_rounds,
    )
    flows = np.stack([flow_between(c) for c in held["centers"]])
    spread.clusterings_ = [Clusterings(held["centers"], held["widths"], flows)]
    spread.views_ = [View(representation, held["center"], float(held["spread"]))]
    spread.representations_, spread.n_clusters_ = [representation], held["centers"].shape[1]
    spread.scores_, spread.scales_, spread.alone_ = [held["scores"]], held["scales"], [held["alone"]]
    at, shares = held["speaking_at"], held["speaking_shares"]
    begins = np.arange(0, at.size + 1, at.shape[1])
    width = held["centers"].shape[0] * held["centers"].shape[1]
    others = sparse.csr_matrix((shares.ravel(), at.ravel(), begins), shape=(len(at), width))
    spread.labeled_at_, spread.speaking_at_ = held["labeled_at"], [others]
    spread.classes_, spread.n_features_in_ = held["classes"], n_features
    return spread
