"""Baseline embeddings: the input, principal components, shifted images, and those of an ensemble."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol, final

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.decomposition import PCA

from ebse._validation import count

SHIFTS = ((0, 0), (-1, -1), (-1, 0), (-1, 1), (0, -1), (0, 1), (1, -1), (1, 0), (1, 1))
"""Down and right, in pixels: the image itself first."""

Array = NDArray[Any]


class FittedEnsemble(Protocol):
    """The methods of a fitted ensemble that ``baselines`` uses."""

    def transform(self, X: Any) -> Any:
        """One representation of each row (N, K)."""

    def sample_transform(self, X: Any, n_draws: int, **options: Any) -> Any:
        """n_draws representations of each row (N, n_draws, K)."""

    def dropped(self, keep_prob: float) -> "FittedEnsemble":
        """DropConnect: each effective connection is kept with this probability."""


def pixels(X: Any) -> Array:
    """The rows themselves, flat: (N, D)."""
    if hasattr(X, "toarray"):
        X = X.toarray()
    rows = np.asarray(X)
    return rows.reshape(len(rows), -1)


@final
@dataclass(frozen=True)
class Shifts:
    """Data augmentation: each image and its shifts by one pixel in 8 directions, (N, 9, height · width).

    Pixels that move in are 0. Predictions of a query are averaged over the same 9 shifts, so that training
    and queries have the same distribution.

    >>> shifted = Shifts((2, 2)).representations([[1.0, 0.0, 0.0, 0.0]])
    >>> shifted.shape, shifted[0, 5]  # one pixel to the right
    ((1, 9, 4), array([0., 1., 0., 0.]))
    """

    image_shape: int | tuple[int, int]
    """Height and width, or the side of a square."""

    def __post_init__(self) -> None:
        shape = self.image_shape
        sides = tuple(shape) if isinstance(shape, (tuple, list)) else (shape, shape)
        if len(sides) != 2:
            raise ValueError(
                f"image_shape must be a side or (height, width), got {shape!r}; pass two whole numbers"
            )
        for side in sides:
            count("image_shape", side)
        object.__setattr__(self, "image_shape", sides)

    def representations(self, X: ArrayLike) -> Array:
        """The 9 shifts of every row (N, height · width) of X."""
        rows, (height, width) = pixels(X), self._sides()
        if rows.shape[1] != height * width:
            raise ValueError(
                f"X must have {height} · {width} = {height * width} pixels per image, got {rows.shape[1]}; "
                "give image_shape the height and width of these images"
            )
        padded = np.pad(rows.reshape(-1, height, width), ((0, 0), (1, 1), (1, 1)))
        shifted = [
            padded[:, 1 - down : 1 - down + height, 1 - right : 1 - right + width] for down, right in SHIFTS
        ]
        return np.stack(shifted, 1).reshape(len(rows), len(SHIFTS), -1)

    def _sides(self) -> tuple[int, int]:
        assert isinstance(self.image_shape, tuple)
        return self.image_shape


@final
@dataclass(frozen=True)
class Draws:
    """Stochastic representations of an ensemble with fixed options and seed: (N, n_draws, K)."""

    ensemble: FittedEnsemble
    n_draws: int = 10
    random_state: int = 0
    options: Mapping[str, Any] = field(default_factory=dict)
    """Further arguments of ``sample_transform``."""

    def representations(self, X: Any) -> Any:
        """``ensemble.sample_transform(X, n_draws, random_state=…, **options)``."""
        return self.ensemble.sample_transform(X, self.n_draws, random_state=self.random_state, **self.options)


def baselines(
    X_unlabeled: Any,
    *,
    image_shape: int | tuple[int, int] | None = None,
    ensemble: FittedEnsemble | None = None,
    n_components: int = 20,
    n_draws: int = 10,
    n_sweeps: int = 50,
    random_state: int = 0,
) -> dict[str, Any]:
    """Baseline embeddings by name for ``few_shot``: "pixels", "PCA", "shifts", and four of an ensemble.

    Parameters
    ----------
    X_unlabeled : array-like of shape (N, D)
        Rows that the principal components are fitted to.
    image_shape : int or (height, width), default=None
        Size of the images in the rows; adds "shifts".
    ensemble : RBSE, default=None
        A fitted :class:`ebse.RBSE`; adds "RBM" (the mean representation, that of the effective RBM),
        "DropConnect" (half of the effective connections dropped, independently of the row), "RBSE, posterior"
        (models sampled given the row, as in the paper) and "RBSE, chain" (models with strong noise, sampled
        after a Gibbs chain that starts at the row).
    n_components : int, default=20
        Principal components; fewer if rows or features are fewer.
    n_draws : int, default=10
        Representations per row.
    n_sweeps : int, default=50
        Gibbs sweeps of "RBSE, chain".
    random_state : int, default=0
        Seed of the draws and of the randomized solver that PCA may use.

    Examples
    --------
    >>> sorted(baselines(np.eye(9), image_shape=3))
    ['PCA', 'pixels', 'shifts']
    """
    count("n_components", n_components)
    shape = np.shape(X_unlabeled)
    if len(shape) != 2:
        raise ValueError(
            f"X_unlabeled must have shape (N, D), got {shape}; "
            "pass a matrix of rows (images: X.reshape(len(X), -1))"
        )
    n_components = min(n_components, *shape)
    found: dict[str, Any] = {
        "pixels": pixels,
        "PCA": PCA(n_components, random_state=random_state).fit(X_unlabeled),
    }
    if image_shape is not None:
        found["shifts"] = Shifts(image_shape)
    if ensemble is not None:

        def draws(drawn_from: FittedEnsemble, **options: Any) -> Draws:
            return Draws(drawn_from, n_draws, random_state, options)

        found["RBM"] = ensemble
        found["DropConnect"] = draws(ensemble.dropped(0.5), source="prior")
        found["RBSE, posterior"] = draws(ensemble)
        strong = {"sigma": 0.5} if hasattr(ensemble, "sigma_") else {"keep_prob": 0.01}
        found["RBSE, chain"] = draws(ensemble, n_sweeps=n_sweeps, **strong)
    return found
