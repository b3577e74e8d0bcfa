"""Class prior: weights that meet it, numbers of predicted rows, and where it helps."""

from typing import Any

import numpy as np
import pytest
from scipy import stats

from ebse.semi_supervised._class_prior import class_weights
from ebse.semi_supervised.spreading import SpreadingClassifier, _some_unlabeled


def test_weighted_probabilities_have_the_prior_as_mean() -> None:
    p = np.random.default_rng(0).dirichlet([3, 1, 1], size=500)
    prior = np.array([0.2, 0.3, 0.5])
    q = p * class_weights(p, prior)
    q /= q.sum(1, keepdims=True)
    np.testing.assert_allclose(q.mean(0), prior, atol=1e-6)
    assert abs(p.mean(0) - prior).max() > 0.1


def test_a_soft_prior_is_approached() -> None:
    """Weights ∝ (prior / m)^(1 / softness), with the mean m between that without weights and the prior."""
    p = np.random.default_rng(0).dirichlet([3, 1, 1], size=500)
    prior = np.array([0.2, 0.3, 0.5])
    weights = class_weights(p, prior, softness=0.5)
    q = p * weights
    m = (q / q.sum(1, keepdims=True)).mean(0)
    expected = (prior / m) ** 2
    np.testing.assert_allclose(weights / weights[0], expected / expected[0], rtol=1e-6)
    assert (abs(m - prior) < abs(p.mean(0) - prior)).all()


def test_the_right_prior_helps_and_a_wrong_one_harms() -> None:
    """Four fifths and one fifth of a strip, a label at a random place of each, 30 times.

    The mean of the paired differences is above 0 (below, for a wrong prior) by a t-test at 1 in 1,000.
    """
    rng = np.random.default_rng(0)
    strip = rng.random((500, 2)) * [1, 0.02]
    kind = (strip[:, 0] > 0.8).astype(int)
    priors: dict[str, Any] = {"plain": None, "right": {0: 0.8, 1: 0.2}, "wrong": {0: 0.2, 1: 0.8}}
    spreading = SpreadingClassifier(n_clusters=50, n_clusterings=2, random_state=0).fit(strip)
    found: dict[str, list[float]] = {name: [] for name in priors}
    for _ in range(30):
        first = np.array([rng.choice(np.flatnonzero(kind == c)) for c in (0, 1)])
        for name, prior in priors.items():
            spreading.set_params(class_prior=prior).relabel(strip[first], kind[first])
            found[name].append(spreading.score(strip, kind))
    right, wrong = (np.subtract(found[name], found["plain"]) for name in ("right", "wrong"))
    assert stats.ttest_1samp(right, 0, alternative="greater").pvalue < 1e-3
    assert stats.ttest_1samp(wrong, 0, alternative="less").pvalue < 1e-3


def clouds(n: int = 600, small: float = 0.05) -> tuple[Any, Any]:
    """Two clouds in the plane, a small one three standard deviations from a large one."""
    y = (np.arange(n) < small * n).astype(int)
    return np.random.default_rng(0).normal(size=(n, 2)) + 3 * np.outer(y, [1, 0]), y


def predicted_fraction(small: float = 0.05) -> float:
    """Fraction of rows predicted as the small class, with the right prior; a mean of ten choices of labels."""
    points, y = clouds(small=small)
    prior = {0: 1 - small, 1: small}
    spreading = SpreadingClassifier(class_prior=prior, n_clusterings=2, random_state=0).fit(points)
    rng, found = np.random.default_rng(1), []
    for _ in range(10):
        few = [rng.choice(np.flatnonzero(y == c)) for c in (0, 1)]
        found.append(spreading.relabel(points[few], y[few]).predict(points).mean())
    return float(np.mean(found))


def test_as_many_rows_are_predicted_as_the_prior_has(monkeypatch: pytest.MonkeyPatch) -> None:
    """Within a factor of two of 1 in 20; with p ∝ q probabilities sum to it, and hardly a row is predicted."""
    assert 0.025 < predicted_fraction() < 0.1
    for module in ("_propagation", "spreading"):
        name = f"ebse.semi_supervised.{module}.probabilities"
        monkeypatch.setattr(name, lambda q: q / q.sum(1, keepdims=True))
    assert predicted_fraction() < 0.025


@pytest.mark.parametrize("order", ["mixed", "by class"])
def test_the_prior_is_that_of_the_unlabeled_rows(order: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Mean probabilities of the unlabeled rows, whatever their order, and however many are labeled."""
    monkeypatch.setattr("ebse.semi_supervised.spreading.N_PSEUDO", 300)
    rng = np.random.default_rng(0)
    kind = np.arange(900) % 3
    if order == "by class":
        kind = np.sort(kind)
    rows = rng.normal(size=(900, 2)) + 1.5 * np.stack([kind, kind % 2], 1)
    # Many labels of one class do not count.
    extra = np.concatenate([np.array([0, 1, 2]), np.zeros(60, dtype=int)])
    labeled = rng.normal(size=(63, 2)) + 1.5 * np.stack([extra, extra % 2], 1)
    prior = {0: 0.5, 1: 0.3, 2: 0.2}
    spreading = SpreadingClassifier(n_clusters=60, class_prior=prior, random_state=0)
    spreading.fit(labeled, extra, X_unlabeled=rows)
    # The prior is fitted to 300 of 900 rows: a fraction p of them has a standard error of at most
    # sqrt(p (1 − p) / 300) = 0.029.
    np.testing.assert_allclose(spreading.predict_proba(rows).mean(0), [0.5, 0.3, 0.2], atol=5 * 0.029)
    plain = SpreadingClassifier(n_clusters=60, random_state=0).fit(labeled, extra, X_unlabeled=rows)
    assert abs(plain.predict_proba(rows).mean(0) - [0.5, 0.3, 0.2]).max() > 0.1


def test_an_impossible_prior_leaves_finite_weights() -> None:
    p = np.repeat(np.eye(3), 10, axis=0)
    weights = class_weights(p, np.array([0.9, 0.05, 0.05]))
    assert weights.min() >= 1e-6 * weights.max()
    assert np.isfinite(weights).all()


def test_the_prior_is_that_of_the_rows_that_are_unlabeled_now() -> None:
    """Labels by relabel have the same result as labels in fit, whatever was labeled before."""
    rng = np.random.default_rng(0)
    kind = np.arange(300) % 3
    rows = rng.normal(size=(300, 2)) + 1.5 * np.stack([kind, kind % 2], 1)
    # Copies without a label stay unlabeled rows.
    rows[100:110] = rows[:10]
    y = [int(c) if i < 60 else None for i, c in enumerate(kind)]
    other = [int(c) if i > 200 else None for i, c in enumerate(kind)]
    made = SpreadingClassifier(
        n_clusters=60, n_clusterings=2, class_prior={0: 0.6, 1: 0.2, 2: 0.2}, random_state=0
    )
    expected = made.fit(rows, y).predict_proba(rows + 0.1)
    for fitted in (made.fit(rows), made.fit(rows, other)):
        np.testing.assert_allclose(fitted.relabel(y=y).predict_proba(rows + 0.1), expected)
        np.testing.assert_allclose(fitted.relabel(rows[:60], y[:60]).predict_proba(rows + 0.1), expected)
    chosen = _some_unlabeled(made._rows.keys, made._rows.keys[:60])
    assert len(chosen) == 240
    assert set(made._rows.keys[chosen]) == set(made._rows.keys[60:])


def test_the_form_of_a_prior_is_checked_without_labels() -> None:
    for prior in ("eqal", 0.5, {"a": "b"}, {"a": -0.5}):
        with pytest.raises(ValueError, match="class_prior must"):
            SpreadingClassifier(class_prior=prior).fit(np.eye(5))
