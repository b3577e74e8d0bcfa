"""Error messages."""

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import sparse
from sklearn.exceptions import NotFittedError

from ebse import RBSE
from ebse.laws import Laplace
from ensemble.rows import K, fitted, rows

X, _ = rows()

ERRORS: list[tuple[dict[str, Any], type[Exception], str]] = [
    ({"law": "cauchy"}, ValueError, r"law must be one of 'bernoulli', 'gaussian', 'point'.*got 'cauchy'"),
    ({"bias_law": 3}, ValueError, r"bias_law must be one of .*got 3"),
    ({"law": "point", "keep_prob": 0.5}, ValueError, r"keep_prob must be None for the law Point, got 0.5"),
    ({"keep_prob": 1.5}, ValueError, r"keep_prob must be a probability in \(0, 1\) .*got 1.5"),
    ({"visible": "gray"}, ValueError, r"visible must be one of 'binary', 'real', got 'gray'"),
    ({"algorithm": "adam"}, ValueError, r"algorithm must be one of 'pcd', 'cd', 'algorithm1', got 'adam'"),
    ({"n_epochs": "many"}, ValueError, r"n_epochs must be 'auto' or a whole number, got 'many'"),
    ({"n_epochs": -1}, ValueError, r"n_epochs must be >= 0, got -1"),
    ({"law": "gaussian", "sigma": -1.0}, ValueError, r"sigma must be a standard deviation >= 0 .*got -1"),
    ({"law": Laplace, "sigma": 0.5}, ValueError, r"sigma must be None for the law Laplace, got 0.5"),
    ({"n_components": 0}, ValueError, r"n_components must be >= 1, got 0"),
    ({"batch_size": 0}, ValueError, r"batch_size must be >= 1, got 0"),
    ({"scaling": "max"}, ValueError, r"scaling must be one of 'auto', 'error', got 'max'"),
    ({"learning_rate": -1.0}, ValueError, r"learning_rate must lie in"),
    ({"n_gibbs_steps": 0}, ValueError, r"n_gibbs_steps must be >= 1"),
]


@pytest.mark.parametrize(("parameters", "kind", "message"), ERRORS)
def test_errors_of_fit(parameters: dict[str, Any], kind: type[Exception], message: str) -> None:
    with pytest.raises(kind, match=message):
        RBSE(**({"n_components": K} | parameters)).fit(X)


CALLS: list[tuple[str, dict[str, Any], str]] = [
    ("sample_transform", {"source": "law"}, r"source must be one of .*got 'law'"),
    ("sample_transform", {"read": "output"}, r"read must be one of .*got 'output'"),
    ("sample_transform", {"n_draws": 0}, r"n_draws must be >= 1, got 0"),
    ("sample_transform", {"n_sweeps": -1}, r"n_sweeps must be >= 0, got -1"),
    (
        "sample_transform",
        {"source": "prior", "n_sweeps": 2},
        r"n_sweeps must be 0 where source is 'prior', got 2",
    ),
    ("impute", {"method": "median"}, r"method must be one of 'mean', 'draw', got 'median'"),
]


@pytest.mark.parametrize(("method", "options", "message"), CALLS)
def test_errors_of_calls(method: str, options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        getattr(fitted(), method)(X, **options)


def test_errors_of_conversion(tmp_path: Path) -> None:
    with pytest.raises(TypeError, match=r"rbm must be a fitted BernoulliRBM or three arrays.*got str"):
        RBSE.from_rbm("rbm")
    with pytest.raises(ValueError, match=r"preserve must be one of 'distribution', 'weights', got 'both'"):
        RBSE.from_rbm((np.zeros((2, 2)), np.zeros(2), np.zeros(2)), preserve="both")
    with pytest.raises(ValueError, match=r"law must be 'bernoulli', 'gaussian' or 'point' for a conversion"):
        RBSE.from_rbm((np.zeros((2, 2)), np.zeros(2), np.zeros(2)), law=Laplace)
    with pytest.raises(FileNotFoundError, match="does not exist"):
        RBSE.load(tmp_path / "nothing.safetensors")
    (tmp_path / "foreign").write_bytes(pickle.dumps({"W": 1}))
    with pytest.raises(ValueError, match="must be a file written by ebse"):
        RBSE.load(tmp_path / "foreign")


def test_parameters_that_a_trained_rbm_decides_are_refused() -> None:
    rbm = np.zeros((2, 2)), np.zeros(2), np.zeros(2)
    with pytest.raises(TypeError, match=r"n_components must not be given, got 3; leave it out, it is that"):
        RBSE.from_rbm(rbm, n_components=3)
    with pytest.raises(ValueError, match=r"visible must be 'binary' for a trained RBM, got 'real'"):
        RBSE.from_rbm(rbm, visible="real")


@pytest.mark.parametrize(("name", "value"), [("algorithm", "cd"), ("momentum", 0.5), ("weight_decay", 1e-3)])
def test_real_units_refuse_parameters_that_they_do_not_use(name: str, value: Any) -> None:
    with pytest.raises(ValueError, match=rf"{name} must be left at .* where visible is 'real', got"):
        RBSE(2, visible="real", law="gaussian", n_epochs=1).set_params(**{name: value}).fit(X[:, :3])


def test_missing_values_name_impute() -> None:
    holes = X.copy()
    holes[0, 0] = np.nan
    for call in (RBSE(K).fit, fitted().transform):
        with pytest.raises(ValueError, match=r"Input X contains NaN; fill missing entries.*RBSE.impute"):
            call(holes)


def test_values_on_another_scale_warn() -> None:
    with pytest.warns(UserWarning, match=r"of the values of X are outside the range.*same scale"):
        fitted().transform(16 * X)
    strict = RBSE(K, scaling="error", n_epochs=1).fit(X)
    for call in (strict.transform, strict.partial_fit):
        with pytest.raises(
            ValueError, match=r"X must lie in \[0, 1\] with scaling='error', got .*% of values"
        ):
            call(16 * X)


@pytest.mark.parametrize("low", [0.0, -5.0])
def test_sparse_and_dense_rows_warn_alike(low: float) -> None:
    rows_ = low + 10 * X
    rbse = RBSE(K, n_epochs=1).fit(rows_)
    inside, outside = np.clip(3 * X, low, low + 10), 100 * (X - 0.5)
    for convert in (np.asarray, sparse.csr_array):
        assert rbse.transform(convert(inside)).shape == (len(X), K)
        with pytest.warns(UserWarning, match=r"100% of the values of X are outside the range"):
            rbse.transform(convert(outside))


def test_8_bit_rows_and_rows_in_the_unit_interval_are_not_mixed() -> None:
    gray = np.random.default_rng(0).random((60, 12))
    bytes_ = np.round(255 * gray).astype(np.uint8)
    eight_bit, unit = (RBSE(K, n_epochs=1).fit(rows_) for rows_ in (bytes_, gray))
    with pytest.warns(UserWarning, match="X has entries from 0 to 1, but the rows of fit are from 0 to 255"):
        eight_bit.transform(gray)
    with pytest.warns(UserWarning, match="X has entries from 0 to 255, but the rows of fit are from 0 to 1"):
        unit.partial_fit(bytes_ * (X > 0))
    assert eight_bit.transform(bytes_).shape == unit.transform(gray).shape == (60, K)


def test_rows_that_cannot_be_used_are_refused() -> None:
    large = X.astype(np.float64)
    large[2, 1] = -3e20
    for rows_ in (large, sparse.csr_array(large)):
        with pytest.raises(ValueError, match=r"entries below 1e\+20 .*got -3e\+20 in row 2, column 1"):
            RBSE(K).fit(rows_)
    large[0, 0] = np.nan
    with pytest.raises(ValueError, match=r"entries below 1e\+20"):
        fitted().impute(large)
    for rows_, message in (
        (np.ma.masked_array(X, X > 2), "must not be a masked array"),
        (X.astype("datetime64[s]"), "must hold numbers, got dates or durations"),
    ):
        with pytest.raises(TypeError, match=message):
            RBSE(K).fit(rows_)


def test_unfitted_estimators_raise_not_fitted_error() -> None:
    for name in ("components_", "keep_prob_", "effective_components_", "intercept_hidden_"):
        with pytest.raises(NotFittedError, match="not fitted yet"):
            getattr(RBSE(), name)
    for call in (RBSE().plot_components, RBSE().dropped, lambda: RBSE().save("nowhere"), RBSE().sample):
        with pytest.raises(NotFittedError, match="not fitted yet"):
            call()


def test_noise_of_real_values_cannot_be_exchanged() -> None:
    real = RBSE(2, visible="real", law="gaussian", n_epochs=1).fit(X[:, :3])
    with pytest.raises(ValueError, match="visible must be 'binary' for another noise, got 'real'"):
        real.sample_transform(X[:, :3], sigma=0.5)
    with pytest.raises(ValueError, match="visible must be 'binary' for dropped, got 'real'"):
        real.dropped()
