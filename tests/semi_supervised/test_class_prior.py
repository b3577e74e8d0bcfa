"""Sizes of the classes: factors that meet them, as many rows as are told, and where they help."""

from typing import Any

import numpy as np
import pytest
from scipy import stats

from ebse.semi_supervised._propagation import scales_for
from ebse.semi_supervised.spreading import SpreadingClassifier


def test_scaled_shares_have_the_sizes_asked_for() -> None:
    p = np.random.default_rng(0).dirichlet([3, 1, 1], size=500)
    sizes = np.array([0.2, 0.3, 0.5])
    q = p * scales_for(p, sizes)
    q /= q.sum(1, keepdims=True)
    np.testing.assert_allclose(q.mean(0), sizes, atol=1e-6)
    assert abs(p.mean(0) - sizes).max() > 0.1


def test_sizes_that_yield_are_met_halfway() -> None:
    """Factors ∝ (size / m)^(1 / yielding), m what shares then sum to: between what they were and the sizes."""
    p = np.random.default_rng(0).dirichlet([3, 1, 1], size=500)
    sizes = np.array([0.2, 0.3, 0.5])
    scale = scales_for(p, sizes, yielding=0.5)
    q = p * scale
    m = (q / q.sum(1, keepdims=True)).mean(0)
    expected = (sizes / m) ** 2
    np.testing.assert_allclose(scale / scale[0], expected / expected[0], rtol=1e-6)
    assert (abs(m - sizes) < abs(p.mean(0) - sizes)).all()


def test_known_sizes_help_and_wrong_ones_harm() -> None:
    """Four fifths and one fifth of a strip, a label at a random place of each, 30 times.

    The mean of the paired differences is above 0 (below, for wrong sizes) by Student's law, at 1 in 1,000.
    """
    rng = np.random.default_rng(0)
    strip = rng.random((500, 2)) * [1, 0.02]
    kind = (strip[:, 0] > 0.8).astype(int)
    told: dict[str, Any] = {"plain": None, "right": {0: 0.8, 1: 0.2}, "wrong": {0: 0.2, 1: 0.8}}
    spread = SpreadingClassifier(n_clusterings=2, random_state=0).fit(strip[:2], [0, 1], X_unlabeled=strip)
    found: dict[str, list[float]] = {name: [] for name in told}
    for _ in range(30):
        first = np.array([rng.choice(np.flatnonzero(kind == c)) for c in (0, 1)])
        for name, sizes in told.items():
            spread.set_params(class_prior=sizes).relabel(strip[first], kind[first])
            found[name].append(spread.score(strip, kind))
    right, wrong = (np.subtract(found[name], found["plain"]) for name in ("right", "wrong"))
    assert stats.ttest_1samp(right, 0, alternative="greater").pvalue < 1e-3
    assert stats.ttest_1samp(wrong, 0, alternative="less").pvalue < 1e-3


def clouds(n: int = 600, small: float = 0.05) -> tuple[Any, Any]:
    """Two clouds in the plane, a small one three standard deviations from a large one."""
    y = (np.arange(n) < small * n).astype(int)
    return np.random.default_rng(0).normal(size=(n, 2)) + 3 * np.outer(y, [1, 0]), y


def share_taken(small: float = 0.05) -> float:
    """For the small class, of rows without a label, where sizes are told; a mean of ten choices of labels."""
    points, y = clouds(small=small)
    sizes = {0: 1 - small, 1: small}
    spread = SpreadingClassifier(class_prior=sizes, n_clusterings=2, random_state=0)
    spread.fit(points[[0, -1]], y[[0, -1]], X_unlabeled=points)
    rng, found = np.random.default_rng(1), []
    for _ in range(10):
        few = [rng.choice(np.flatnonzero(y == c)) for c in (0, 1)]
        found.append(spread.relabel(points[few], y[few]).predict(points).mean())
    return float(np.mean(found))


def test_as_many_rows_are_taken_for_a_class_as_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """Within a factor of two of 1 in 20; shares that are not sharper sum to it, and hardly a row is taken."""
    assert 0.025 < share_taken() < 0.1
    monkeypatch.setattr("ebse.semi_supervised._propagation.SHARPER", 1)
    assert share_taken() < 0.025


@pytest.mark.parametrize("order", ["as they come", "by class"])
def test_sizes_are_those_of_the_rows_without_a_label(order: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Shares of the blank rows sum to the sizes told, whatever their order, and however many are labeled."""
    monkeypatch.setattr("ebse.semi_supervised.spreading.N_SPEAKING", 300)
    rng = np.random.default_rng(0)
    kind = np.arange(900) % 3
    if order == "by class":
        kind = np.sort(kind)
    rows = rng.normal(size=(900, 2)) + 1.5 * np.stack([kind, kind % 2], 1)
    # Many labels of one class do not count.
    extra = np.concatenate([np.array([0, 1, 2]), np.zeros(60, dtype=int)])
    labeled = rng.normal(size=(63, 2)) + 1.5 * np.stack([extra, extra % 2], 1)
    sizes = {0: 0.5, 1: 0.3, 2: 0.2}
    spread = SpreadingClassifier(n_clusters=60, class_prior=sizes, random_state=0)
    spread.fit(labeled, extra, X_unlabeled=rows)
    # 300 of 900 rows are asked: a share p of them has a standard error of at most sqrt(p (1 − p) / 300) = 0.029.
    np.testing.assert_allclose(spread.predict_proba(rows).mean(0), [0.5, 0.3, 0.2], atol=5 * 0.029)
    plain = SpreadingClassifier(n_clusters=60, random_state=0).fit(labeled, extra, X_unlabeled=rows)
    assert abs(plain.predict_proba(rows).mean(0) - [0.5, 0.3, 0.2]).max() > 0.1


def test_impossible_sizes_leave_finite_factors() -> None:
    p = np.repeat(np.eye(3), 10, axis=0)
    scale = scales_for(p, np.array([0.9, 0.05, 0.05]))
    assert scale.min() >= 1e-6 * scale.max()
    assert np.isfinite(scale).all()
