"""Principal components of rows: what an encoder learns from."""

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ebse.semi_supervised._standardize import Standardizer, row_blocks, standardizer_of

Array = npt.NDArray[Any]

N_COMPONENTS = 128
"""Principal components at most: they hold 94 % of the variance of MNIST, and products take a sixth."""
SMALLEST = 1e-6
"""Variance of a component, relative to the first, below which it is rounding."""
N_ITERATIONS = 5
"""Of the subspace, from random directions."""
MANY_COLUMNS = 2_000
"""Columns from which on components are found by random projections, not from all products of columns."""


class Components(NamedTuple):
    """y = (x − mean) U / scale · √(D / r): leading principal components of standardized rows."""

    standardizer: Standardizer
    axes: npt.NDArray[np.float32]
    """U √(D / r) (D, r)."""

    def __call__(self, X: Array) -> npt.NDArray[np.float32]:
        """Components (N, r) of rows X (N, D)."""
        return np.concatenate([self.standardizer(X[b]) @ self.axes for b in row_blocks(len(X))])


def principal_components(X: Array) -> Components:
    """The leading principal components of the rows X (N, D), in blocks: no copy of the rows is made."""
    standardizer = standardizer_of(X)
    D = X.shape[1]
    values, vectors = _eigenvectors(standardizer, X) if D < MANY_COLUMNS else _projected(standardizer, X)
    r = max(int((values[:N_COMPONENTS] > SMALLEST * values[0]).sum()), 1)
    axes = vectors[:, :r]
    # The sign of an eigenvector is arbitrary, and differs between builds of LAPACK.
    axes = axes * np.where(axes[abs(axes).argmax(0), np.arange(r)] < 0, -1, 1)
    return Components(standardizer, np.ascontiguousarray(axes * np.sqrt(D / r), dtype=np.float32))


def _eigenvectors(standardizer: Standardizer, X: Array) -> tuple[Array, Array]:
    """Eigenvalues and eigenvectors of the products of columns, largest first."""
    products = np.zeros((X.shape[1], X.shape[1]))
    for b in row_blocks(len(X)):
        Z = standardizer(X[b])
        products += Z.T @ Z
    values, vectors = np.linalg.eigh(products)
    return values[::-1], vectors[:, ::-1]


def _projected(standardizer: Standardizer, X: Array) -> tuple[Array, Array]:
    """The leading ones of a table of many columns, by subspace iteration from random directions.

    References
    ----------
    N. Halko, P.-G. Martinsson and J. A. Tropp, "Finding structure with randomness", 2011.
    """
    n = min(2 * N_COMPONENTS, X.shape[1])
    basis = np.random.default_rng(0).normal(size=(X.shape[1], n))
    for _ in range(N_ITERATIONS):
        basis, _ = np.linalg.qr(_products(standardizer, X, basis))
    values, rotation = np.linalg.eigh(basis.T @ _products(standardizer, X, basis))
    return values[::-1], (basis @ rotation)[:, ::-1]


def _products(standardizer: Standardizer, X: Array, basis: Array) -> Array:
    """Zᵀ Z basis (D, n), Z the standardized rows."""
    found = np.zeros_like(basis)
    for b in row_blocks(len(X)):
        Z = standardizer(X[b])
        found += Z.T @ (Z @ basis)
    return found
