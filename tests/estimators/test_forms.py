"""Rows in any form, and features on any scale."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
import torch
from scipy import sparse
from sklearn.base import clone

from ebse import RBSE
from estimators.rows import D, K, rows

X, _ = rows()


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
def test_rows_in_any_form(held: Any) -> None:
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
