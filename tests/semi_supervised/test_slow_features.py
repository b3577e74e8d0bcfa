"""Slow features: the eigenfunctions of a known chain; neighbor graphs and random walks."""

from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from scipy import stats
from sklearn.frozen import FrozenEstimator

from ebse import RBSE, ContrastiveFeatures
from ebse._stages import Stage, listening
from ebse.semi_supervised._knn_graph import most_shared, nearest, neighbor_graph, random_walk
from ebse.semi_supervised.slow_features import SlowFeatures

Array = npt.NDArray[Any]

# A reversible chain on six states: two groups of three that are seldom left. Symmetric, so uniform.
RATES = np.full((6, 6), 0.01)
RATES[:3, :3] = RATES[3:, 3:] = 0.25
np.fill_diagonal(RATES, 0)
CHAIN = RATES + np.diag(1 - RATES.sum(1))


def states(n: int = 6_000) -> Array:
    """States as one-hot rows; row i < 6 is state i."""
    return np.eye(6)[np.arange(n) % 6]


def chain_walk(n_steps: int, broken: bool = False) -> Any:
    """Ends of walks along the chain in place of the neighbor graph; anywhere, if ``broken``."""
    chain = np.full((6, 6), 1 / 6) if broken else np.linalg.matrix_power(CHAIN, n_steps)

    def ends(self: SlowFeatures, X: Array, seed: int) -> Array:
        rng = np.random.default_rng(seed)
        return np.array([rng.choice(6, p=chain[state]) for state in X.argmax(1)])

    return ends


def fitted(walk: Any, monkeypatch: pytest.MonkeyPatch) -> SlowFeatures:
    monkeypatch.setattr(SlowFeatures, "_walk_ends", walk)
    return SlowFeatures(n_components=3, n_random=2, ridge=1e-4, random_state=0).fit(states())


# One eigenvalue estimated from 6,000 pairs has an error of at most sqrt((1 − λ²)/6000) ≤ 0.013; five of them.
ERROR = 5 * 0.013


@pytest.mark.parametrize("n_steps", [1, 3])
def test_eigenvalues_and_functions_of_a_known_chain(n_steps: int, monkeypatch: pytest.MonkeyPatch) -> None:
    values, functions = np.linalg.eigh(CHAIN)
    exact = values[::-1] ** n_steps
    slow = fitted(chain_walk(n_steps), monkeypatch)
    # The first exact one belongs to the constant, which a covariance does not see.
    np.testing.assert_allclose(slow.eigenvalues_[0], exact[1], atol=ERROR)
    np.testing.assert_allclose(slow.eigenvalues_[1], exact[2], atol=ERROR)
    # The slowest function tells the two groups apart, and is otherwise the same within each.
    found = (slow._dictionary(slow._standardizer(np.eye(6))) - slow._mean) @ slow._map[:, 0]
    assert abs(np.corrcoef(found, functions[:, -2])[0, 1]) > 0.99


def test_walks_to_random_rows_have_no_slow_function(monkeypatch: pytest.MonkeyPatch) -> None:
    assert (
        fitted(chain_walk(1, broken=True), monkeypatch).eigenvalues_[0]
        < 3 * ERROR
        < np.linalg.eigvalsh(CHAIN)[-2]
    )


def test_covariances_do_not_depend_on_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    X = np.random.default_rng(0).random((50, 4))
    whole = SlowFeatures(n_components=5, n_random=8, random_state=0).fit(X)
    monkeypatch.setattr("ebse.semi_supervised._standardize.BLOCK", 7)
    monkeypatch.setattr("ebse.semi_supervised.slow_features.BLOCK", 50)
    parts = SlowFeatures(n_components=5, n_random=8, random_state=0).fit(X)
    np.testing.assert_allclose(parts.eigenvalues_, whole.eigenvalues_, atol=1e-4)


@pytest.mark.parametrize(("scale", "offset"), [(1.0, 1e5), (1e18, 0.0), (1e-18, 0.0), (255.0, -1e3)])
def test_units_and_offsets_change_no_eigenvalue(scale: float, offset: float) -> None:
    X = np.random.default_rng(0).random((200, 4)) + np.arange(200)[:, None] % 2
    plain, moved = (
        SlowFeatures(n_components=4, n_random=20, random_state=0).fit(rows).eigenvalues_
        for rows in (X, X * scale + offset)
    )
    np.testing.assert_allclose(moved, plain, atol=1e-3)
    assert plain.max() <= 1


def test_the_dictionary_is_small_for_few_rows() -> None:
    """Rows without structure: with one function for every row some would be slow by chance."""
    X = np.random.default_rng(0).random((200, 3))
    few = SlowFeatures(n_components=20, random_state=0).fit(X)
    assert len(few.eigenvalues_) == 3 + 200 // 20


def test_where_nothing_varies_nothing_is_slow() -> None:
    slow = SlowFeatures(n_components=3, n_random=5, random_state=0).fit(np.full((30, 3), 0.1))
    np.testing.assert_allclose(slow.eigenvalues_, 0, atol=1e-9)
    assert np.isfinite(slow.transform(np.full((2, 3), 0.1))).all()


def test_nearest_are_nearest() -> None:
    X = np.random.default_rng(0).random((300, 5)).astype(np.float32)
    distance = ((X[:, None] - X[None]) ** 2).sum(-1)
    np.fill_diagonal(distance, np.inf)
    expected = np.argsort(distance, 1)[:, :4]
    np.testing.assert_array_equal(nearest(X, 4, seed=0), expected)


@pytest.mark.parametrize(
    ("metric", "n_columns", "directions"),
    [
        ("cosine", 4, True),
        ("euclidean", 4, False),
        ("auto", 4, False),
        ("auto", 100, True),
        ("euclidean", 100, False),
    ],
)
def test_neighbors_by_distance_or_by_direction(metric: str, n_columns: int, directions: bool) -> None:
    """Against a loop over pairs; a row at the mean has no direction, and the same distance from all others."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, n_columns)) * rng.exponential(size=(60, 1))
    X[7] = 0
    distance = np.full((60, 60), np.inf)
    for i, x in enumerate(X):
        for j, z in enumerate(X):
            if i != j and directions:
                distance[i, j] = 1.0 if 7 in (i, j) else 2 - 2 * x @ z / np.sqrt((x @ x) * (z @ z))
            elif i != j:
                distance[i, j] = ((x - z) ** 2).sum()
    # As many as there are candidates: which of them share neighbors then changes only their order.
    found = neighbor_graph(X, 15, metric=metric, seed=0).neighbors
    for i in set(range(60)) - {7}:
        assert set(found[i].tolist()) == set(np.argsort(distance[i])[:15].tolist())


@pytest.mark.parametrize(
    "features",
    [
        partial(SlowFeatures, n_components=2, n_random=5, random_state=0),
        partial(ContrastiveFeatures, n_updates=5, random_state=0),
    ],
)
def test_walks_depend_on_the_metric(features: Any) -> None:
    """Euclidean by default for four columns; with cosine other features are learned."""
    X = np.random.default_rng(0).normal(size=(60, 4))
    places, default, directions = (
        features(**options).fit(X).transform(X)
        for options in ({"metric": "euclidean"}, {}, {"metric": "cosine"})
    )
    np.testing.assert_array_equal(places, default)
    assert abs(places - directions).max() > 0.01


@pytest.mark.slow
def test_many_rows_are_searched(monkeypatch: pytest.MonkeyPatch) -> None:
    X = np.random.default_rng(0).random((300, 5)).astype(np.float32)
    expected = nearest(X, 4, seed=0)
    monkeypatch.setattr("ebse.semi_supervised._knn_graph.FEW_ROWS", 0)
    monkeypatch.setattr("ebse.semi_supervised._knn_graph.MOST_WORK", 0)
    found = nearest(X, 4, seed=0)
    assert found.shape == (300, 4)
    assert not (found == np.arange(300)[:, None]).any()
    assert np.mean([len(set(a) & set(b)) for a, b in zip(found, expected, strict=True)]) > 3.8
    equal = nearest(np.zeros((50, 3), dtype=np.float32), 4, seed=0)
    assert equal.shape == (50, 4)


def test_shared_neighbors_come_first(monkeypatch: pytest.MonkeyPatch) -> None:
    """Against a loop over pairs of rows, in blocks."""
    X = np.random.default_rng(0).random((40, 3)).astype(np.float32)
    near = nearest(X, 6, seed=0)
    expected = [
        sorted(row.tolist(), key=lambda j: -len(set(row.tolist()) & set(near[j].tolist())))[:3]
        for row in near
    ]
    monkeypatch.setattr("ebse.semi_supervised._knn_graph.BLOCK", 7)
    np.testing.assert_array_equal(most_shared(near, 3), expected)


def test_random_walks_step_to_neighbors() -> None:
    ring = np.array([[(i + 1) % 10, (i + 1) % 10] for i in range(10)])
    rng = np.random.default_rng(0)
    np.testing.assert_array_equal(random_walk(ring, 3, np.array([0, 8]), rng=rng), [3, 1])


def test_random_walks_choose_neighbors_uniformly() -> None:
    """8,000 single steps among 4 neighbors: each is chosen 2,000 times, within a failure rate of 1e-6."""
    near = np.array([[1, 2, 3, 4]] * 5)
    ends = random_walk(near, 1, np.zeros(8_000, dtype=np.int64), rng=np.random.default_rng(0))
    counts = np.bincount(ends, minlength=5)[1:]
    assert stats.chisquare(counts).pvalue > 1e-6
    broken = random_walk(
        near[:, [0, 0, 1, 2]], 1, np.zeros(8_000, dtype=np.int64), rng=np.random.default_rng(0)
    )
    assert stats.chisquare(np.bincount(broken, minlength=5)[1:]).pvalue < 1e-6


def test_the_spectrum_is_drawn() -> None:
    X = np.random.default_rng(0).random((60, 8))
    figure = SlowFeatures(n_random=5, n_components=3, random_state=0).fit(X).plot_spectrum()
    assert np.shape(figure.axes[0].lines[0].get_xdata()) == (3,)


def test_functions_of_a_representation() -> None:
    """An ensemble's means in the dictionary change the functions, but not the walks."""
    X = (np.random.default_rng(0).random((60, 8)) < 0.5).astype(np.float32)
    rbse = RBSE(4, n_epochs=2, random_state=0).fit(X)
    options: dict[str, Any] = {"n_random": 5, "n_components": 3, "random_state": 0}
    plain, frozen = SlowFeatures(**options).fit(X), SlowFeatures(FrozenEstimator(rbse), **options).fit(X)
    assert frozen.representation_ is rbse
    assert (plain.eigenvalues_ != frozen.eigenvalues_).any()
    np.testing.assert_array_equal(plain._walk_ends(X, 0), frozen._walk_ends(X, 0))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_random": 0}, "n_random must be >= 1"),
        ({"n_components": 0}, "n_components must be >= 1"),
        ({"ridge": 0}, "ridge must be positive, got 0"),
        ({"metric": "taxi"}, "metric must be one of 'auto', 'cosine', 'euclidean', got 'taxi'"),
    ],
)
def test_bad_settings(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        SlowFeatures(**options).fit(states(20))


def test_a_word_is_no_representation() -> None:
    with pytest.raises(TypeError, match="representation must be an estimator with transform, got 'RBSE'"):
        SlowFeatures("RBSE").fit(states(20))


def test_the_neighbor_graph_is_announced() -> None:
    seen: list[Stage] = []
    with listening(seen.append):
        SlowFeatures(n_components=2, n_random=2).fit(np.random.default_rng(0).random((40, 3)))
    assert [at.name for at in seen if at.finished] == ["neighbor graph"]


def test_a_refused_fit_changes_nothing() -> None:
    X = np.random.default_rng(0).random((40, 3))
    slow = SlowFeatures(n_components=2, n_random=2, random_state=0).fit(X)
    before = slow.transform(X)
    with pytest.raises(ValueError, match=r"X must have entries below 1e\+20"):
        slow.fit(np.full((40, 2), 1e25))
    np.testing.assert_array_equal(slow.transform(X), before)
