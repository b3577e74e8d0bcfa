"""Principal components of rows: what an encoder learns from."""

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ebse.semi_supervised._standardize import Standardizer, row_blocks, standardizer_of

Array = npt.NDArray[Any]

N_COMPONENTS = 128
"""Principal components at most: distances between images hardly change, and products take a sixth."""


class Components(NamedTuple):
    """y = (x − mean) U / scale · √(D / r): leading principal components of standardized rows."""

    standardizer: Standardizer
    axes: npt.NDArray[np.float32]
    """U √(D / r) (D, r), so that components have a mean variance of about 1."""

    def __call__(self, X: Array) -> npt.NDArray[np.float32]:
        """Components (N, r) of rows X (N, D)."""
        return np.concatenate([self.standardizer(X[b]) @ self.axes for b in row_blocks(len(X))])


def principal_components(X: Array) -> Components:
    """The leading principal components of the rows X (N, D), in blocks: no copy of the rows is made."""
    standardizer = standardizer_of(X)
    D = X.shape[1]
    covariance = np.zeros((D, D))
    for b in row_blocks(len(X)):
        Z = standardizer(X[b])
        covariance += Z.T @ Z
    _, vectors = np.linalg.eigh(covariance)
    r = min(N_COMPONENTS, D)
    axes = vectors[:, ::-1][:, :r]
    # The sign of an eigenvector is arbitrary, and differs between builds of LAPACK.
    axes = axes * np.where(axes[abs(axes).argmax(0), np.arange(r)] < 0, -1, 1)
    return Components(standardizer, np.ascontiguousarray(axes * np.sqrt(D / r), dtype=np.float32))
