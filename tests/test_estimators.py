"""Input validation that the estimators share: dates, masked arrays, large entries, mixed scales."""

import datetime
import warnings
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse

from ebse._estimators import as_rows, require_moderate, scale_of, warn_of_scale

DAYS = np.array([["2024-01-01"], ["2024-01-02"]], dtype="datetime64[D]")


@pytest.mark.parametrize(
    ("X", "where"),
    [
        (DAYS, "dates or durations;"),
        (DAYS - DAYS[0], "dates or durations;"),
        (DAYS.astype(object), "dates or durations;"),
        (pd.DataFrame({"a": [1, 2], "day": DAYS[:, 0]}), "in column 'day'"),
        (pd.DataFrame({"day": pd.to_datetime(DAYS[:, 0]).tz_localize("UTC")}), "in column 'day'"),
        (pd.DataFrame({"day": [datetime.date(2024, 1, 1), 3]}), "in column 'day'"),
        (pl.DataFrame({"a": [1, 2], "day": DAYS[:, 0]}), "in column 'day'"),
    ],
)
def test_dates_are_refused(X: Any, where: str) -> None:
    with pytest.raises(TypeError, match=rf"X_unlabeled must hold numbers, got .*{where}.* days since"):
        as_rows(X, "X_unlabeled")


def test_masked_arrays_are_refused() -> None:
    with pytest.raises(TypeError, match=r"X must not be a masked array.*X\.filled"):
        as_rows(np.ma.array([[1.0, 2.0]], mask=[[True, False]]))


@pytest.mark.parametrize(
    "X", [np.ones((2, 2)), pd.DataFrame({"a": [1, 2]}), [[1, 2]], pl.DataFrame({"a": [1]})]
)
def test_plain_rows_are_left_as_they_are(X: Any) -> None:
    assert as_rows(X) is X


@pytest.mark.parametrize("value", [1e20, -3e25, np.float64(1e300)])
@pytest.mark.parametrize("form", [np.asarray, sparse.csr_matrix])
def test_large_entries_are_named(value: float, form: Any) -> None:
    X = np.eye(4)
    X[2, 1] = value
    with pytest.raises(ValueError, match=r"X must have entries below 1e\+20 .* in row 2, column 1"):
        require_moderate(form(X))
    X[2, 1] = value / abs(value) * 9e19
    require_moderate(form(X))


IMAGES = np.random.default_rng(0).integers(0, 256, size=(20, 30))


def test_scales() -> None:
    assert scale_of(IMAGES.astype(np.uint8)) == scale_of(IMAGES.astype(float)) == "8-bit"
    assert scale_of(IMAGES / 255 * 255) == "8-bit"
    assert scale_of(IMAGES / 255) == scale_of((IMAGES / 255).astype(np.float32)) == "unit"
    assert scale_of(sparse.csr_matrix(IMAGES)) == "8-bit"
    assert scale_of(sparse.csr_matrix(IMAGES / 255)) == "unit"


@pytest.mark.parametrize(
    "table",
    [
        IMAGES - 1.0,
        IMAGES + 0.5,
        IMAGES * 2,
        IMAGES % 17,
        IMAGES % 2,
        np.random.default_rng(0).normal(size=(20, 3)),
        np.zeros((3, 2)),
        np.zeros((0, 2)),
    ],
)
def test_ordinary_tables_have_no_scale(table: Any) -> None:
    """They never warn, whatever they are compared with."""
    assert scale_of(table) == ""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for fitted in ("8-bit", "unit", ""):
            warn_of_scale(fitted, table)


def test_mixed_scales_warn() -> None:
    with pytest.warns(
        UserWarning, match="X has entries from 0 to 255, but the rows of fit .* divide it by 255"
    ):
        warn_of_scale("unit", IMAGES)
    with pytest.warns(UserWarning, match="X_unlabeled has entries from 0 to 1, but X .* multiply it by 255"):
        warn_of_scale("8-bit", IMAGES / 255, "X_unlabeled", "X")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warn_of_scale("8-bit", IMAGES)
        warn_of_scale("unit", IMAGES / 255)
