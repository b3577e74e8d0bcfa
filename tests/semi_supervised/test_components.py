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


@pytest.mark.parametrize("X", [np.full((4, 3), 7.0), np.ones((2, 1)), np.eye(3, 400)])
def test_rows_that_hardly_vary(X: Any) -> None:
    """Equal rows, one column, more columns than rows and than components."""
    found = principal_components(X)(X)
    assert found.shape == (len(X), min(X.shape[1], _components.N_COMPONENTS))
    assert np.isfinite(found).all()
