"""Scaling to [0, 1] and binarization, against loops."""

import numpy as np
import pytest
import torch
from scipy import sparse

from ebse.preprocessing import UnitScaling, sample_binary, threshold
from monte_carlo import means_depart

X = np.array([[0.0, -2.0, 0.5, 7.0], [1.0, 6.0, 0.25, 7.0], [0.5, 2.0, np.nan, 7.0]], dtype=np.float32)


def test_only_features_that_leave_the_interval_are_scaled() -> None:
    found = UnitScaling.found_in(X)
    np.testing.assert_array_equal(found.scaled, [1, 3])
    np.testing.assert_array_equal(found.low, [0, -2, 0, 7])
    np.testing.assert_array_equal(found.width, [1, 8, 1, 1])
    v = found.apply(X)
    np.testing.assert_array_equal(v[:, 1], [0, 1, 0.5])
    np.testing.assert_array_equal(v[:, 3], 0)
    assert np.isnan(v[2, 2])
    np.testing.assert_array_equal(found.undo(v)[:, :2], X[:, :2])


def test_later_values_are_clipped() -> None:
    found = UnitScaling.found_in(X)
    assert found.apply(np.array([[2.0, 100.0, -1.0, 0.0]]))[0].tolist() == [1, 1, 0, 0]
    plain = UnitScaling.none(2)
    assert plain.apply(np.array([[2.0, -1.0]]))[0].tolist() == [1, 0]


def test_gray_images_are_divided_by_255() -> None:
    gray = np.array([[0.0, 3.0], [2.0, 0.0]], dtype=np.float32)
    np.testing.assert_allclose(UnitScaling.found_in(gray, image=True).apply(gray), gray / 255)
    binary = np.array([[0.0, 1.0]], dtype=np.float32)
    np.testing.assert_array_equal(UnitScaling.found_in(binary, image=True).apply(binary), binary)


@pytest.mark.parametrize("low", [0.0, -3.0])
def test_sparse_rows_are_scaled_alike(low: float) -> None:
    dense = np.array([[0.0, 4.0], [low, 0.0], [0.0, 2.0]], dtype=np.float32)
    found = UnitScaling.found_in(sparse.csr_array(dense))
    np.testing.assert_array_equal(found.low, UnitScaling.found_in(dense).low)
    v = found.apply(sparse.csr_array(dense))
    assert sparse.issparse(v) == (low == 0)
    np.testing.assert_allclose(v.toarray() if sparse.issparse(v) else v, found.apply(dense))


def test_thresholds() -> None:
    assert threshold([[0.5, 0.51], [0.0, 1.0]]).tolist() == [[0, 1], [0, 1]]
    assert threshold(np.array([[100, 200]], dtype=np.uint8)).tolist() == [[0, 1]]
    assert threshold([[0.2]], at=0.1).tolist() == [[1]]
    assert threshold(np.array([[0, 1]], dtype=np.uint8)).tolist() == [[0, 1]]
    assert threshold(torch.tensor([[100, 200]], dtype=torch.uint8)).tolist() == [[0, 1]]


def test_clipped_values_are_counted() -> None:
    found = UnitScaling.found_in(X)
    later = np.array([[0.0, 100.0, -1.0, 7.0], [1.0, 0.0, 0.0, 7.5]])
    assert found.clipped(later) == 2 / 8
    plain = UnitScaling.none(2)
    assert plain.clipped(sparse.csr_array(np.array([[0.0, 3.0], [0.5, 0.0]]))) == 1 / 4


@pytest.mark.parametrize("low", [0.0, -2.0, 3.0])
@pytest.mark.parametrize("duplicates", [False, True])
def test_clipped_values_of_sparse_rows_are_those_of_dense_rows(low: float, duplicates: bool) -> None:
    """Also where the range of a feature does not include 0, and where entries are stored in two parts."""
    rng = np.random.default_rng(0)
    train = low + 4 * rng.random((50, 6))
    later = sparse.csr_array(
        6 * rng.random((40, 6)) * (rng.random((40, 6)) < 0.4)
        - rng.random((40, 6)) * (rng.random((40, 6)) < 0.2)
    )
    if duplicates:
        coo = later.tocoo()
        order = np.argsort(np.repeat(coo.row, 2), kind="stable")
        indptr = np.searchsorted(np.repeat(coo.row, 2)[order], np.arange(41))
        later = sparse.csr_array(
            (np.repeat(coo.data / 2, 2)[order], np.repeat(coo.col, 2)[order], indptr), shape=coo.shape
        )
        assert not later.has_canonical_format
    for scaling in (UnitScaling.found_in(train), UnitScaling.none(6)):
        dense = scaling.clipped(later.toarray())
        assert 0 < dense < 1
        assert scaling.clipped(later) == dense
        applied = scaling.apply(later)
        applied = applied.toarray() if sparse.issparse(applied) else applied
        np.testing.assert_allclose(applied, scaling.apply(later.toarray()), atol=1e-6)
    # The twin: without the low end the count is another one.
    forgetful = UnitScaling(np.zeros(6), UnitScaling.found_in(train).width)
    if low:
        assert forgetful.clipped(later) != UnitScaling.found_in(train).clipped(later)


def test_sampled_units_have_their_probabilities() -> None:
    p = np.tile(np.array([0.0, 0.2, 0.7, 1.0], dtype=np.float32), (20_000, 1))
    drawn = torch.from_numpy(sample_binary(p, random_state=0)).double()
    expected = torch.from_numpy(p[0]).double()
    assert not means_depart(drawn[:, 1:3], expected[1:3])
    assert means_depart(drawn[:, 1:3], expected[1:3] + 0.05)
    assert drawn[:, 0].max() == 0
    assert drawn[:, 3].min() == 1


def test_values_that_are_not_probabilities_are_refused() -> None:
    with pytest.raises(
        ValueError, match=r"X must lie in \[0, 1\] to be used as probabilities, got values from 0 to 3"
    ):
        sample_binary([[0.0, 3.0]])


def test_rows_in_range_are_not_copied_and_others_are_clipped() -> None:
    fine = np.array([[0.0, 0.5, 1.0]], dtype=np.float32)
    assert UnitScaling.none(3).apply(fine) is fine
    beyond = np.array([[-5e-7, 0.5, 1 + 5e-7]], dtype=np.float32)
    assert UnitScaling.none(3).clipped(beyond) == 0
    found = UnitScaling.none(3).apply(beyond)
    assert (found.min(), found.max()) == (0, 1)
    assert beyond.max() > 1
