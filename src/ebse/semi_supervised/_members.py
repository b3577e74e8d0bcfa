"""Members of :class:`ebse.FewLabelClassifier`: logistic regression, trees, and how answers are combined."""

import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.special import softmax

from ebse import _archive
from ebse.semi_supervised._class_prior import class_sums
from ebse.semi_supervised._columns import Views
from ebse.semi_supervised._draws import OnDraws, Sampler
from ebse.semi_supervised._trees import Trees

Array = npt.NDArray[Any]
Index = npt.NDArray[np.intp]

COLUMNS, COMPONENTS = "propagation on columns", "propagation on components of ranks"
FEATURES = "propagation on learned features"
LINEAR, LINEAR_RANKS, TREES = "logistic regression", "logistic regression on ranks", "trees"
DRAWS = "logistic regression on draws"
N_TREES = 100
PART, AGREED, ENOUGH = 0.15, 0.3, 0.7
"""Weight of propagation with few labels, what is added where its views agree, and the kappa from which on."""
MANY_CLUSTERS = 20
"""Clusters from which on propagation has its full weight."""
CLEAR, CLEAR_KAPPA, CLEAR_CLUSTERS = 0.5, (0.8, 0.9), (100, 250)
"""What is added to the weight of propagation on columns where classes are clear clusters: the views agree
with a kappa of at least the second number, over at least the last number of clusters; less between the two
numbers of a pair."""
LEARNED, OTHER_VIEWS = 0.9, 0.1
"""Weight of propagation with few labels where features were learned, as there are many rows and columns; and
the parts of columns and of components in it."""
FADE = 10.0
"""Labels per class at which the weight of propagation is half of that."""
EXPECTED, WORTH = (-0.369, 0.243, -0.151, 0.023, 1.202), 20.0
"""Accuracy by agreement of the members, 1 / number of classes, logarithm of labels per class and mean
confidence; and how many cross-validated labels this is worth."""
SLOPE, SHRINK = 10.0, 50.0
"""A member that is one point less accurate in cross-validation has a tenth less weight; labels at which it is
half of that."""
LEAST_FOLDS, MOST_FOLDS, MOST_LEFT_OUT = 3, 5, 2_000
"""Folds of cross-validation, no more than a class has labels, and labeled rows in it at most."""
LEAST_SHARP, MOST_SHARP = 0.2, 20.0
"""Powers of the probabilities, by which their mean becomes the accuracy that is expected."""
LINEAR_PARTS, AT_LABELS = (0.8, 0.4), (1, 3)
"""Part of the linear models in the rest, at so many labels per class; trees have the other part. With one
label per class a tree is little more than a split at random."""
DRAWS_PART = 0.1
"""Weight of the member on draws of an ensemble: on 16 tables it was level with none, and more lost."""
LEAST = 1e-3
"""Smallest class probability of a member: none can exclude a class alone."""


class Linear(NamedTuple):
    """Logistic regression, p ∝ exp(coef · x + intercept), on standardized columns or on ranks."""

    view: str
    coef: Array
    """(C, P)"""
    intercept: Array
    """(C,)"""

    def __call__(self, views: Views) -> Array:
        """Class probabilities of rows (N, C)."""
        X: Array = getattr(views, self.view)
        found: Array = softmax(X @ self.coef.T + self.intercept, axis=1)
        return found

    def arrays(self) -> dict[str, Array]:
        """What a file holds."""
        return {"coef": self.coef, "intercept": self.intercept}


def fitted_linear(views: Views, view: str, target: Index, n_classes: int) -> Linear:
    """Logistic regression on one of the views."""
    return Linear(view, *_regression(getattr(views, view), target, n_classes))


def fitted_on_draws(sampler: Sampler, views: Views, target: Index, n_classes: int) -> OnDraws:
    """Logistic regression on all sampled representations of each row, which share its weight."""
    drawn = sampler(views.standard)
    n, n_draws, K = drawn.shape
    coef, intercept = _regression(
        drawn.reshape(n * n_draws, K), np.repeat(target, n_draws), n_classes, weight=1 / n_draws
    )
    return OnDraws(sampler, coef, intercept)


def _regression(X: Array, target: Index, n_classes: int, weight: float = 1.0) -> tuple[Array, Array]:
    """Coefficients (C, P) and intercepts (C,) of logistic regression with the same weight for every class."""
    from sklearn.linear_model import LogisticRegression

    # The penalty has weight 1 / C: rows of a smaller weight count less against it.
    model = LogisticRegression(C=weight, max_iter=300, class_weight="balanced")
    with _many_classes():
        model.fit(X, target)
    coef, intercept = model.coef_, model.intercept_
    if n_classes == 2:
        # scikit-learn has the log-odds of the second class alone.
        coef, intercept = np.concatenate([0 * coef, coef]), np.concatenate([0 * intercept, intercept])
    return coef.astype(np.float32), intercept.astype(np.float32)


@contextmanager
def _many_classes() -> Iterator[None]:
    """Without scikit-learn's warning of many classes for few rows, which is what few labels are like."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "The number of unique classes is greater")
        yield


class Forest:
    """Extremely randomized trees on standardized columns; as arrays, and while it lasts as scikit-learn's.

    References
    ----------
    P. Geurts, D. Ernst and L. Wehenkel, "Extremely randomized trees", 2006.
    """

    def __init__(self, trees: Trees, fitted: Any = None) -> None:
        self.trees, self._fitted = trees, fitted

    @classmethod
    def fitted(cls, X: Array, target: Index, *, seed: int, n_trees: int) -> "Forest":
        """Of labeled rows X (L, P), in which every class has the same weight."""
        from sklearn.ensemble import ExtraTreesClassifier

        made = ExtraTreesClassifier(n_trees, class_weight="balanced", random_state=seed)
        with _many_classes():
            made.fit(X, target)
        return cls(Trees.of(made), made)

    def __call__(self, views: Views) -> Array:
        """Class probabilities of rows (N, C)."""
        # scikit-learn is eight times as fast; both give the same.
        model = self.trees if self._fitted is None else self._fitted
        found: Array = model.predict_proba(views.standard)
        return found

    @property
    def importances(self) -> Array:
        """Decrease of impurity by each feature (P,); not after ``load``."""
        found: Array = self._fitted.feature_importances_
        return found

    def arrays(self) -> dict[str, Array]:
        """What a file holds."""
        return self.trees._asdict()


def fitted_members(
    views: Views,
    target: Index,
    n_classes: int,
    *,
    seed: int,
    on_ranks: bool,
    sampler: Sampler | None = None,
) -> dict[str, Any]:
    """Members that learn from the labeled rows alone, by name.

    One on ranks if ``on_ranks``, and one on representations of the ``sampler``, if there is one.
    """
    made: dict[str, Any] = {LINEAR: fitted_linear(views, "standard", target, n_classes)}
    if on_ranks:
        made[LINEAR_RANKS] = fitted_linear(views, "ranks", target, n_classes)
    made[TREES] = Forest.fitted(views.standard, target, n_trees=N_TREES, seed=seed)
    if sampler is not None:
        made[DRAWS] = fitted_on_draws(sampler, views, target, n_classes)
    return made


def restored_members(state: _archive.State, sampler: Sampler | None) -> dict[str, Any]:
    """The members of a file; with that on draws of the ``sampler``, if there is one."""
    made: dict[str, Any] = {}
    n_classes = len(state.facts["classes"]["values"])
    for name, view in state.facts["linear"]:
        if view not in Views._fields:
            raise ValueError(f"no view {view!r}")
        made[name] = Linear(view, *_coefficients(state, name, n_classes))
    arrays = {name: state.arrays[f"{TREES}.{name}"] for name in Trees._fields}
    trees = Trees.from_arrays(arrays, made[LINEAR].coef.shape[1])
    if trees.value.shape[1] != n_classes:
        raise ValueError(f"trees of {trees.value.shape[1]} classes")
    made[TREES] = Forest(trees)
    if sampler is not None:
        coef, intercept = _coefficients(state, DRAWS, n_classes)
        if coef.shape[1] != sampler.ensemble.n_components:
            raise ValueError(f"a linear model of {coef.shape[1]} hidden units")
        made[DRAWS] = OnDraws(sampler, coef, intercept)
    return made


def _coefficients(state: _archive.State, name: str, n_classes: int) -> tuple[Array, Array]:
    """Coefficients (C, P) and intercepts (C,) of a linear model of a file."""
    coef, intercept = state.arrays[f"{name}.coef"], state.arrays[f"{name}.intercept"]
    fit = coef.ndim == 2 and len(coef) == n_classes and intercept.shape == (n_classes,)
    if not fit or {coef.dtype.kind, intercept.dtype.kind} != {"f"}:
        raise ValueError(f"a linear model of shape {coef.shape} for {n_classes} classes")
    return coef, intercept


def weight_factors(left_out: dict[str, Array], target: Index, prior: Array | None = None) -> dict[str, float]:
    """Factors of the members' weights by their accuracy in cross-validation; 1 for the best one.

    ``left_out`` are class probabilities of labeled rows, each by members that have not seen its label.
    Accuracy is the mean of the recalls of the classes. Few labels are weak evidence, and change little.
    """
    accuracies = {name: float(recalls(p, target).mean()) for name, p in left_out.items()}
    best = max(accuracies.values(), default=0)
    slope = SLOPE * len(target) / (len(target) + SHRINK)
    return {name: float(np.exp(slope * (found - best))) for name, found in accuracies.items()}


def member_weights(
    answers: dict[str, Array],
    counts: Index,
    others: Iterable[str] = (),
    *,
    n_clusters: int = MANY_CLUSTERS,
    factors: dict[str, float] | None = None,
) -> tuple[dict[str, float], list[str]]:
    """Weights of the members, which sum to 1, and why each is what it is.

    ``others`` are names of members whose answers are not known, and ``factors`` what weights are multiplied
    by (:func:`weight_factors`).

    Propagation counts more where its views agree (Cohen's kappa on rows of ``fit``, labeled or not), as they
    do where classes are clusters, and less the more labels there are. With few clusters almost all are
    neighbors in the graph, and it says little.
    """
    n = float(counts.mean())
    fade = FADE / (FADE + n)
    first, second = (answers[name].argmax(1) for name in (COLUMNS, COMPONENTS))
    agreement = kappa(first, second, len(counts))
    scale = fade * min(1, n_clusters / MANY_CLUSTERS)
    part = scale * (PART + AGREED * _between(agreement, (ENOUGH, 1)))
    clear = scale * CLEAR * _between(agreement, CLEAR_KAPPA) * _between(n_clusters, CLEAR_CLUSTERS)
    weights = {COLUMNS: part / 2 + clear, COMPONENTS: part / 2}
    part += clear
    if FEATURES in answers:
        part = max(part, LEARNED * fade)
        other = OTHER_VIEWS * part
        weights = {COLUMNS: other, COMPONENTS: other, FEATURES: part - 2 * other}
    reason = f"{n:.3g} label{'s' if n != 1 else ''} per class"
    why_propagated = f"{reason}; its views agree with kappa {agreement:.2f}; {n_clusters} clusters"
    propagated = list(weights)
    names = {*answers, *others}
    linear = [name for name in (LINEAR, LINEAR_RANKS) if name in names]
    linear_part = float(np.interp(n, AT_LABELS, LINEAR_PARTS))
    for name in linear:
        weights[name] = (1 - part) * linear_part / len(linear)
    if TREES in names:
        weights[TREES] = (1 - part) * (1 - linear_part)
    if DRAWS in names:
        weights = {name: w * (1 - DRAWS_PART) for name, w in weights.items()} | {DRAWS: DRAWS_PART}
    why = [why_propagated if name in propagated else reason for name in weights]
    if factors:
        weights = {name: w * factors[name] for name, w in weights.items()}
        why = [
            f"{one}; × {factors[name]:.2f} by cross-validation"
            for name, one in zip(weights, why, strict=True)
        ]
    total = sum(weights.values())
    return {name: w / total for name, w in weights.items()}, why


def _between(x: float, ends: tuple[float, float]) -> float:
    """0 up to the first of the ends, 1 from the second on, linear between."""
    return float(np.interp(x, ends, (0, 1)))


def expected_accuracy(
    answers: dict[str, Array],
    p: Array,
    counts: Index,
    *,
    cross_validated: float | None = None,
    n_cross_validated: int = 0,
) -> float:
    """Accuracy that is to be expected of predictions p (N, C) for unlabeled rows.

    A linear regression on other tables, by how often the members agree with the predictions and how confident
    these are; and the accuracy in cross-validation, which counts more the more labels it is from.
    """
    n_classes = p.shape[1]
    predicted = p.argmax(1)
    agreement = float(np.mean([(one.argmax(1) == predicted).mean() for one in answers.values()]))
    known = (1, agreement, 1 / n_classes, np.log(counts.mean()), p.max(1).mean())
    found = float(np.clip(np.dot(EXPECTED, known), 1 / n_classes + 0.02, 0.99))
    if cross_validated is not None:
        total = WORTH + n_cross_validated
        found = (WORTH * found + n_cross_validated * cross_validated) / total
    return float(np.clip(found, 1 / n_classes + 0.02, 0.99))


def folds(target: Index, n_classes: int, *, seed: int) -> list[tuple[Index, Index]]:
    """Stratified folds of labeled rows, (train, test) each.

    Rows of a class of fewer than 3 labels are in all training parts. No folds where fewer than two classes
    have more.
    """
    from sklearn.model_selection import StratifiedKFold

    counts = np.bincount(target, minlength=n_classes)
    enough = counts >= LEAST_FOLDS
    if enough.sum() < 2 or not counts.all():
        return []
    split, always = np.flatnonzero(enough[target]), np.flatnonzero(~enough[target])
    made = StratifiedKFold(min(MOST_FOLDS, int(counts[enough].min())), shuffle=True, random_state=seed)
    return [
        (np.concatenate([always, split[train]]), split[test])
        for train, test in made.split(split, target[split])
    ]


def recalls(p: Array, target: Index) -> Array:
    """Recall of each class (C,): the part of its rows that class probabilities p (N, C) predict as it.

    The mean of the others for a class without rows.
    """
    right = p.argmax(1) == target
    counts = np.bincount(target, minlength=p.shape[1])
    found = np.bincount(target, right, minlength=p.shape[1]) / np.maximum(counts, 1)
    return np.where(counts > 0, found, found[counts > 0].mean())


def sharpness(p: Array, accuracy: float) -> float:
    """The power γ with which p^γ, normalized, has this mean confidence (mean over rows of the largest)."""
    logs = np.log(p)
    logs -= logs.max(1, keepdims=True)
    low, high = LEAST_SHARP, MOST_SHARP
    for _ in range(30):
        middle = float(np.sqrt(low * high))
        confidence = float((1 / np.exp(middle * logs).sum(1)).mean())
        low, high = (middle, high) if confidence < accuracy else (low, middle)
    return float(np.sqrt(low * high))


def kappa(a: Index, b: Index, n_classes: int) -> float:
    """Cohen's kappa of two predictions: agreement beyond that of chance, 1 at most.

    References
    ----------
    J. Cohen, "A coefficient of agreement for nominal scales", 1960.
    """
    frequencies = [np.bincount(x, minlength=n_classes) / len(x) for x in (a, b)]
    by_chance = float(frequencies[0] @ frequencies[1])
    return (float((a == b).mean()) - by_chance) / max(1 - by_chance, 1e-9)


def combined(answers: dict[str, Array], weights: dict[str, float], class_weights: Array) -> Array:
    """Weighted mean of the members' class probabilities (N, C), times weights of the classes (C,)."""
    total: Any = 0
    for name, p in answers.items():
        p = np.maximum(p, LEAST)
        total = total + weights[name] * p / class_sums(p)
    total = total * class_weights
    found: Array = total / class_sums(total)
    return found
