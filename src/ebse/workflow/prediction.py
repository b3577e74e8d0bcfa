"""Use of a fitted run: predicted classes of rows, representations, and the accuracy with few labels."""

import warnings
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ebse.io import Rows
from ebse.io.cells import is_number
from ebse.workflow.columns import Columns

if TYPE_CHECKING:
    from ebse.ensemble import RBSE
    from ebse.evaluation import FewShotResult
    from ebse.semi_supervised import SpreadingClassifier

Array = npt.NDArray[Any]

PROPAGATION = "propagation"
PLAIN = "columns, logistic regression"
"""The simplest alternative: standardized columns, scikit-learn's defaults."""
MOST_QUERIES = 50
"""Test rows of each class in an episode, at most."""


class Labeled(NamedTuple):
    """Labeled rows as they were read; labels are texts."""

    X: Array
    y: Array


class Predictions(NamedTuple):
    """Predicted classes of rows."""

    classes: Array
    probabilities: Array
    source: str
    """"propagation", or of an ensemble: "draws" of representations or their "mean"."""
    n_sweeps: int

    @property
    def labels(self) -> Array:
        """The most probable class of each row."""
        found: Array = self.classes[self.probabilities.argmax(1)]
        return found

    def counts(self) -> dict[str, int]:
        """Number of rows predicted as each class."""
        return {str(name): int((self.labels == name).sum()) for name in self.classes}


class Checked(NamedTuple):
    """Accuracy of predictions on rows that have labels; rows that were labeled in the fit do not count."""

    n_labeled: int
    n_learned: int
    accuracy: float | None


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
    # Many different numbers with a fraction are measurements; many words may be letters, one label each.
    quantities = any(not str(w).lstrip("+-").isdigit() and is_number(str(w)) for w in words)
    if len(words) > 20 and (quantities or len(words) == len(rows.labels)):
        raise ValueError(
            f"{rows.path} must have labels that rows share, got {len(words)} different ones in "
            f"{counts.sum()} rows; name the column of classes with --label"
        )


def is_propagation(model: Any) -> bool:
    """Whether a model is label propagation; without importing what it is not."""
    return type(model).__name__ == "SpreadingClassifier"


def predicted(model: Any, columns: Columns, X: Array) -> Predictions:
    """Predictions of a fitted classifier for rows X as they were read."""
    if is_propagation(model):
        return Predictions(model.classes_, model.predict_proba(columns.scaled(X)), PROPAGATION, 0)
    p = model.predict_proba(prepared(model.representation_, columns, X))
    source = "mean" if model.source_ == "mean" else "draws"
    return Predictions(model.classes_, p, source, model.n_sweeps_)


def checked(found: Predictions, rows: Rows, labeled: Labeled) -> Checked:
    """Accuracy on those rows that have labels and were not labeled rows of the fit."""
    assert rows.labels is not None
    learned = {(row.tobytes(), label) for row, label in zip(*labeled, strict=True)}
    X = rows.X.astype(labeled.X.dtype, copy=False)
    right, n_learned = [], 0
    for row, label, prediction in zip(X, rows.labels, found.labels, strict=True):
        if label is None:
            continue
        if (row.tobytes(), label) in learned:
            n_learned += 1
        else:
            right.append(label == prediction)
    return Checked(len(right), n_learned, float(np.mean(right)) if right else None)


def prepared(rbse: "RBSE", columns: Columns, X: Array) -> Array:
    """Features of rows X for the ensemble, which imputes missing entries from the rest of their rows."""
    X = columns.apply(X)
    if X.dtype.kind != "f" or not np.isnan(X).any():
        return X
    incomplete = np.isnan(X).any(1)
    X = np.array(X)
    X[incomplete] = rbse.impute(X[incomplete], random_state=0)
    return X


def prior_for(model: "SpreadingClassifier", y: Array) -> Any:
    """The class prior of the classifier; None, with a warning, if y has other classes."""
    prior = model.class_prior
    if isinstance(prior, dict) and set(prior) != set(y.tolist()):
        warnings.warn(
            f"the class prior of the run is for {', '.join(prior)}, and the rows have other labels: "
            "it is not used",
            stacklevel=2,
        )
        return None
    return prior


def evaluated(
    model: Any,
    columns: Columns,
    labeled: Labeled,
    *,
    shots: tuple[int, ...],
    n_episodes: int,
    random_state: int,
) -> "FewShotResult":
    """Few-shot accuracy of the run's model, of label propagation, and of logistic regression on the columns.

    Labels are propagated over the rows of the run where it is a run of label propagation, otherwise over the
    labeled rows alone.
    """
    import pandas as pd
    from sklearn.frozen import FrozenEstimator
    from sklearn.impute import SimpleImputer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    from ebse.evaluation import FewShotResult, few_shot
    from ebse.semi_supervised import SpreadingClassifier
    from ebse.semi_supervised._relabel import Relabeled

    y = labeled.y
    _, counts = np.unique(y, return_counts=True)
    n_queries = min(int(counts.min()) - max(shots), MOST_QUERIES)
    methods: list[tuple[dict[str, Any], Array]] = []
    if is_propagation(model):
        unit, spreading = columns.scaled(labeled.X), model
    else:
        from ebse.ensemble import RBSEClassifier

        rbse = getattr(model, "representation_", model)
        X = prepared(rbse, columns, labeled.X)
        few = RBSEClassifier(FrozenEstimator(rbse), random_state=random_state)
        methods.append(({"RBM mean": rbse, "RBSEClassifier": few}, X))
        unit = columns.scaling.apply(X)
        spreading = SpreadingClassifier(random_state=random_state).fit(unit)
    relabeled = Relabeled(FrozenEstimator(spreading), class_prior=prior_for(spreading, y))
    # Standardized by all labeled rows: the few of an episode do not determine a scale.
    plain = make_pipeline(SimpleImputer(), StandardScaler()).fit_transform(labeled.X)
    methods += [
        ({"SpreadingClassifier": relabeled}, unit),
        ({PLAIN: LogisticRegression(max_iter=1000)}, plain),
    ]
    with warnings.catch_warnings():
        # In tables of few values equal rows with different labels are common, in every episode.
        warnings.filterwarnings("ignore", message=r"\d+ distinct rows have several labels")
        # Episodes depend on the labels and the seed alone: all calls have the same ones.
        found = [
            few_shot(
                named,
                X,
                y,
                n_shots=shots,
                n_queries=n_queries,
                n_episodes=n_episodes,
                random_state=random_state,
            )
            for named, X in methods
        ]
    baseline = PLAIN if is_propagation(model) else found[0].baseline
    return FewShotResult(pd.concat([part.rows for part in found]), baseline)
