"""Principal components: against the singular value decomposition, in blocks, of many and few columns."""

from typing import Any

import numpy as np
import pytest

from ebse.semi_supervised import _components
from ebse.semi_supervised._components import principal_components


def rows(n: int = 60, D: int = 5) -> Any:
    rng = np.random.default_rng(0)
    return 3 + rng.normal(size=(n, D)) * np.arange(1, D + 1)


def test_components_are_those_of_the_singular_value_decomposition(monkeypatch: pytest.MonkeyPatch) -> None:
    """Up to signs, of rows with mean 0 and mean variance 1; D / r keeps the mean variance of components."""
    monkeypatch.setattr(_components, "N_COMPONENTS", 3)
    X = rows()
    Z = X - X.mean(0)
    Z /= np.sqrt((Z**2).mean())
    _, _, V = np.linalg.svd(Z)
    found = principal_components(X)(X)
    assert found.shape == (60, 3)
    assert found.dtype == np.float32
    for j in range(3):
        expected = Z @ V[j] * np.sqrt(5 / 3)
        sign = np.sign(found[:, j] @ expected)
        np.testing.assert_allclose(sign * found[:, j], expected, atol=1e-4)


def test_all_components_keep_distances() -> None:
    X = rows()
    components = principal_components(X)
    Z, Y = components.standardizer(X), components(X)
    assert Y.shape == X.shape
    np.testing.assert_allclose(
        np.linalg.norm(Y[:, None] - Y, axis=2), np.linalg.norm(Z[:, None] - Z, axis=2), atol=1e-4
    )


def test_signs_do_not_depend_on_the_library() -> None:
    """The largest weight of every axis is positive."""
    axes = principal_components(rows()).axes
    assert (axes[abs(axes).argmax(0), np.arange(5)] > 0).all()


def test_blocks_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    X = rows()
    whole = principal_components(X)(X)
    monkeypatch.setattr("ebse.semi_supervised._standardize.BLOCK", 7)
    np.testing.assert_allclose(principal_components(X)(X), whole, atol=1e-4)


@pytest.mark.parametrize(
    ("X", "rank"),
    [(np.full((4, 3), 7.0), 1), (np.ones((2, 1)), 1), (np.eye(3, 400), 2), (np.eye(40, 60), 39)],
)
def test_components_of_rounding_are_left_out(X: Any, rank: int) -> None:
    """Equal rows, one column, more columns than rows: new rows must not enter through arbitrary directions."""
    assert principal_components(X)(X).shape == (len(X), rank)


def test_many_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    """Subspace iteration finds the components that all products of columns give."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(90, 6)) * [9, 6, 4, 2.5, 1.5, 1] @ rng.normal(size=(6, 40)) + 0.01 * rng.normal(
        size=(90, 40)
    )
    monkeypatch.setattr(_components, "N_COMPONENTS", 4)
    expected = principal_components(X)(X)
    monkeypatch.setattr(_components, "MANY_COLUMNS", 10)
    np.testing.assert_allclose(principal_components(X)(X), expected, atol=1e-3)
    # Without iterations the directions are random.
    monkeypatch.setattr(_components, "N_ITERATIONS", 1)
    monkeypatch.setattr(_components, "_products", lambda _, __, basis: basis)
    assert abs(principal_components(X)(X) - expected).max() > 0.1
