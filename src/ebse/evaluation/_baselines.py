"""Embeddings to compare with: the input, principal components, shifted images, and an ensemble's own."""

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
    """What ``baselines`` asks of a fitted ensemble."""

    def transform(self, X: Any) -> Any:
        """One representation of each row (N, K)."""

    def sample_transform(self, X: Any, n_draws: int, **options: Any) -> Any:
        """n_draws representations of each row (N, n_draws, K)."""

    def dropped(self, presence: float) -> "FittedEnsemble":
        """DropConnect: effective connections that are there with this probability."""


def pixels(X: Any) -> Array:
    """The rows themselves, flat: (N, D)."""
    if hasattr(X, "toarray"):
        X = X.toarray()
    rows = np.asarray(X)
    return rows.reshape(len(rows), -1)


@final
@dataclass(frozen=True)
class Shifts:
    """Each image and its shifts by one pixel in the 8 directions, zeros moving in: (N, 9, height · width).

    The simplest noise that keeps what an image shows. Queries are averaged over the same 9 shifts, so that
    training and queries see the same kind of rows.

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
    """Draws of an ensemble with fixed options, always from the same seed: (N, n_draws, K)."""

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
    """Embeddings by name for ``few_shot``: "pixels", "PCA", "shifts" of images, and four of an ensemble.

    Parameters
    ----------
    X_unlabeled
        Rows (N, D) that the principal components are fitted on.
    image_shape
        Height and width of the images in the rows; adds "shifts".
    ensemble
        A fitted :class:`ebse.RBSE`; adds "RBM" (its mean representation, that of its effective RBM),
        "DropConnect" (half of the effective connections dropped, whatever the example), "RBSE, clamped"
        (models drawn given the example, as in the paper) and "RBSE, walked" (models of strong
        noise met on a walk from it).
    n_components
        Principal components; fewer if the rows or features are fewer.
    n_draws, n_sweeps
        Representations per example, and the length of a walk.
    random_state
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
            "pass one row per example (images: X.reshape(len(X), -1))"
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
        found["RBSE, clamped"] = draws(ensemble)
        # A number is a standard deviation to a Gaussian law, and a presence to any other.
        strong = 0.5 if hasattr(ensemble, "scale_") else 0.01
        found["RBSE, walked"] = draws(ensemble, n_sweeps=n_sweeps, noise=strong)
    return found
