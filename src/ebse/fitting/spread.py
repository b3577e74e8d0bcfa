"""Labels that are few among many rows: they spread over all of them, and are kept as arrays."""

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse
from sklearn.frozen import FrozenEstimator

from ebse.estimators import ContrastiveFeatures, SpreadingClassifier
from ebse.estimators.encoder import Encoder
from ebse.estimators.few_known import shares_of
from ebse.estimators.spreading import Clusterings, flow_between
from ebse.estimators.views import View
from ebse.files import in_place
from ebse.reading import read_arrays

Array = npt.NDArray[Any]

LEAST_ROWS = 1_000
"""Below which labels do not spread: on tables of 150 to 570 rows it gained nothing, or lost."""
CONTRASTIVE_FROM = 10_000
"""Rows from which on a network is trained on walks; on 1,000 digits the rows themselves were better."""
ARRAYS = (
    *("classes", "centres", "widths", "scores", "scales", "alone", "labelled_at"),
    *("unlabelled_at", "unlabelled_shares", "centre", "spread", "n_layers"),
)
NETWORK = ("weights", "biases")


def spreads(known: Array) -> bool:
    """Whether labels should spread: most rows have none, and rows are many."""
    return len(known) >= LEAST_ROWS and bool(known.mean() < 0.5)


def sizes_from(text: str, known: Array, y: Array) -> Any:
    """``class_sizes`` as a setting has it, for the estimator; y are the labels of the rows that have one."""
    if not spreads(known):
        raise ValueError(
            "class_sizes must be left out where labels do not spread, got them for "
            f"{len(known)} rows of which {int(known.sum())} have a label; labels spread from {LEAST_ROWS:,} "
            "rows on where most have none"
        )
    sizes: Any = text
    if text != "equal":
        parts = [part.rpartition("=") for part in text.split(",")]
        if not all(sign for _, sign, _ in parts):
            raise ValueError(
                f"class_sizes must be equal, or like a=0.2,b=0.8, got {text!r}; pass one of these"
            )
        sizes = {name.strip(): share for name, _, share in parts}
    shares_of(sizes, np.unique(y))
    return sizes


def spread_over(X: Array, known: Array, y: Array, *, sizes: Any = None, seed: int) -> SpreadingClassifier:
    """Labels y of the rows X[known], spread over all rows X (N, D)."""
    representation = ContrastiveFeatures(random_state=seed) if len(X) >= CONTRASTIVE_FROM else None
    classifier = SpreadingClassifier(representation, class_sizes=sizes, random_state=seed)
    return classifier.fit(X[known], y, X_unlabeled=X[~known])


def save_spread(path: Path, spread: SpreadingClassifier) -> None:
    """The classifier as arrays; what flows between centres is made of them again."""
    (held,), (scores,), (representation,) = spread.clusterings_, spread.scores_, spread.representations_
    (others,), (alone,) = spread.unlabelled_at_, spread.alone_
    layers = [] if representation is None else list(zip(*representation.encoder_, strict=True))
    arrays: dict[str, Any] = {
        "classes": spread.classes_,
        "centres": held.centres,
        "widths": held.widths,
        "scores": scores,
        "scales": spread.scales_,
        "alone": alone,
        "labelled_at": spread.labelled_at_,
        "centre": spread.views_[0].centre,
        "spread": np.array(spread.views_[0].spread),
        "n_layers": np.array(len(layers)),
        # Every row is at the same number of centres.
        "unlabelled_at": others.indices.reshape(others.shape[0], -1),
        "unlabelled_shares": others.data.reshape(others.shape[0], -1),
    }
    if representation is not None:
        arrays |= {"input_centre": representation.view_.centre}
        arrays |= {"input_spread": np.array(representation.view_.spread)}
    for i, (W, b) in enumerate(layers):
        arrays |= {f"weights_{i}": W, f"biases_{i}": b}
    with in_place(path) as temporary, temporary.open("wb") as file:
        np.savez_compressed(file, **arrays)


def load_spread(path: Path) -> SpreadingClassifier:
    """The classifier of a run."""
    held = read_arrays(path, *ARRAYS)
    layers = range(int(held["n_layers"]))
    representation, n_features = None, len(held["centre"])
    if layers:
        names = [f"{name}_{i}" for name in NETWORK for i in layers]
        network = read_arrays(path, *names, "input_centre", "input_spread")
        n_features = len(network["input_centre"])
        representation = ContrastiveFeatures()
        representation.view_ = View(None, network["input_centre"], float(network["input_spread"]))
        representation.encoder_ = Encoder(
            *(tuple(network[f"{name}_{i}"] for i in layers) for name in NETWORK)
        )
        representation.losses_, representation.n_features_in_ = np.array([]), n_features
    spread = SpreadingClassifier(None if representation is None else FrozenEstimator(representation))
    flows = np.stack([flow_between(c) for c in held["centres"]])
    spread.clusterings_ = [Clusterings(held["centres"], held["widths"], flows)]
    spread.views_ = [View(representation, held["centre"], float(held["spread"]))]
    spread.representations_, spread.n_clusters_ = [representation], held["centres"].shape[1]
    spread.scores_, spread.scales_, spread.alone_ = [held["scores"]], held["scales"], [held["alone"]]
    at, shares = held["unlabelled_at"], held["unlabelled_shares"]
    begins = np.arange(0, at.size + 1, at.shape[1])
    width = held["centres"].shape[0] * held["centres"].shape[1]
    others = sparse.csr_matrix((shares.ravel(), at.ravel(), begins), shape=(len(at), width))
    spread.labelled_at_, spread.unlabelled_at_ = held["labelled_at"], [others]
    spread.classes_, spread.n_features_in_ = held["classes"], n_features
    return spread
