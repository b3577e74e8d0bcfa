"""The batched logistic regression against scikit-learn, episode by episode."""

from typing import Any

import numpy as np
import pytest
import torch
from sklearn.linear_model import LogisticRegression

from ebse.evaluation import LogisticFit, fit_logistic, predict_proba
from ebse.evaluation import logistic as module

TIGHT = {"tol": 1e-9, "max_iter": 1000}


def overlapping(n_classes: int) -> tuple[Any, Any]:
    """Three episodes of rows that no plane separates."""
    rng = np.random.default_rng(n_classes)
    y = rng.integers(0, n_classes, (3, 200))
    return rng.normal(size=(3, 200, 4)) + 0.3 * y[..., None], y


def few_shot_rows() -> tuple[Any, Any, Any]:
    """20 episodes with 10 noisy copies of an example of each of 5 classes, and queries: separable, d > n."""
    rng = np.random.default_rng(0)
    centers = rng.normal(size=(20, 5, 80))
    X = (centers[:, :, None] + rng.normal(size=(20, 5, 10, 80))).reshape(20, 50, 80)
    queries = (centers[:, :, None] + 2 * rng.normal(size=(20, 5, 20, 80))).reshape(20, 100, 80)
    return X, np.tile(np.repeat(np.arange(5), 10), (20, 1)), queries


def coefficients_depart(fit: LogisticFit, models: list[Any]) -> bool:
    """Whether class differences of weights and intercepts depart from scikit-learn's by more than 1e-5."""
    for weights, intercepts, model in zip(fit.weights, fit.intercepts, models, strict=True):
        own = np.vstack([weights, intercepts])
        other = np.vstack([model.coef_.T, model.intercept_])
        if other.shape[1] == 1:
            own = own[:, 1:] - own[:, :1]
        if np.abs(own - other).max() > 1e-5:
            return True
    return False


def agreement(fit: LogisticFit, X: Any, y: Any, queries: Any) -> float:
    """The fraction of queries that scikit-learn classifies alike."""
    own = predict_proba(fit, queries).argmax(-1)
    other = [
        LogisticRegression(C=np.inf).fit(*rows).predict(q) for *rows, q in zip(X, y, queries, strict=True)
    ]
    return float((own == np.stack(other)).mean())


@pytest.mark.parametrize("n_classes", [2, 3, 5])
def test_coefficients_are_those_of_scikit_learn(n_classes: int) -> None:
    X, y = overlapping(n_classes)
    fit = fit_logistic(X, y, n_classes=n_classes, **TIGHT)  # type: ignore[arg-type]
    models = [LogisticRegression(C=np.inf, **TIGHT).fit(*rows) for rows in zip(X, y, strict=True)]
    assert fit.converged.all()
    assert not coefficients_depart(fit, models)
    own = predict_proba(fit, X)
    other = np.stack([model.predict_proba(rows) for model, rows in zip(models, X, strict=True)])
    np.testing.assert_allclose(own, other, atol=1e-5)


@pytest.mark.parametrize("settings", [{"C": 100.0}, {"C": np.inf, "fit_intercept": False}])
def test_a_penalty_or_a_missing_intercept_is_detected(settings: dict[str, Any]) -> None:
    """The twin: other regressions depart."""
    X, y = overlapping(3)
    fit = fit_logistic(X, y, n_classes=3, **TIGHT)  # type: ignore[arg-type]
    models = [LogisticRegression(**settings, **TIGHT).fit(*rows) for rows in zip(X, y, strict=True)]
    assert coefficients_depart(fit, models)


def test_separable_rows_stop_where_scikit_learn_stops() -> None:
    X, y, queries = few_shot_rows()
    fit = fit_logistic(X, y, n_classes=5)
    assert fit.converged.all()
    assert agreement(fit, X, y, queries) > 0.99


def test_another_line_search_is_detected(monkeypatch: pytest.MonkeyPatch) -> None:
    """The twin: another valid line search stops at another classifier."""

    def halving(phi: Any, value: Any, slope: Any, first: Any) -> Any:
        t = 100 * first
        while bool((long := phi(t)[0] > value + 1e-3 * t * slope).any()):
            t = torch.where(long, t / 2, t)
        return t, torch.ones_like(t, dtype=torch.bool)

    X, y, queries = few_shot_rows()
    monkeypatch.setattr(module, "wolfe_lengths", halving)
    fit = fit_logistic(X, y, n_classes=5)
    assert fit.converged.all()
    assert agreement(fit, X, y, queries) < 0.99


@pytest.mark.parametrize("tol", [1e-2, 1e-4])
def test_the_gradient_falls_to_the_tolerance(tol: float) -> None:
    """∂/∂W = 1/n Σ_i x_i (p_i − 1[y_i])ᵀ as a loop, in the features themselves although d > n."""
    X, y, _ = few_shot_rows()
    fit = fit_logistic(X, y, n_classes=5, tol=tol)
    start = fit_logistic(X, y, n_classes=5, tol=1e9)
    for found, falls in ((fit, True), (start, False)):
        p = predict_proba(found, X)
        for e in range(len(X)):
            residual = p[e] - np.eye(5)[y[e]]
            slopes = np.vstack([X[e].T @ residual, residual.sum(0)]) / len(residual)
            assert (np.abs(slopes).max() <= tol * (1 + 1e-9)) == falls


def test_episodes_are_independent() -> None:
    X, y, _ = few_shot_rows()
    together = fit_logistic(X, y, n_classes=5)
    for e in range(3):
        alone = fit_logistic(X[e : e + 1], y[e : e + 1], n_classes=5)
        np.testing.assert_allclose(alone.weights[0], together.weights[e], atol=1e-8)
        assert alone.n_iter[0] == together.n_iter[e]


def test_iterations_are_bounded() -> None:
    X, y = overlapping(3)
    fit = fit_logistic(X, y, n_classes=3, max_iter=2)
    assert (fit.n_iter == 2).all()
    assert not fit.converged.any()


def test_probabilities_are_softmax_of_the_logits() -> None:
    X, y = overlapping(3)
    fit = fit_logistic(X, y, n_classes=3)
    p = predict_proba(fit, X)
    for e in range(3):
        for i in range(5):
            z = [X[e, i] @ fit.weights[e][:, c] + fit.intercepts[e][c] for c in range(3)]
            np.testing.assert_allclose(p[e, i], np.exp(z) / np.sum(np.exp(z)), rtol=1e-10)


def test_rows_of_any_type_and_the_number_of_threads() -> None:
    X, y = overlapping(2)
    X = X.astype(np.float32)
    expected, n_threads = fit_logistic(X, y, n_classes=2).weights, torch.get_num_threads()
    frozen = X.copy()
    frozen.flags.writeable = False
    for form in (torch.from_numpy(X), X.tolist(), frozen, np.asfortranarray(X), X[::-1][::-1]):
        np.testing.assert_array_equal(fit_logistic(form, y, n_classes=2).weights, expected)
    np.testing.assert_array_equal(fit_logistic(X, torch.from_numpy(y), n_classes=2).weights, expected)
    assert torch.get_num_threads() == n_threads


ROWS, CLASSES = np.zeros((2, 4, 3)), np.array([[0, 1, 0, 1]] * 2)


@pytest.mark.parametrize(
    ("X", "y", "options", "message"),
    [
        (ROWS[0], CLASSES, {}, r"X must have shape \(E, n, d\), got \(4, 3\); pass rows of E episodes"),
        (ROWS[:, :0], CLASSES[:, :0], {}, "X must have training rows, got n = 0; label at least one"),
        (ROWS * np.nan, CLASSES, {}, "X must be finite, got nan; remove or impute"),
        (
            ROWS,
            CLASSES[:, :3],
            {},
            r"y must have shape \(E, n\) = \(2, 4\) as X, got \(2, 3\); pass one class per",
        ),
        (ROWS, CLASSES + 1, {}, "y must lie in 0 … 1, got 2; number the classes from 0 or raise n_classes"),
        (ROWS, CLASSES * 0.5, {}, "y must hold whole numbers, got torch.float64; number the classes from 0"),
        (ROWS, CLASSES, {"n_classes": 1}, "n_classes must be >= 2, got 1"),
        (ROWS, CLASSES, {"max_iter": 0}, "max_iter must be >= 1, got 0"),
        (ROWS, CLASSES, {"tol": 0.0}, "tol must be > 0, got 0.0; 1e-4 is scikit-learn's"),
    ],
)
def test_errors(X: Any, y: Any, options: dict[str, Any], message: str) -> None:
    with pytest.raises((TypeError, ValueError), match=message):
        fit_logistic(X, y, **{"n_classes": 2, **options})


def test_probabilities_of_other_features_are_refused() -> None:
    fit = fit_logistic(ROWS, CLASSES, n_classes=2)
    message = r"X must have shape \(2, n, 3\) as in fit_logistic, got \(2, 4, 2\); pass rows of the same"
    with pytest.raises(ValueError, match=message):
        predict_proba(fit, ROWS[..., :2])
