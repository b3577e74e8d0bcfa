"""Baseline embeddings."""

from typing import Any

import numpy as np
import pytest
from scipy import sparse
from sklearn.decomposition import PCA

from ebse.evaluation import Shifts, baselines, few_shot, pixels
from evaluation.shots import SMALL, X, Y

IMAGES = np.arange(1.0, 25.0).reshape(2, 3, 4)


def shifted(image: Any, down: int, right: int) -> Any:
    """One image, pixel by pixel."""
    height, width = image.shape
    moved = np.zeros_like(image)
    for i in range(height):
        for j in range(width):
            if 0 <= i + down < height and 0 <= j + right < width:
                moved[i + down, j + right] = image[i, j]
    return moved.ravel()


def departs(found: Any, *, sign: int = 1) -> bool:
    """Whether the shifts are not the image and then its 8 neighbors, row by row."""
    steps = [(0, 0)] + [(i, j) for i in (-1, 0, 1) for j in (-1, 0, 1) if (i, j) != (0, 0)]
    return any(
        not np.array_equal(found[n, s], shifted(IMAGES[n], sign * i, sign * j))
        for n in range(2)
        for s, (i, j) in enumerate(steps)
    )


def test_shifts_are_those_of_a_loop() -> None:
    for rows in (IMAGES.reshape(2, 12), IMAGES):
        found = Shifts((3, 4)).representations(rows)
        assert found.shape == (2, 9, 12)
        assert not departs(found)


def test_shifts_in_the_other_direction_are_detected() -> None:
    """The twin: up for down, left for right."""
    assert departs(Shifts((3, 4)).representations(IMAGES), sign=-1)


def test_a_side_is_a_square() -> None:
    np.testing.assert_array_equal(
        Shifts(3).representations(np.eye(9)), Shifts((3, 3)).representations(np.eye(9))
    )


def test_pixels_are_flat_and_dense() -> None:
    np.testing.assert_array_equal(pixels(IMAGES), IMAGES.reshape(2, 12))
    np.testing.assert_array_equal(pixels(sparse.csr_matrix(np.eye(3))), np.eye(3))


class Ensemble:
    """A fitted ensemble that records its calls."""

    def __init__(self) -> None:
        self.calls: list[dict[str, Any]] = []

    def transform(self, X: Any) -> Any:
        return 2 * X

    def sample_transform(self, X: Any, n_draws: int, **options: Any) -> Any:
        self.calls.append({"n_draws": n_draws, **options})
        return np.repeat(X[:, None], n_draws, 1)

    def dropped(self, keep_prob: float) -> "Ensemble":
        self.calls.append({"dropped": keep_prob})
        return self


def test_baselines_by_name() -> None:
    assert list(baselines(X)) == ["pixels", "PCA"]
    found = baselines(X, image_shape=(2, 3), ensemble=Ensemble())
    names = ["pixels", "PCA", "shifts", "RBM", "DropConnect", "RBSE, posterior", "RBSE, chain"]
    assert list(found) == names
    rows = few_shot(found, X, Y, **SMALL).rows
    assert list(rows.method.unique()) == names


def test_an_ensemble_has_four_representations() -> None:
    ensemble = Ensemble()
    found = baselines(X, ensemble=ensemble, n_sweeps=7, random_state=3)
    np.testing.assert_array_equal(found["RBM"].transform(X), 2 * X)
    for name in ("DropConnect", "RBSE, posterior", "RBSE, chain"):
        assert found[name].representations(X).shape == (60, 10, 6)
    assert ensemble.calls == [
        {"dropped": 0.5},
        {"n_draws": 10, "random_state": 3, "source": "prior"},
        {"n_draws": 10, "random_state": 3},
        {"n_draws": 10, "random_state": 3, "n_sweeps": 7, "keep_prob": 0.01},
    ]


def test_principal_components_are_fitted_on_what_is_given() -> None:
    found = baselines(X[:30], n_components=2)["PCA"]
    expected = PCA(2).fit(X[:30]).transform(X)
    np.testing.assert_allclose(found.transform(X), expected)
    assert baselines(X)["PCA"].n_components_ == 6


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: Shifts((3, 3, 1)),  # type: ignore[arg-type]
            r"image_shape must be a side or \(height, width\), got \(3, 3, 1\); pass two",
        ),
        (lambda: Shifts(0), "image_shape must be >= 1, got 0"),
        (
            lambda: Shifts(3).representations(IMAGES),
            "X must have 3 · 3 = 9 pixels per image, got 12; give image_shape",
        ),
        (lambda: baselines(X, n_components=0), "n_components must be >= 1, got 0"),
        (
            lambda: baselines(X.tolist()[0]),
            r"X_unlabeled must have shape \(N, D\), got \(6,\); pass a matrix",
        ),
    ],
)
def test_errors(call: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call()
