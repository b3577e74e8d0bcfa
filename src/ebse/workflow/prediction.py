"""Use of a fitted run: predicted classes of rows, and the accuracy with few labels."""

import warnings
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ebse.io import Rows
from ebse.io.cells import is_number
from ebse.workflow.columns import Columns
from ebse.workflow.ensemble import prepared

if TYPE_CHECKING:
    from ebse.evaluation import FewShotResult

Array = npt.NDArray[Any]

MEMBERS = "members"
PLAIN = "columns, logistic regression"
"""The simplest alternative: standardized columns, scikit-learn's defaults."""
MOST_QUERIES = 50
"""Test rows of each class in an episode, at most."""


class Labeled(NamedTuple):
    """Labeled rows as they were read, a frame or an array; labels are texts."""

    X: Any
    y: Array


class Predictions(NamedTuple):
    """Predicted classes of rows."""

    classes: Array
    probabilities: Array
    source: str
    """"members" of the classifier for few labels, or of an ensemble: "draws" of representations or their
    "mean"."""
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


def labeled_rows(labels: Array) -> npt.NDArray[np.bool_]:
    """Which rows have a label."""
    return np.array([label is not None for label in labels], dtype=bool)


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


def is_few_label(model: Any) -> bool:
    """Whether a model is the classifier for few labels; without importing what it is not."""
    return type(model).__name__ == "FewLabelClassifier"


def predicted(model: Any, columns: Columns | None, X: Any) -> Predictions:
    """Predictions of a fitted classifier for rows X as they were read."""
    if columns is None:
        return Predictions(model.classes_, model.predict_proba(X), MEMBERS, 0)
    p = model.predict_proba(prepared(model.representation_, columns, X))
    source = "mean" if model.source_ == "mean" else "draws"
    return Predictions(model.classes_, p, source, model.n_sweeps_)


def checked(found: Predictions, rows: Rows, learned: npt.NDArray[np.bool_]) -> Checked:
    """Accuracy on those rows that have labels and were not ``learned``, labeled rows of the fit."""
    assert rows.labels is not None
    known = labeled_rows(rows.labels)
    tested = known & ~learned
    right = (found.labels == rows.labels)[tested]
    return Checked(len(right), int((known & learned).sum()), float(right.mean()) if len(right) else None)


def learned_rows(fitted: Any, rows: Rows) -> npt.NDArray[np.bool_]:
    """Which rows equal a labeled row of a fitted run, of the same label if its model is an ensemble's."""
    model = fitted.model
    if is_few_label(model):
        found: npt.NDArray[np.bool_] = model._find_labels_of(model._rows_in(rows.X, new=False))[0]
        return found
    labeled: Labeled = fitted.labeled()
    learned = {(row.tobytes(), label) for row, label in zip(*labeled, strict=True)}
    X = rows.X.astype(labeled.X.dtype, copy=False)
    assert rows.labels is not None
    return np.array(
        [(row.tobytes(), label) in learned for row, label in zip(X, rows.labels, strict=True)], dtype=bool
    )


def evaluated(
    model: Any,
    columns: Columns | None,
    labeled: Labeled,
    *,
    shots: tuple[int, ...],
    n_episodes: int,
    random_state: int,
    progress: bool,
) -> "FewShotResult":
    """Few-shot accuracy of the run's model, and of logistic regression on the same columns.

    The classifier for few labels uses the rows of the run without their labels, as in the fit.
    """
    import pandas as pd

    from ebse.evaluation import FewShotResult, few_shot

    y = labeled.y
    _, counts = np.unique(y, return_counts=True)
    n_queries = min(int(counts.min()) - max(shots), MOST_QUERIES)
    if columns is None:
        methods = _few_label_methods(model, labeled)
    else:
        methods = _ensemble_methods(model, columns, labeled, random_state)
    with warnings.catch_warnings():
        # In tables of few values equal rows with different labels are common, in every episode.
        warnings.filterwarnings("ignore", message=r"distinct rows with several labels")
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
                progress=progress,
            )
            for named, X in methods
        ]
    baseline = PLAIN if columns is None else found[0].baseline
    return FewShotResult(pd.concat([part.rows for part in found]), baseline)


def _few_label_methods(model: Any, labeled: Labeled) -> list[tuple[dict[str, Any], Array]]:
    from sklearn.frozen import FrozenEstimator
    from sklearn.linear_model import LogisticRegression

    from ebse.semi_supervised._relabel import Relabeled

    prior = model.class_prior
    if isinstance(prior, dict) and set(prior) != set(labeled.y.tolist()):
        warnings.warn(
            f"the class prior of the run is for {', '.join(prior)}, and the rows have other labels: "
            "class frequencies are estimated",
            stacklevel=2,
        )
        prior = "estimate"
    relabeled = Relabeled(FrozenEstimator(model), class_prior=prior)
    X = labeled.X.to_numpy(dtype=object) if hasattr(labeled.X, "columns") else labeled.X
    plain = {PLAIN: LogisticRegression(max_iter=1000)}
    return [
        ({"FewLabelClassifier": relabeled}, X),
        (plain, model._rows_in(labeled.X, new=False).views.standard),
    ]


def _ensemble_methods(
    model: Any, columns: Columns, labeled: Labeled, seed: int
) -> list[tuple[dict[str, Any], Array]]:
    from sklearn.frozen import FrozenEstimator
    from sklearn.impute import SimpleImputer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    from ebse.ensemble import RBSEClassifier

    rbse = getattr(model, "representation_", model)
    few = RBSEClassifier(FrozenEstimator(rbse), random_state=seed)
    # Standardized by all labeled rows: the few of an episode do not determine a scale.
    plain = make_pipeline(SimpleImputer(), StandardScaler()).fit_transform(labeled.X)
    return [
        ({"RBM mean": rbse, "RBSEClassifier": few}, prepared(rbse, columns, labeled.X)),
        ({PLAIN: LogisticRegression(max_iter=1000)}, plain),
    ]
