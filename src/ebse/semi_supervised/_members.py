"""Members of :class:`ebse.FewLabelClassifier`: logistic regression, trees, and how answers are combined."""

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.special import softmax

from ebse import _archive
from ebse.semi_supervised._columns import Views
from ebse.semi_supervised._trees import Trees

Array = npt.NDArray[Any]
Index = npt.NDArray[np.intp]

COLUMNS, COMPONENTS = "propagation on columns", "propagation on components of ranks"
FEATURES = "propagation on learned features"
LINEAR, LINEAR_RANKS, TREES = "logistic regression", "logistic regression on ranks", "trees"
N_TREES = 100
FADE = 5.0
"""Labels per class at which propagation and supervised members count the same."""
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
    """Logistic regression in which every class has the same weight."""
    from sklearn.linear_model import LogisticRegression

    model = LogisticRegression(max_iter=300, class_weight="balanced").fit(getattr(views, view), target)
    coef, intercept = model.coef_, model.intercept_
    if n_classes == 2:
        # scikit-learn has the log-odds of the second class alone.
        coef, intercept = np.concatenate([0 * coef, coef]), np.concatenate([0 * intercept, intercept])
    return Linear(view, coef.astype(np.float32), intercept.astype(np.float32))


class Forest:
    """Extremely randomized trees on standardized columns; as arrays, and while it lasts as scikit-learn's.

    References
    ----------
    P. Geurts, D. Ernst and L. Wehenkel, "Extremely randomized trees", 2006.
    """

    def __init__(self, trees: Trees, fitted: Any = None) -> None:
        self.trees, self._fitted = trees, fitted

    @classmethod
    def fitted(cls, X: Array, target: Index, *, seed: int) -> "Forest":
        """Of labeled rows X (L, P), in which every class has the same weight."""
        from sklearn.ensemble import ExtraTreesClassifier

        made = ExtraTreesClassifier(N_TREES, class_weight="balanced", random_state=seed).fit(X, target)
        return cls(Trees.of(made), made)

    def __call__(self, views: Views) -> Array:
        """Class probabilities of rows (N, C)."""
        # scikit-learn is eight times as fast; both give the same.
        model = self.trees if self._fitted is None else self._fitted
        found: Array = model.predict_proba(views.standard)
        return found

    def arrays(self) -> dict[str, Array]:
        """What a file holds."""
        return self.trees._asdict()


def fitted_members(views: Views, target: Index, n_classes: int, *, seed: int) -> dict[str, Any]:
    """Members that learn from the labeled rows alone, by name."""
    made: dict[str, Any] = {LINEAR: fitted_linear(views, "standard", target, n_classes)}
    if not np.array_equal(views.ranks, views.standard):
        made[LINEAR_RANKS] = fitted_linear(views, "ranks", target, n_classes)
    made[TREES] = Forest.fitted(views.standard, target, seed=seed)
    return made


def restored_members(state: _archive.State) -> dict[str, Any]:
    """The members of a file."""
    made: dict[str, Any] = {}
    n_classes = len(state.facts["classes"]["values"])
    for name, view in state.facts["linear"]:
        coef, intercept = state.arrays[f"{name}.coef"], state.arrays[f"{name}.intercept"]
        if (
            view not in Views._fields
            or coef.ndim != 2
            or len(coef) != n_classes
            or intercept.shape != (n_classes,)
        ):
            raise ValueError(f"a linear model of shape {coef.shape} for {n_classes} classes")
        made[name] = Linear(view, coef, intercept)
    arrays = {name: state.arrays[f"{TREES}.{name}"] for name in Trees._fields}
    trees = Trees.from_arrays(arrays, made[LINEAR].coef.shape[1])
    if trees.value.shape[1] != n_classes:
        raise ValueError(f"trees of {trees.value.shape[1]} classes")
    return {**made, TREES: Forest(trees)}


def member_weights(answers: dict[str, Array], counts: Index) -> tuple[dict[str, float], list[str]]:
    """Weights of the members, which sum to 1, and why each is what it is."""
    n = float(counts.mean())
    part = FADE / (FADE + n)
    weights, why = {}, []
    propagated = [name for name in answers if name.startswith("propagation")]
    linear = [name for name in answers if name in (LINEAR, LINEAR_RANKS)]
    for name in answers:
        if name in propagated:
            weights[name] = 0.5 * part / len(propagated)
            why.append(f"unlabeled rows count less the more labels there are: {n:g} per class")
        elif name in linear:
            weights[name] = 0.25 / len(linear)
            why.append("")
        else:
            weights[name] = 0.25 + 0.5 * (1 - part)
            why.append("")
    total = sum(weights.values())
    return {name: w / total for name, w in weights.items()}, why


def combined(
    answers: dict[str, Array],
    weights: dict[str, float],
    prior: Array,
    *,
    power: float,
    without_prior: set[str],
) -> Array:
    """Weighted mean of the members' class probabilities (N, C), times a power of the prior.

    Answers of the members ``without_prior``, which have learned from classes of equal weight, are multiplied
    by the prior itself.
    """
    total: Any = 0
    for name, p in answers.items():
        p = np.maximum(p, LEAST)
        if name in without_prior:
            p = p * prior
        total = total + weights[name] * p / p.sum(1, keepdims=True)
    total = total * prior**power
    found: Array = total / total.sum(1, keepdims=True)
    return found
