"""Few labels on a user's own table: the fit, an estimate of the accuracy, and what the answer depends on."""

import warnings
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from ebse._labels import Labels
from ebse._stages import stage
from ebse.semi_supervised._members import TREES
from ebse.semi_supervised._relabel import OF_LABELS
from ebse.workflow.accuracy import Accuracy

if TYPE_CHECKING:
    from ebse.semi_supervised import FewLabelClassifier

Array = npt.NDArray[Any]

N_FOLDS = 5
"""Folds of cross-validation, and labels that every class must have for it."""
LEAST_HELD_BACK = 10
"""Labels held back, at least: fewer say nothing about the accuracy."""
N_FAR, FAR = 10, 2.0
"""Rows that are shown as far from every label, at most, and how far they are, in medians."""
SAME = 1e-3
"""Distance in standardized columns below which rows are the same."""
MOST_COLUMNS, N_PERMUTED, AT_ONCE = 60, 300, 10
"""Columns and rows by which it is measured which columns matter, at most, and columns in one call."""


def fit_few_label(
    model: "FewLabelClassifier", X: Any, labels: Array, *, hold_back: float, seed: int
) -> Accuracy | None:
    """Fit a classifier to rows X (N, D) with labels (None: no label), and estimate its accuracy.

    Accuracy is measured on a part of the labels that is held back at random, if that is asked for; otherwise
    by cross-validation, if every class has enough labels. The model learns from all labels in the end.
    """
    known = np.flatnonzero([label is not None for label in labels])
    y = np.array([str(labels[i]) for i in known])
    held = held_back(y, hold_back, seed)
    taken = np.setdiff1d(np.arange(len(known)), held)
    first = np.full(len(labels), None, dtype=object)
    first[known[taken]] = y[taken]
    with warnings.catch_warnings():
        if len(held):
            for text in OF_LABELS:
                warnings.filterwarnings("ignore", text, UserWarning)
        model.fit(X, first)
    if len(held):
        found = model.classes_[_predicted(model, known[held])]
        model.relabel(None, labels)
        return Accuracy.counted("held back", y[held], found)
    return _cross_validated(model, known, y, seed)


def _predicted(model: "FewLabelClassifier", rows: Array) -> Array:
    """The classes that a model predicts for rows of ``fit``, given by their indices."""
    some = model._kept_rows("an estimate of the accuracy").take(rows)
    found: Array = model._combined(model._member_answers(some), *model._find_labels_of(some)).argmax(1)
    return found


def held_back(y: Array, part: float, seed: int) -> Array:
    """Positions of labels that are held back; the others must have every class."""
    if not part:
        return np.empty(0, dtype=np.intp)
    n = round(part * len(y))
    held = np.random.default_rng(seed).permutation(len(y))[:n]
    left = set(np.delete(y, held).tolist())
    lost = sorted(set(y.tolist()) - left)
    if n < LEAST_HELD_BACK or lost:
        got = f"{n} labels" if n < LEAST_HELD_BACK else f"all labels of {lost[0]!r} among the {n} held back"
        raise ValueError(
            f"hold_back must leave labels of every class and hold back at least {LEAST_HELD_BACK}, got "
            f"{part:g}, which is {got}; label more rows, or leave it out"
        )
    return np.sort(held)


def _cross_validated(model: "FewLabelClassifier", known: Array, y: Array, seed: int) -> Accuracy | None:
    """Accuracy by cross-validation over the labels of the ``known`` rows; None where a class has too few.

    Columns, clusters and features stay as they are: they are learned without labels.
    """
    from sklearn.model_selection import StratifiedKFold

    if np.unique(y, return_counts=True)[1].min() < N_FOLDS:
        return None
    folds = StratifiedKFold(N_FOLDS, shuffle=True, random_state=seed)
    rows = model._kept_rows("cross-validation").take(known)
    target = np.searchsorted(model.classes_, y)
    found = np.zeros_like(target)
    with stage("cross-validation", total=N_FOLDS, unit="folds") as done, warnings.catch_warnings():
        for text in OF_LABELS:
            warnings.filterwarnings("ignore", text, UserWarning)
        for train, test in folds.split(target, target):
            labels = Labels(train, model.classes_, target[train])
            other = model._with_labels(rows.take(train), labels)
            found[test] = _predicted(other, known[test])
            done(1)
    return Accuracy.counted("cross-validation", y, model.classes_[found])


def column_changes(model: "FewLabelClassifier", *, seed: int) -> dict[Any, float]:
    """Which columns matter: for each, the part of rows whose predicted class changes if it is shuffled.

    Of many columns only those are tried that split the trees most.
    """
    rng = np.random.default_rng(seed)
    kept = model._kept_rows("which columns matter")
    rows = kept.take(rng.permutation(len(kept.views.standard))[:N_PERMUTED])
    places = model._table.places()
    if len(places) > MOST_COLUMNS:
        splits = model._supervised[TREES].importances
        places = dict(sorted(places.items(), key=lambda item: -splits[item[1]].sum())[:MOST_COLUMNS])
    nothing: Any = [], []
    before = model._combined(model._member_answers(rows), *nothing).argmax(1)
    found: dict[Any, float] = {}
    names = list(places)
    with stage("columns that matter", total=len(names), unit="columns") as done:
        # Several columns at once: a call for few rows takes as long as one for many.
        for start in range(0, len(names), AT_ONCE):
            part = names[start : start + AT_ONCE]
            orders = [rng.permutation(len(before)) for _ in part]
            views = [
                np.concatenate(
                    [_shuffled(view, places[name], o) for name, o in zip(part, orders, strict=True)]
                )
                for view in rows.views
            ]
            shuffled = model._rows_of(type(rows.views)(*views))
            after = model._combined(model._member_answers(shuffled), *nothing).argmax(1)
            changed = after.reshape(len(part), -1) != before
            found |= dict(zip(part, changed.mean(1).tolist(), strict=True))
            done(len(part))
    return dict(sorted(found.items(), key=lambda item: -item[1]))


def far_rows(model: "FewLabelClassifier", labels: Array) -> list[tuple[int, float]]:
    """Rows that are unlike every labeled row: their number (from 0) and how far the nearest label is.

    Distances are in standardized columns, relative to the median over all rows without a label.
    """
    from sklearn.metrics import pairwise_distances_argmin_min

    known = np.array([label is not None for label in labels])
    rows = model._kept_rows("far_rows").views.standard
    free = np.flatnonzero(~known)
    if not len(free):
        return []
    _, distance = pairwise_distances_argmin_min(rows[free], rows[known])
    median = float(np.median(distance))
    if median < SAME:
        # Most rows equal a labeled one: how many times farther others are says nothing.
        return []
    relative = distance / median
    farthest = np.argsort(-relative, kind="stable")[:N_FAR]
    return [(int(free[i]), float(relative[i])) for i in farthest if relative[i] >= FAR]


def member_votes(model: "FewLabelClassifier", rows_of_fit: Array) -> dict[str, Array]:
    """The class of rows of ``fit`` by each member alone and the class prior, as an index into the classes."""
    rows = model._kept_rows("votes").take(rows_of_fit)
    nothing: Any = [], []
    return {
        name: model._combined({name: p}, *nothing).argmax(1)
        for name, p in model._member_answers(rows).items()
    }


def _shuffled(view: Array, at: list[int], order: Array) -> Array:
    changed = view.copy()
    changed[:, at] = view[order][:, at]
    return changed
