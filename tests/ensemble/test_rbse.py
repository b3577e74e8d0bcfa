"""RBSE against the low-level API."""

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.neural_network import BernoulliRBM
from sklearn.pipeline import make_pipeline

from ebse import RBSE
from ebse.ensemble import _inputs as inputs
from ebse.ensemble._fit import n_epochs_for
from ebse.laws import Bernoulli, Gaussian, Laplace
from ebse.models import exact
from ebse.training import pseudo_log_likelihood
from ensemble.rows import D, K, fitted, interrupt_at, rows
from monte_carlo import means_depart

X, Y = rows()


def ensemble(rbse: RBSE) -> Any:
    return rbse._ensemble()


@pytest.mark.parametrize("law", ["bernoulli", "gaussian", "point", Laplace])
def test_transform_and_scores_are_those_of_the_ensemble(law: Any) -> None:
    rbse = fitted(law=law)
    v = torch.from_numpy(X)
    made = ensemble(rbse)
    np.testing.assert_allclose(rbse.transform(X), made.mean_h_given_v(v), rtol=1e-5)
    np.testing.assert_allclose(rbse.score_samples(X), -made.free_energy(v), rtol=1e-5)
    assert rbse.score(X) == pytest.approx(float(pseudo_log_likelihood(made, v).mean()), rel=1e-5)
    found = rbse.log_likelihood(X)
    assert found.exact
    assert found.forward == pytest.approx(float(exact.log_likelihood(made, v).mean()), rel=1e-4)
    assert rbse.transform(X).dtype == np.float32
    assert rbse.transform(X.astype(np.float64)).dtype == np.float64


def test_training_makes_the_data_likelier() -> None:
    start = RBSE(K, n_epochs=0, random_state=0).fit(X)
    assert fitted().log_likelihood(X).forward > start.log_likelihood(X).forward + 1


@pytest.mark.parametrize("law", ["bernoulli", "gaussian"])
def test_the_mean_of_posterior_draws_is_transform(law: str) -> None:
    rbse = fitted(law=law)
    draws = rbse.sample_transform(X[:1], 40_000, random_state=1)[0]
    mean = torch.from_numpy(rbse.transform(X[:1])[0]).double()
    assert not means_depart(torch.from_numpy(draws).double(), mean)
    # The twin: models of the prior have another mean.
    prior = rbse.sample_transform(X[:1], 40_000, source="prior", random_state=1)[0]
    assert means_depart(torch.from_numpy(prior).double(), mean)


def test_prior_draws_have_their_distribution() -> None:
    """Σ_i v_i W_ij + c_j with every W_ij from its law: mean and variance of the logit."""
    rbse = fitted(law="gaussian")
    draws = rbse.sample_transform(X[:1], 40_000, source="prior", random_state=2)[0]
    logit = torch.logit(torch.from_numpy(draws).double())
    W, v = ensemble(rbse).W, torch.from_numpy(X[0]).double()
    mean = v @ W.theta_bar.double() + ensemble(rbse).c.mean().double()
    variance = v @ W.sigma.double() ** 2
    assert not means_depart(logit, mean, variance=variance)
    assert means_depart(logit, mean + 0.05, variance=variance)


@pytest.mark.parametrize(("source", "n_sweeps"), [("posterior", 0), ("posterior", 3), ("prior", 0)])
def test_draws_of_a_row_do_not_depend_on_other_rows(
    source: Any, n_sweeps: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also in blocks of seven rows, and of one."""
    rbse = fitted()
    monkeypatch.setattr(inputs, "BLOCK", 7 * 4 * K)
    whole = rbse.sample_transform(X, 4, source=source, n_sweeps=n_sweeps, random_state=1)
    order = np.random.default_rng(0).permutation(len(X))[:17]
    part = rbse.sample_transform(X[order], 4, source=source, n_sweeps=n_sweeps, random_state=1)
    np.testing.assert_array_equal(part, whole[order])
    other = rbse.sample_transform(X, 4, source=source, n_sweeps=n_sweeps, random_state=2)
    assert (other != whole).any()
    # Draws of one row are different models.
    assert (whole[:, 0] != whole[:, 1]).any()
    monkeypatch.setattr(inputs, "BLOCK", 1)
    again = rbse.sample_transform(X, 4, source=source, n_sweeps=n_sweeps, random_state=1)
    np.testing.assert_array_equal(again, whole)


def test_imputation_and_scores_do_not_depend_on_other_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    rbse, holes = fitted(), X.copy()
    holes[::2, 3] = np.nan
    for method, rows_ in ((rbse.impute, holes), (rbse.outlier_score, X)):
        whole = method(rows_, random_state=1)
        monkeypatch.setattr(inputs, "BLOCK", 5 * D)
        np.testing.assert_allclose(method(rows_[3:30], random_state=1), whole[3:30], rtol=1e-5)
        monkeypatch.undo()
        assert (method(rows_, random_state=2) != whole).any()


def test_mean_draws_are_transform() -> None:
    draws = fitted().sample_transform(X, 3, source="mean")
    np.testing.assert_array_equal(draws, np.repeat(fitted().transform(X)[:, None], 3, 1))


def test_noise_of_a_call_changes_the_draws() -> None:
    """A small keep_prob is strong noise; a point law takes either argument."""
    rbse = fitted()
    weak, strong = (rbse.sample_transform(X, 20, keep_prob=p, random_state=0) for p in (0.999, 0.01))
    assert strong.std(1).mean() > 2 * weak.std(1).mean()
    assert rbse.keep_prob_.min() > 0.01
    assert fitted(law="gaussian").sample_transform(X, 2, sigma=0.5).shape == (len(X), 2, K)
    assert fitted(law="point").sample_transform(X, 2, keep_prob=0.5).shape == (len(X), 2, K)
    assert fitted(law="point").sample_transform(X, 2, sigma=0.5).shape == (len(X), 2, K)


def test_fitted_attributes() -> None:
    rbse = fitted()
    assert rbse.components_.shape == rbse.keep_prob_.shape == rbse.effective_components_.shape == (K, D)
    assert rbse.intercept_hidden_.shape == (K,)
    assert rbse.intercept_visible_.shape == (D,)
    p, W = rbse.keep_prob_, rbse.components_
    np.testing.assert_allclose(
        rbse.effective_components_, np.log(1 - p + p * np.exp(W)), rtol=1e-3, atol=1e-5
    )
    assert len(rbse.history_) == rbse.n_iter_ == rbse.n_epochs
    assert fitted(law="gaussian").sigma_.shape == (K, D)
    assert not hasattr(rbse, "sigma_")
    assert not hasattr(fitted(law="gaussian"), "keep_prob_")
    assert list(rbse.get_feature_names_out()) == [f"rbse{j}" for j in range(K)]
    assert isinstance(rbse.alpha_["W"]["theta_bar"], np.ndarray)


@pytest.mark.parametrize("bias_law", ["point", "bernoulli", "gaussian"])
def test_biases_may_be_random(bias_law: str) -> None:
    rbse = fitted(bias_law=bias_law)
    names = {"point": "Point", "bernoulli": "Bernoulli", "gaussian": "Gaussian"}
    assert type(ensemble(rbse).b).__name__ == type(ensemble(rbse).c).__name__ == names[bias_law]
    assert rbse.sample_transform(X[:2], 3).shape == (2, 3, K)


def test_real_values() -> None:
    rbse = RBSE(4, visible="real", law="gaussian", n_epochs=2, random_state=0).fit(X[:, :2] * 0.5 + 0.2)
    assert ensemble(rbse).visible == "real"
    assert rbse.sample_transform(X[:3, :2] * 0.5, 5).shape == (3, 5, 4)
    assert hasattr(fitted(), "score")
    assert not hasattr(rbse, "score")
    with pytest.raises(AttributeError) as caught:
        rbse.score(X[:, :2])
    assert "visible must be 'binary' for score, got 'real'" in str(caught.value.__cause__)


@pytest.mark.parametrize("algorithm", ["pcd", "cd", "algorithm1"])
def test_algorithms_learn(algorithm: str) -> None:
    rbse = fitted(algorithm=algorithm)
    assert rbse.log_likelihood(X).forward > RBSE(K, n_epochs=0).fit(X).log_likelihood(X).forward + 1


def test_partial_fit_continues() -> None:
    rbse = RBSE(K, n_epochs=20, batch_size=20, random_state=0)
    assert rbse.partial_fit(X) is rbse
    first = rbse.score(X)
    chains = np.array(rbse.chains_, dtype=np.float32)
    for _ in range(60):
        rbse.partial_fit(X)
    assert rbse.score(X) > first + 0.5
    assert len(rbse.history_) == 61
    assert np.any(rbse.chains_ != chains)
    # A copy starts new chains, and continues from the same weights.
    again = pickle.loads(pickle.dumps(rbse))
    assert again.partial_fit(X).score(X) > first + 0.5
    assert len(again.history_) == 62
    before = clone(rbse).fit(X)
    score, n_iter = before.score(X), before.n_iter_
    before.partial_fit(X)
    assert before.n_iter_ == n_iter + 1
    assert before.score(X) == pytest.approx(score, abs=0.5)
    assert before.score(X) != score


def test_samples_look_like_the_data() -> None:
    rbse = fitted()
    drawn = rbse.sample(4000, random_state=0)
    exact_mean = (
        exact.states(D).float().T @ torch.softmax(-ensemble(rbse).free_energy(exact.states(D).float()), 0)
    ).double()
    assert drawn.shape == (4000, D)
    assert set(np.unique(drawn)) == {0.0, 1.0}
    assert not means_depart(torch.from_numpy(drawn).double(), exact_mean)
    assert means_depart(torch.from_numpy(drawn[:, ::-1].copy()).double(), exact_mean)


def test_imputed_entries_have_their_distribution() -> None:
    """E[v_i | rest] by enumeration of one missing unit, and the known ones untouched."""
    rbse = fitted()
    # Equal rows have the same random numbers: each row of a class in which the unit is mostly on occurs once.
    many, y = rows(1_000)
    many[:, 3] = 0
    missing = np.unique(many[y == 0], axis=0)
    missing[:, 3] = np.nan
    off, on = (rbse.score_samples(np.where(np.isnan(missing), np.float32(x), missing)) for x in (0, 1))
    expected = torch.from_numpy(1 / (1 + np.exp(off.astype(np.float64) - on)))
    filled = rbse.impute(missing, n_sweeps=40, random_state=0)
    entries = torch.from_numpy(filled[:, 3]).double()
    zero = torch.zeros(1, dtype=torch.float64)
    assert not means_depart((entries - expected).unsqueeze(-1), zero)
    assert means_depart((entries - 1 + expected).unsqueeze(-1), zero)
    np.testing.assert_array_equal(np.delete(filled, 3, axis=1), np.delete(missing, 3, axis=1))
    row = missing[0]
    drawn = rbse.impute(np.stack([row, X[1]]), method="draw", n_sweeps=3, random_state=0)
    assert drawn[0, 3] in (0, 1)
    np.testing.assert_array_equal(drawn[1], X[1])


def test_outliers_have_larger_scores() -> None:
    rbse = fitted()
    strange = 1 - np.roll(X, 3, axis=1)
    assert np.median(rbse.outlier_score(strange)) > 1.3 * np.median(rbse.outlier_score(X))
    np.testing.assert_array_equal(rbse.outlier_score(X[5:6]), rbse.outlier_score(X)[5:6])


def test_inverse_transform_is_the_average_model() -> None:
    rbse = fitted()
    W, b, _ = ensemble(rbse).average()
    h = rbse.transform(X)
    np.testing.assert_allclose(
        rbse.inverse_transform(h), torch.sigmoid(torch.from_numpy(h) @ W.T + b), rtol=1e-5
    )


def test_from_rbm_keeps_the_distribution_or_the_weights() -> None:
    rbm = BernoulliRBM(K, n_iter=5, random_state=0).fit(X)
    settings: list[dict[str, Any]] = [{"keep_prob": 0.1}, {"law": "gaussian", "sigma": 0.7}, {"law": "point"}]
    for setting in settings:
        same = RBSE.from_rbm(rbm, **setting)
        np.testing.assert_allclose(same.transform(X), rbm.transform(X), rtol=2e-5)
        W, b, c = rbm.components_.T, rbm.intercept_visible_, rbm.intercept_hidden_
        np.testing.assert_array_equal(RBSE.from_rbm((W, b, c), **setting).transform(X), same.transform(X))
    dropped = RBSE.from_rbm(rbm, keep_prob=0.5, preserve="weights")
    np.testing.assert_allclose(dropped.components_, rbm.components_, rtol=1e-6)
    assert (dropped.keep_prob_ == 0.5).all()
    assert np.abs(dropped.transform(X) - rbm.transform(X)).max() > 1e-4
    assert dropped.sample(3, n_sweeps=5).shape == (3, D)


@pytest.mark.parametrize("law", ["bernoulli", "gaussian", "point"])
def test_saved_and_loaded(law: str, tmp_path: Path) -> None:
    rbse = fitted(law=law)
    rbse.save(tmp_path / "model.safetensors")
    again = RBSE.load(tmp_path / "model.safetensors")
    assert again.get_params() == rbse.get_params()
    np.testing.assert_array_equal(again.transform(X), rbse.transform(X))
    np.testing.assert_array_equal(again.sample(5, random_state=0), rbse.sample(5, random_state=0))
    assert again.history_ == rbse.history_
    named = RBSE(K, n_epochs=1).fit(pd.DataFrame(X, columns=list("abcdefghijkl")))
    named.save(tmp_path / "named.safetensors")
    assert list(RBSE.load(tmp_path / "named.safetensors").feature_names_in_) == list("abcdefghijkl")
    RBSE(K, law=Laplace, n_epochs=1).fit(X).save(tmp_path / "laplace.safetensors")
    assert clone(RBSE.load(tmp_path / "laplace.safetensors")).fit(X).partial_fit(X).n_iter_ > 1


def searched(n_jobs: int | None = None) -> Any:
    model = RBSE(n_epochs=2, random_state=0)
    search = GridSearchCV(model, {"n_components": [2, 4]}, cv=2, n_jobs=n_jobs).fit(X)
    assert search.best_score_ == max(search.cv_results_["mean_test_score"])
    return search.cv_results_["mean_test_score"]


@pytest.mark.slow
def test_a_grid_is_searched_by_several_processes() -> None:
    torch.set_default_dtype(torch.float32)  # what a fresh process has
    try:
        np.testing.assert_allclose(searched(n_jobs=2), searched(), rtol=1e-6)
    finally:
        torch.set_default_dtype(torch.float64)


def test_pipelines_grids_and_frames() -> None:
    frame = pd.DataFrame(X, columns=[f"f{i}" for i in range(D)])
    out = RBSE(K, n_epochs=1, random_state=0).set_output(transform="pandas").fit(frame).transform(frame)
    assert list(out.columns) == [f"rbse{j}" for j in range(K)]
    searched()
    pipe = make_pipeline(RBSE(K, n_epochs=20, random_state=0), LogisticRegression()).fit(X, Y)
    assert pipe.score(X, Y) > 0.8
    frozen = make_pipeline(FrozenEstimator(fitted()), LogisticRegression()).fit(X, Y)
    np.testing.assert_array_equal(frozen[:-1].transform(X), fitted().transform(X))


def test_an_interrupted_fit_keeps_what_was_learned(monkeypatch: pytest.MonkeyPatch) -> None:
    interrupt_at(10, monkeypatch)
    rbse = RBSE(K, n_epochs=50, batch_size=20, random_state=0)
    with pytest.raises(KeyboardInterrupt, match=r"stopped after 9 updates; .* partial_fit continues"):
        rbse.fit(X)
    assert rbse.transform(X).shape == (len(X), K)
    assert rbse.n_iter_ == 3


def test_few_rows_have_many_epochs() -> None:
    """20,000 updates, between 10 and 1,000 passes."""
    for n_rows, expected in ((60, 1_000), (10_000, 200), (200_000, 10)):
        assert n_epochs_for(RBSE(batch_size=100), n_rows) == expected
    assert n_epochs_for(RBSE(n_epochs=3), 60) == 3


def test_verbose_shows_progress_and_scaling(capsys: pytest.CaptureFixture[str]) -> None:
    RBSE(K, n_epochs=2, verbose=1).fit(X * 3)
    shown = "".join(capsys.readouterr())
    assert "12 of 12 features are scaled" in shown
    assert "2/2" in shown
    RBSE(K, n_epochs=2).fit(X * 3)
    assert "".join(capsys.readouterr()) == ""


def test_a_generator_is_a_random_state() -> None:
    one, two = (RBSE(3, n_epochs=1, random_state=np.random.default_rng(5)).fit(X) for _ in range(2))
    np.testing.assert_array_equal(one.components_, two.components_)


def test_laws_have_their_classes() -> None:
    assert isinstance(ensemble(fitted()).W, Bernoulli)
    assert isinstance(ensemble(fitted(law="gaussian")).W, Gaussian)


@pytest.mark.parametrize("bias_law", ["gaussian", "bernoulli"])
def test_biases_of_a_trained_rbm_may_have_a_law(bias_law: str) -> None:
    W, b, c = np.full((3, 2), 0.4), np.array([0.1, -0.7, 0.9]), np.array([0.3, -0.2])
    plain, made = RBSE.from_rbm((W, b, c)), RBSE.from_rbm((W, b, c), bias_law=bias_law)
    assert ensemble(made).b.names != ensemble(plain).b.names
    np.testing.assert_allclose(made.intercept_visible_, b, rtol=1e-5)
    np.testing.assert_allclose(made.intercept_hidden_, c, rtol=1e-5)
