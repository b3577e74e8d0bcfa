"""Label propagation over clusters: kernel, assignments and scores against loops."""

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import sparse
from scipy.stats import chisquare

from ebse import SpreadingClassifier, _archive
from ebse.semi_supervised._propagation import (
    NEGLIGIBLE,
    Cells,
    Clusterings,
    _clusters_of_parts,
    _lloyd,
    cluster,
    far_apart,
    kmeans,
    normalized,
    propagation_kernel,
)
from semi_supervised.blobs import blobs

ALPHA = 0.99


def test_the_kernel_is_a_sum_over_paths() -> None:
    """(I − α S)⁻¹ = Σ αⁿ Sⁿ, on a line of points where neighbors are known."""
    points = np.arange(7.0)[:, None] ** 1.1
    A = np.zeros((7, 7))
    for i in range(7):
        for j in sorted(range(7), key=lambda j: abs(points[i, 0] - points[j, 0]))[1:5]:
            A[i, j] = A[j, i] = 1
    S = A / np.sqrt(np.outer(A.sum(1), A.sum(1)))
    total, term = np.zeros((7, 7)), np.eye(7)
    for _ in range(4_000):
        total += term
        term = ALPHA * term @ S
    np.testing.assert_allclose(propagation_kernel(points, ALPHA), total, rtol=1e-8)


def test_the_kernel_is_computed_once() -> None:
    clusterings = Clusterings(np.random.default_rng(0).random((2, 6, 3)), np.ones(2), ALPHA)
    kernels = clusterings.kernels
    assert clusterings.kernels is kernels
    np.testing.assert_allclose(kernels[1], propagation_kernel(clusterings.centers[1], ALPHA), rtol=1e-7)


def test_scores_are_normalized_sums_of_propagated_labels() -> None:
    kernel = np.array([[2.0, 1.0, 0.0], [1.0, 2.0, 0.0], [0.0, 0.0, 1.0]])
    clusterings = Clusterings(np.zeros((1, 3, 1)), np.ones(1), ALPHA)
    clusterings.kernels = kernel[np.newaxis]
    at = sparse.csr_matrix(np.eye(3)[[0, 1, 1]])
    found = normalized(clusterings.propagated(at, np.array([0, 1, 1]), 2))
    # Two labels of class 1 have weight 1/2 each: center 0 receives 2 and 1, center 1 receives 1 and 2, center 2 nothing.
    np.testing.assert_allclose(found, [[2 / 3, 1 / 3], [1 / 3, 2 / 3], [0.5, 0.5]])
    # A label that is half at 0 and half at 1 has weight 1/2 at each.
    between = sparse.csr_matrix([[0.5, 0.5, 0.0], [0.0, 1.0, 0.0]])
    found = normalized(clusterings.propagated(between, np.array([0, 1]), 2))
    np.testing.assert_allclose(found[:2], [[0.6, 0.4], [3 / 7, 4 / 7]])


def test_rows_that_are_not_used_have_no_weight() -> None:
    clusterings = Clusterings(np.random.default_rng(0).random((2, 4, 3)), np.ones(2), ALPHA)
    at = clusterings.assign(np.random.default_rng(1).random((5, 3)).astype(np.float32))
    target, used = np.array([0, 1, 1, 0, 1]), np.array([True, True, False, False, True])
    np.testing.assert_allclose(
        clusterings.propagated(at, target, 2, used), clusterings.propagated(at[used], target[used], 2)
    )


def test_assignments_against_loops(monkeypatch: pytest.MonkeyPatch) -> None:
    """In blocks and to fewer centers than there are; single precision has a relative error of 6e-8."""
    rng = np.random.default_rng(0)
    Z, centers, widths = rng.normal(size=(9, 2)), rng.normal(size=(2, 6, 2)), np.array([0.7, 0.3])
    expected = np.zeros((9, 2, 6))
    for n, z in enumerate(Z):
        for i in range(2):
            squares = [float(((z - c) ** 2).sum()) for c in centers[i]]
            for j in sorted(range(6), key=squares.__getitem__)[:4]:
                weight = np.exp(-(squares[j] - min(squares)) / widths[i])
                expected[n, i, j] = weight if weight > NEGLIGIBLE else 0
            expected[n, i] /= 2 * expected[n, i].sum()
    monkeypatch.setattr("ebse.semi_supervised._propagation.N_ASSIGNED", 4)
    monkeypatch.setattr("ebse.semi_supervised._propagation.BLOCK", 4)
    clusterings = Clusterings(centers, widths, ALPHA)
    found = clusterings.assign(Z)
    np.testing.assert_allclose(found.toarray(), expected.reshape(9, 12), rtol=1e-7)
    assert (found.data.dtype, found.indices.dtype) == (np.float32, np.int32)
    np.testing.assert_allclose(clusterings.first(found).toarray(), 2 * expected[:, 0], rtol=1e-6)
    np.testing.assert_array_equal(clusterings.nearest(found), expected[:, 0].argmax(1))


def test_the_width_is_the_median_distance_from_the_center() -> None:
    points, _ = blobs()
    found = cluster(points, 12, n_clusterings=1, alpha=ALPHA, seed=0)
    squares = [min(float(((z - c) ** 2).sum()) for c in found.centers[0]) for z in points]
    assert found.widths[0] == pytest.approx(np.median(squares))


def test_a_larger_alpha_propagates_further() -> None:
    """Along a line of centers, relative to what stays at the label; with 0 it stays where it is."""
    points = np.arange(30.0)[:, None] ** 1.1
    parts = []
    for alpha in (0.5, 0.9, 0.99):
        kernel = propagation_kernel(points, alpha)
        parts.append(kernel[5] / kernel[5, 5])
    assert (np.diff(parts, axis=0)[:, np.arange(30) != 5] > 0).all()
    np.testing.assert_array_equal(propagation_kernel(points, 0.0), np.eye(30))


def test_labels_reach_more_rows_with_a_larger_alpha() -> None:
    """Probability of the class of the nearest label, far from it: less certain the more arrives of the other."""
    line = np.arange(100.0)[:, None]
    y = [0, *([None] * 98), 1]
    found = []
    for alpha in (0.0, 0.5, 0.99):
        spreading = SpreadingClassifier(
            n_clusters=100, n_clusterings=1, n_rounds=0, alpha=alpha, random_state=0
        )
        found.append(spreading.fit(line, y).predict_proba(line)[:, 0])
    # Without steps labels stay where they are.
    assert (found[0][20:80] == 0.5).all()
    assert (found[1][10:30] > found[2][10:30]).all()
    assert (found[2][20:40] > 0.5).all()


@pytest.mark.parametrize("alpha", [1.0, -0.1, 1.5, np.nan, np.inf, True, "0.9", None])
def test_alpha_that_is_refused(alpha: Any) -> None:
    spreading = SpreadingClassifier(alpha=0.9, n_clusterings=1, random_state=0).fit(*blobs())
    before = vars(spreading).copy()
    with pytest.raises(ValueError, match="alpha must be a number from 0 to below 1, got"):
        spreading.set_params(alpha=alpha).fit(*blobs())
    assert vars(spreading) == {**before, "alpha": alpha}


@pytest.mark.parametrize("alpha", [0, 0.5, np.float32(0.5), np.float64(0.9)])
def test_alpha_in_a_file(alpha: Any, tmp_path: Path) -> None:
    points, y = blobs()
    few = [int(c) if i < 6 else None for i, c in enumerate(y)]
    fitted = SpreadingClassifier(alpha=alpha, n_clusterings=1, random_state=0).fit(points, few)
    fitted.save(tmp_path / "a.safetensors")
    loaded = SpreadingClassifier.load(tmp_path / "a.safetensors")
    assert loaded.alpha == alpha
    # Also labels after load propagate with it.
    both = [one.relabel(points[6:20], y[6:20]).predict_proba(points) for one in (loaded, fitted)]
    np.testing.assert_array_equal(both[0], both[1])
    facts, arrays = fitted._state()
    facts["parameters"]["alpha"] = 1.0
    _archive.write(tmp_path / "b.safetensors", "SpreadingClassifier", facts, arrays)
    with pytest.raises(ValueError, match=r"b\.safetensors must hold what ebse wrote, .*alpha must be"):
        SpreadingClassifier.load(tmp_path / "b.safetensors")


LINE = np.array([[0.0], [1.0], [3.5], [5.2]])


def second_rows(weights: Any) -> dict[tuple[int, int], float]:
    """Probability of the first and the second row of greedy k-means++ on LINE, with two draws of the second.

    Of the two that which leaves the smaller sum of squared distances is taken.
    """
    found = {}
    for first in range(len(LINE)):
        squares = (LINE[:, 0] - LINE[first, 0]) ** 2
        others = [i for i in range(len(LINE)) if i != first]
        p = weights(squares)[others] / weights(squares)[others].sum()
        left = [np.minimum(squares, (LINE[:, 0] - LINE[i, 0]) ** 2).sum() for i in others]
        for second, one in enumerate(others):
            # Both draws are as good as this row or worse, and not both are worse; of equals the first is taken.
            alike = np.isclose(left, left[second])
            equal, worse = p[alike].sum(), p[~alike & (np.array(left) > left[second])].sum()
            found[first, one] = ((worse + equal) ** 2 - worse**2) * p[second] / equal / len(LINE)
    return found


def test_starts_of_k_means_are_those_of_greedy_k_means_plus_plus() -> None:
    """Against the enumerated law; a law that draws the second row uniformly is refused (failure rate 1e-6)."""
    seen = Counter(
        tuple(LINE.tolist().index(z.tolist()) for z in far_apart(LINE, 2, seed=s)) for s in range(6000)
    )

    def p_value(weights: Any) -> float:
        expected = second_rows(weights)
        assert set(seen) <= set(expected)
        counts = [seen[pair] for pair in expected]
        return float(chisquare(counts, [6000 * p for p in expected.values()]).pvalue)

    assert p_value(lambda squares: squares) > 1e-6
    assert p_value(lambda squares: (squares > 0).astype(float)) < 1e-6


def test_as_many_starts_as_rows_are_all_rows() -> None:
    Z = np.random.default_rng(0).normal(size=(40, 3)).astype(np.float32)
    found = far_apart(Z, 40, seed=0)
    np.testing.assert_array_equal(np.sort(found, axis=0), np.sort(Z, axis=0))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_two_levels_of_k_means_are_about_as_tight_as_one(dtype: Any) -> None:
    Z = np.random.default_rng(0).normal(size=(12_000, 3)).astype(dtype)
    cells, one = kmeans(Z, 200, seed=0), _lloyd(Z, far_apart(Z, 200, seed=0))
    assert cells.centers.shape == (200, 3)
    assert cells.centers.dtype == dtype
    assert set(cells.labels.tolist()) == set(range(200))

    def spread(found: Cells) -> float:
        return float(((Z - found.centers[found.labels]) ** 2).sum())

    assert spread(cells) < 1.25 * spread(one)
    # Labels are those of the nearest centers, up to the last move of the centers.
    nearest = ((Z[:, np.newaxis] - cells.centers) ** 2).sum(2).argmin(1)
    assert (nearest == cells.labels).mean() > 0.9
    # A row in the cluster of another row: far more than that.
    assert spread(cells._replace(labels=np.roll(cells.labels, 1))) > 2 * spread(one)


def test_two_levels_of_k_means_keep_distant_groups_apart() -> None:
    """Also a group of one row, far from all others."""
    Z = np.concatenate([blobs(12_000)[0], [[1e3, 1e3]]]).astype(np.float32)
    cells = kmeans(Z, 50, seed=3)
    assert (cells.labels == cells.labels[-1]).sum() == 1
    np.testing.assert_allclose(cells.centers[cells.labels[-1]], Z[-1], rtol=1e-6)


def test_two_levels_of_k_means_take_equal_rows() -> None:
    Z = np.repeat(np.arange(3.0)[:, np.newaxis], 5_000, axis=0)
    cells = kmeans(Z, 100, seed=0)
    assert cells.centers.shape == (100, 1)
    np.testing.assert_allclose(cells.centers[cells.labels], Z)


@pytest.mark.parametrize(
    "sizes", [[5_000, 1, 0, 1, 7_000], [1] * 31 + [12_000], [400] * 32, [0, 10_001, 0], [2, 2, 11_000]]
)
@pytest.mark.parametrize("k", [33, 100, 1_000])
def test_clusters_are_divided_among_parts(sizes: list[int], k: int) -> None:
    found = _clusters_of_parts(np.array(sizes), k)
    assert found.sum() == k
    assert (found <= sizes).all()
    assert (found[np.array(sizes) > 0] >= 1).all()
    large = np.array(sizes) > 1_000
    share = k * np.array(sizes) / sum(sizes)
    assert (np.abs(found - share)[large] <= len(sizes) + 1).all()
