"""Few labels of a user's own: what other rows are taken for, and how far that can be trusted."""

import warnings
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd
from sklearn.frozen import FrozenEstimator
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from ebse.ensemble import RBSE, RBSEClassifier
from ebse.evaluation import FewShotResult, few_shot
from ebse.io import Rows
from ebse.io.tables import is_number
from ebse.semi_supervised import SpreadingClassifier
from ebse.semi_supervised._relabel import Relabeled
from ebse.workflow.columns import Columns

Array = npt.NDArray[Any]

PLAIN = "columns, logistic regression"
"""What a user would try first: standardized columns, scikit-learn's defaults."""
MOST_QUERIES = 50
"""Examples of each class that are asked in an episode, where there are so many."""


class Labeled(NamedTuple):
    """Rows with labels, words; as they were read."""

    X: Array
    y: Array


class Classified(NamedTuple):
    """What rows are taken for."""

    classes: Array
    probabilities: Array
    n_sweeps: int
    source: str
    """Which representations: "draws" or "mean" of the ensemble; "spreading": labels spread over all rows."""

    @property
    def labels(self) -> Array:
        """The most probable class of each row."""
        found: Array = self.classes[self.probabilities.argmax(1)]
        return found

    def counts(self) -> dict[str, int]:
        """Rows that are taken for each class."""
        return {str(name): int((self.labels == name).sum()) for name in self.classes}


def require_classes(rows: Rows, *, least: int = 1) -> None:
    """Refuse labels that nothing can be learned from."""
    assert rows.labels is not None
    words, counts = np.unique([str(x) for x in rows.labels if x is not None], return_counts=True)
    if len(words) < 2:
        got = "no label at all" if not len(words) else f"one class, {str(words[0])!r}"
        raise ValueError(f"{rows.path} must have labels of at least two classes, got {got}; label more rows")
    if counts.min() < least:
        few = words[counts.argmin()]
        raise ValueError(
            f"{rows.path} must have at least {least} labeled rows of every class, got {counts.min()} of "
            f"{str(few)!r}; label more rows, or lower --shots"
        )
    # Many numbers with a fraction are quantities; many words may be letters of an alphabet, one label each.
    quantities = any(not str(w).lstrip("+-").isdigit() and is_number(str(w)) for w in words)
    if len(words) > 20 and (quantities or len(words) == len(rows.labels)):
        raise ValueError(
            f"{rows.path} must have labels that rows share, got {len(words)} different ones in "
            f"{counts.sum()} rows; name the column of classes with --label"
        )


def classifier(rbse: RBSE, seed: int) -> RBSEClassifier:
    """The classifier of few labels, on the ensemble as it is."""
    return RBSEClassifier(FrozenEstimator(rbse), random_state=seed)


def classified(
    rbse: RBSE,
    columns: Columns,
    labeled: Labeled,
    X: Array,
    *,
    spread: SpreadingClassifier | None,
    seed: int,
) -> Classified:
    """What rows X are taken for, by labels that have spread, or else by a classifier of the labeled rows."""
    if spread is not None:
        p = spread.predict_proba(on_unit_scale(rbse, prepared(rbse, columns, X)))
        return Classified(spread.classes_, p, 0, "spreading")
    few = classifier(rbse, seed).fit(prepared(rbse, columns, labeled.X), labeled.y)
    p = few.predict_proba(prepared(rbse, columns, X))
    return Classified(few.classes_, p, few.n_sweeps_, few.source_)


def on_unit_scale(rbse: RBSE, X: Array) -> npt.NDArray[np.float32]:
    """Rows as the ensemble sees them, every feature between 0 and 1."""
    found: npt.NDArray[np.float32] = ((X - rbse.feature_low_) / rbse.feature_width_).astype(np.float32)
    return found.clip(0, 1)


def prepared(rbse: RBSE, columns: Columns, X: Array) -> Array:
    """Rows as the ensemble takes them: quantities split, missing entries filled by the ensemble itself."""
    X = columns.apply(X)
    if X.dtype.kind != "f" or not np.isnan(X).any():
        return X
    gone = np.isnan(X).any(1)
    X = np.array(X)
    X[gone] = rbse.impute(X[gone], random_state=0)
    return X


def sizes_for(spread: SpreadingClassifier, y: Array) -> Any:
    """Class sizes that the classifier was told; None, which is said, where y has other classes."""
    told = spread.class_prior
    if isinstance(told, dict) and set(told) != set(y.tolist()):
        warnings.warn(
            f"the run's class sizes are of {', '.join(told)}, and the rows have other labels: sizes are left "
            "out",
            stacklevel=2,
        )
        return None
    return told


def evaluated(
    rbse: RBSE,
    columns: Columns,
    labeled: Labeled,
    *,
    spread: SpreadingClassifier | None,
    shots: tuple[int, ...],
    n_episodes: int,
    random_state: int,
) -> FewShotResult:
    """Accuracies of the ensemble's classifier, of labels that spread, and of a plain one on the columns.

    Labels spread over the rows that the run learned from; where it let none spread, over the labeled ones.
    """
    y = labeled.y
    _, counts = np.unique(y, return_counts=True)
    n_queries = min(int(counts.min()) - max(shots), MOST_QUERIES)
    # Standardized by all rows, as the ensemble learned from all: two labeled ones have no scale.
    plain = make_pipeline(SimpleImputer(), StandardScaler()).fit_transform(labeled.X)
    X = prepared(rbse, columns, labeled.X)
    ensemble = {"RBM mean": rbse, "RBSEClassifier": classifier(rbse, random_state)}
    unit = on_unit_scale(rbse, X)
    if spread is None:
        spread = SpreadingClassifier(random_state=random_state).fit(unit, y)
    told = sizes_for(spread, y)
    # Episodes depend on the labels and the seed alone: all calls have the same ones.
    found = [
        few_shot(
            methods,
            X,
            y,
            n_shots=shots,
            n_queries=n_queries,
            n_episodes=n_episodes,
            random_state=random_state,
        )
        for methods, X in (
            (ensemble, X),
            ({"SpreadingClassifier": Relabeled(FrozenEstimator(spread), class_prior=told)}, unit),
            ({PLAIN: LogisticRegression(max_iter=1000)}, plain),
        )
    ]
    return FewShotResult(pd.concat([part.rows for part in found]), found[0].baseline)
