"""Rows of any type, and features on any scale."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
import torch
from scipy import sparse
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator

from ebse import RBSE
from ebse.ensemble import RBSEClassifier
from ensemble.rows import D, K, rows

X, Y = rows()


@pytest.mark.parametrize(
    "held",
    [
        lambda X: X.astype(np.float64),
        lambda X: X.astype(bool),
        lambda X: X.astype(np.uint8),
        lambda X: X.tolist(),
        sparse.csr_matrix,
        sparse.csr_array,
        torch.from_numpy,
        lambda X: torch.from_numpy(X).to(torch.uint8),
        lambda X: torch.from_numpy(X).half(),
        lambda X: pd.DataFrame(X, columns=[f"f{i}" for i in range(D)]),
        lambda X: pl.DataFrame(X, schema=[f"f{i}" for i in range(D)]),
    ],
)
def test_rows_of_any_type(held: Any) -> None:
    rbse = RBSE(K, n_epochs=2, random_state=0)
    np.testing.assert_array_equal(
        clone(rbse).fit(held(X)).transform(held(X)), clone(rbse).fit(X).transform(X)
    )


def test_read_only_and_mapped_rows(tmp_path: Path) -> None:
    np.save(tmp_path / "rows.npy", X)
    mapped = np.load(tmp_path / "rows.npy", mmap_mode="r")
    rbse = RBSE(K, n_epochs=2, random_state=0)
    np.testing.assert_array_equal(clone(rbse).fit(mapped).transform(mapped), clone(rbse).fit(X).transform(X))


def test_features_are_scaled_and_later_ones_clipped() -> None:
    wide = X.astype(np.float64)
    wide[:, 2] = wide[:, 2] * 10 - 3
    rbse = RBSE(K, n_epochs=2, random_state=0).fit(wide)
    np.testing.assert_allclose(rbse.transform(wide), clone(rbse).fit(X).transform(X), rtol=1e-5)
    assert (rbse.feature_low_[2], rbse.feature_width_[2]) == (-3, 10)
    assert (np.delete(rbse.feature_low_, 2) == 0).all()
    wide[0, 2] = 100
    high = wide.copy()
    high[0, 2] = 7
    np.testing.assert_array_equal(rbse.transform(wide), rbse.transform(high))
    assert set(np.unique(rbse.sample(50)[:, 2])) <= {-3.0, 7.0}
    with pytest.raises(
        ValueError, match=r"X must lie in \[0, 1\] with scaling='error', got 1 features.*'auto'"
    ):
        RBSE(K, scaling="error").fit(high)


def test_bytes_are_images() -> None:
    rbse = RBSE(K, n_epochs=2, random_state=0)
    bytes_ = (X * 200).astype(np.uint8)
    np.testing.assert_allclose(
        clone(rbse).fit(bytes_).transform(bytes_),
        clone(rbse).fit(X * np.float32(200 / 255)).transform(X * np.float32(200 / 255)),
        rtol=1e-5,
    )
    few = RBSEClassifier(clone(rbse), n_sweeps=0).fit(bytes_, Y)
    assert (few.representation_.feature_width_ == 255).all()
    square = bytes_.reshape(-1, 3, 4)
    np.testing.assert_array_equal(
        clone(rbse).fit(square).transform(square), clone(rbse).fit(bytes_).transform(bytes_)
    )


def test_large_numbers_keep_their_differences() -> None:
    """Seconds since 1970, with a range of 100: single precision would round them to 128."""
    times = X.astype(np.float64)
    times[:, 0] = 1.7e9 + 77 + 100 * times[:, 0]
    rbse = RBSE(K, n_epochs=2, random_state=0).fit(times)
    np.testing.assert_allclose(rbse.transform(times), clone(rbse).fit(X).transform(X), rtol=1e-5)
    assert set(rbse.sample(40)[:, 0]) <= {1.7e9 + 77, 1.7e9 + 177}


def test_draws_do_not_depend_on_the_type_of_scaled_rows() -> None:
    rng = np.random.default_rng(0)
    wide = np.abs(rng.normal(size=(40, D)) * 7) * (rng.random((40, D)) < 0.6)
    rbse = RBSE(K, n_epochs=2, random_state=0).fit(wide)
    whole = rbse.sample_transform(wide, 3)
    for other in (sparse.csr_array(wide), wide.astype(np.float32)):
        np.testing.assert_allclose(rbse.sample_transform(other, 3), whole, atol=1e-5)


def test_frames_keep_their_names() -> None:
    """No warning about names, which would be an error here."""
    frame = pd.DataFrame(X, columns=list("abcdefghijkl"))
    rbse = RBSE(K, n_epochs=2, random_state=0).fit(frame)
    few = RBSEClassifier(FrozenEstimator(rbse), n_sweeps=1, random_state=0).fit(frame[:10], Y[:10])
    assert few.predict(frame).shape == (60,)
    assert few.uncertainty(frame).entropy.shape == (60,)
    assert rbse.dropped().transform(frame).shape == (60, K)
    own = RBSEClassifier(RBSE(K, n_epochs=2), n_sweeps=1).fit(frame[:10], Y[:10], X_unlabeled=frame)
    assert list(own.representation_.feature_names_in_) == list("abcdefghijkl")
