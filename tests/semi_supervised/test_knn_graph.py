"""Nearest rows by products of blocks, against loops: ties, duplicates, few rows, partial blocks and groups."""

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from ebse.semi_supervised import _knn_graph
from ebse.semi_supervised._knn_graph import _nearest_of_all, nearest, neighbor_graph

Rows = npt.NDArray[np.float32]


@pytest.fixture
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Seven rows at once, groups of five columns."""
    monkeypatch.setattr(_knn_graph, "PAIRS", 7)
    monkeypatch.setattr(_knn_graph, "GROUP", 5)


def distances_from(X: Rows, i: int) -> list[float]:
    """Squared distances of row i from all rows, in float64."""
    return [sum((float(a) - float(b)) ** 2 for a, b in zip(X[i], x, strict=True)) for x in X]


def require_nearest(found: Any, X: Rows, n: int) -> None:
    """n different other rows, none nearer than those left out, nearest first; of equally near ones any."""
    assert found.shape == (len(X), n)
    assert found.dtype == np.int64
    for i, row in enumerate(found.tolist()):
        distance = distances_from(X, i)
        expected = sorted(d for j, d in enumerate(distance) if j != i)[:n]
        assert i not in row
        assert len(set(row)) == n
        assert [distance[j] for j in row] == expected


def whole_numbers(N: int, D: int, largest: int) -> Rows:
    """Rows whose distances have no rounding error, so that ties are ties."""
    return np.random.default_rng(N).integers(-largest, largest + 1, size=(N, D)).astype(np.float32)


@pytest.mark.parametrize("N", [2, 3, 5, 6, 7, 8, 14, 15, 36])
@pytest.mark.parametrize("n", [1, 2, 5, 13])
def test_rows_without_ties_against_loops(N: int, n: int, small_blocks: None) -> None:
    """N smaller than a group, than a block, and than n; whole and partial last blocks and groups."""
    X = whole_numbers(N, 3, 600)
    require_nearest(nearest(X, n, seed=0), X, min(n, N - 1))


@pytest.mark.parametrize("N", [4, 12, 41])
@pytest.mark.parametrize("largest", [0, 1, 2])
def test_ties_and_duplicates_against_loops(N: int, largest: int, small_blocks: None) -> None:
    """Rows on a grid with few points; with only one, all rows are equal."""
    X = whole_numbers(N, 2, largest)
    for n in (1, 3, N - 1):
        require_nearest(_nearest_of_all(X, n), X, n)


def test_all_other_rows(small_blocks: None) -> None:
    X = whole_numbers(23, 2, 100)
    found = nearest(X, 100, seed=0)
    np.testing.assert_array_equal(np.sort(found, 1), [np.delete(np.arange(23), i) for i in range(23)])


def test_neighbors_in_one_group_and_one_in_each(small_blocks: None) -> None:
    """All neighbors of a row may be in one group of columns, or each in another."""
    line = np.arange(30, dtype=np.float32)[:, None]
    together, apart = line, line.reshape(5, 6).T.reshape(-1, 1).copy()
    for X in (together, apart):
        require_nearest(_nearest_of_all(X, 4), X, 4)


def test_blocks_and_groups_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    X = np.random.default_rng(0).normal(size=(150, 6)).astype(np.float32)
    whole = _nearest_of_all(X, 9)
    for pairs, group in ((1, 1), (150, 150), (64, 7), (1_000, 1_000)):
        monkeypatch.setattr(_knn_graph, "PAIRS", pairs)
        monkeypatch.setattr(_knn_graph, "GROUP", group)
        np.testing.assert_array_equal(_nearest_of_all(X, 9), whole)


def test_a_row_that_is_its_own_neighbor_is_found_out(small_blocks: None) -> None:
    """The twin of these tests: one row, in the second block, is not left out."""
    X = whole_numbers(12, 3, 600)
    found = _nearest_of_all(X, 3)
    require_nearest(found, X, 3)
    found[8] = np.argsort(distances_from(X, 8))[:3]
    with pytest.raises(AssertionError):
        require_nearest(found, X, 3)


@pytest.mark.parametrize("spread", [0.1, 0.01, 0.001])
def test_neighbors_within_tight_groups(spread: float) -> None:
    """Two groups that are far apart, relative to their spread: rounding must not hide who is near."""
    rng = np.random.default_rng(0)
    middle = np.where(np.arange(200) % 2, 1, -1)[:, None]
    X = (middle + spread * rng.normal(size=(200, 5))).astype(np.float32)
    distance = ((X[:, None].astype(np.float64) - X[None]) ** 2).sum(-1)
    np.fill_diagonal(distance, np.inf)
    expected = np.argsort(distance, 1)[:, :10]
    found = nearest(X, 10, seed=0)
    n_right = [len(set(a) & set(b)) for a, b in zip(found.tolist(), expected.tolist(), strict=True)]
    assert np.mean(n_right) > 9.5


def test_rows_are_left_as_they_are(small_blocks: None) -> None:
    X = whole_numbers(20, 3, 50)
    before = X.copy()
    nearest(X, 4, seed=0)
    np.testing.assert_array_equal(X, before)


def test_the_graph_has_candidates_and_those_that_share_neighbors() -> None:
    X = np.random.default_rng(0).normal(size=(40, 3)).astype(np.float32)
    graph = neighbor_graph(X, 4, metric="euclidean", seed=0)
    np.testing.assert_array_equal(graph.nearest, nearest(X, _knn_graph.CANDIDATES, seed=0))
    assert graph.neighbors.shape == (40, 4)
    for kept, candidates in zip(graph.neighbors.tolist(), graph.nearest.tolist(), strict=True):
        assert set(kept) <= set(candidates)
        assert len(set(kept)) == 4
