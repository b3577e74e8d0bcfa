"""Clusters of random walks: groups that no walk leaves, their number, stability, and few or equal rows."""

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import torch
from sklearn.metrics import adjusted_rand_score, rand_score

from ebse.semi_supervised import _walk_clusters
from ebse.semi_supervised._knn_graph import nearest
from ebse.semi_supervised._walk_clusters import stability, walk_clusters
from monte_carlo import means_depart

Index = npt.NDArray[np.intp]


@pytest.fixture(autouse=True)
def few_starts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Groups this clear need no twenty starts of k-means."""
    monkeypatch.setattr(_walk_clusters, "N_STARTS", 3)


def grouped(n_groups: int, size: int = 60) -> tuple[Any, Any, Index]:
    """Rows around corners of a simplex, neighbors in the same group, and the group of each row."""
    rng = np.random.default_rng(0)
    group = np.arange(n_groups * size) // size
    z = np.eye(n_groups)[group] + 0.1 * rng.normal(size=(len(group), n_groups))
    neighbors = group[:, None] * size + rng.integers(size, size=(len(group), 5))
    return z.astype(np.float32), neighbors, group


def n_clusters(clusterings: list[Index]) -> list[int]:
    return [len(np.unique(one)) for one in clusterings]


def require_contiguous(clusterings: list[Index], n: int) -> None:
    """Every row has a cluster, and every cluster up to the largest has a row."""
    assert len(clusterings) == len(_walk_clusters.STAYING)
    for one in clusterings:
        assert one.shape == (n,)
        np.testing.assert_array_equal(np.unique(one), np.arange(one.max() + 1))


def test_groups_that_no_walk_leaves_are_found() -> None:
    z, neighbors, group = grouped(4)
    found = walk_clusters(z, neighbors, seed=0)
    require_contiguous(found, len(z))
    assert n_clusters(found) == [4] * len(found)
    assert [adjusted_rand_score(one, group) for one in found] == [1.0] * len(found)


def test_groups_that_walks_leave_at_once_are_none() -> None:
    """The twin: the same rows, with walks to anywhere."""
    z, neighbors, group = grouped(4)
    anywhere = np.random.default_rng(1).integers(len(z), size=neighbors.shape)
    found = walk_clusters(z, anywhere, seed=0)
    assert n_clusters(found) == [_walk_clusters.FEWEST] * len(found)
    assert max(adjusted_rand_score(one, group) for one in found) < 0.9


def test_walks_count_and_not_distances() -> None:
    """Two groups for the walks, each of two groups of z."""
    z, neighbors, group = grouped(4)
    size = len(z) // 4
    # Half of the neighbors of a row are in the other group of its pair.
    neighbors[:, ::2] = (neighbors[:, ::2] // size ^ 1) * size + neighbors[:, ::2] % size
    found = walk_clusters(z, neighbors, seed=0)
    assert [adjusted_rand_score(one, group // 2) for one in found] == [1.0] * len(found)


def test_the_number_of_clusters_is_read_off_eigenvalues(monkeypatch: pytest.MonkeyPatch) -> None:
    """Four groups in two pairs. Walks leave no pair; between its groups their eigenvalue is 0.6."""
    z, neighbors, group = grouped(4, size=80)
    leaving = (1 - 0.6 ** (1 / _walk_clusters.N_STEPS)) / 2
    n = round(leaving * 80 * 5)
    assert n >= 2
    for i in range(4):
        # Single edges to the other group of the pair.
        rows = np.flatnonzero(group == i)[:n]
        neighbors[rows, 0] = (group[rows] ^ 1) * 80 + rows % 80
    monkeypatch.setattr(_walk_clusters, "STAYING", (0.9, 0.4))
    # With few walks between small cells, chance has eigenvalues of 0.3.
    monkeypatch.setattr(_walk_clusters, "N_WALKS", 20)
    coarse, fine = walk_clusters(z, neighbors, seed=0)
    assert n_clusters([coarse, fine]) == [2, 4]
    assert adjusted_rand_score(coarse, group // 2) == 1
    assert adjusted_rand_score(fine, group) > 0.95


def test_there_are_no_more_clusters_than_allowed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_walk_clusters, "MOST", 3)
    z, neighbors, _ = grouped(6)
    assert n_clusters(walk_clusters(z, neighbors, seed=0)) == [3] * len(_walk_clusters.STAYING)


def test_the_number_of_cells_is_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    """A cell is in one cluster: as many clusters as cells at most."""
    monkeypatch.setattr(_walk_clusters, "N_CELLS", 2)
    z, neighbors, _ = grouped(4)
    assert max(n_clusters(walk_clusters(z, neighbors, seed=0))) <= 2


def test_walks_between_cells_are_counted_both_ways() -> None:
    """A ring on which all walks take the same steps, in one direction, against a loop."""
    N, n_cells = 11, 4
    ring = np.roll(np.arange(N), -1)[:, None]
    cells = np.arange(N) * n_cells // N
    found = _walk_clusters._walks_between(cells, n_cells, ring, np.random.default_rng(0))
    expected = np.full((n_cells, n_cells), _walk_clusters.SMOOTHED)
    for row in range(N):
        end = (row + _walk_clusters.N_STEPS) % N
        expected[cells[row], cells[end]] += _walk_clusters.N_WALKS
        expected[cells[end], cells[row]] += _walk_clusters.N_WALKS
    np.testing.assert_allclose(found, expected)


@pytest.mark.parametrize(
    "z",
    [
        np.random.default_rng(0).normal(size=(10, 3)),
        np.ones((10, 3)),
        np.repeat(np.eye(3), [1, 1, 28], axis=0),
        np.eye(2),
        np.random.default_rng(0).normal(size=(4, 1)),
    ],
    ids=["10 rows", "equal rows", "duplicates", "2 rows", "1 column"],
)
def test_few_or_equal_rows(z: Any) -> None:
    rows = z.astype(np.float32)
    found = walk_clusters(rows, nearest(rows, 5, seed=0), seed=0)
    require_contiguous(found, len(z))


def test_seeds() -> None:
    """Of rows without structure, whose clusters are arbitrary."""
    rng = np.random.default_rng(0)
    z, neighbors = rng.normal(size=(100, 3)).astype(np.float32), rng.integers(100, size=(100, 5))
    first, again, other = (walk_clusters(z, neighbors, seed=seed) for seed in (0, 0, 1_000))
    for a, b in zip(first, again, strict=True):
        np.testing.assert_array_equal(a, b)
    assert stability(first, other) < 0.9


# ---- stability


def renamed(clusters: Index) -> Index:
    return np.array([2, 0, 1])[clusters]


def test_clusterings_that_differ_by_names_are_the_same() -> None:
    rng = np.random.default_rng(0)
    some = [rng.integers(3, size=50) for _ in range(4)]
    assert stability(some, [renamed(one) for one in some]) == 1


def test_stability_is_a_mean_over_clusterings() -> None:
    """Half of the clusterings agree, the others have nothing in common (all rows in one cluster)."""
    some = np.arange(30) % 3
    assert stability([some, some], [renamed(some), np.zeros(30, dtype=np.intp)]) == pytest.approx(0.5)


def test_random_clusterings_agree_by_chance_alone() -> None:
    """The mean over pairs is 0; the twin, the Rand index without its adjustment, is not."""
    rng = np.random.default_rng(0)
    pairs = [rng.integers(4, size=(2, 60)) for _ in range(200)]
    adjusted = torch.tensor([[stability([a], [b])] for a, b in pairs])
    assert not means_depart(adjusted.double(), torch.zeros(1).double())
    assert adjusted.abs().max() < 0.5
    plain = torch.tensor([[rand_score(a, b)] for a, b in pairs])
    assert means_depart(plain.double(), torch.zeros(1).double())
